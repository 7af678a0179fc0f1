"""Exports of chat programs as notes: the real formats, and files that are broken in every way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.notes import chat_exports
from nudge.notes.chat_exports import CHATGPT, CLAUDE, SLACK, Conversation, ConversationCounts
from nudge.notes.transfer import parse_note

NOW = 1_800_000_000.0

CLAUDE_EXPORT = [
    {
        "uuid": "5a1b2c3d-0000-4000-8000-000000000001",
        "name": "Choosing a database",
        "created_at": "2025-03-01T10:00:00.000000Z",
        "updated_at": "2025-03-01T10:05:00.000000Z",
        "account": {"uuid": "x"},
        "chat_messages": [
            {"uuid": "1", "text": "SQLite or PostgreSQL?", "sender": "human", "created_at": "2025-03-01T10:00:00Z"},
            {
                "uuid": "2",
                "text": "",
                "content": [{"type": "text", "text": "SQLite, for one machine."}, {"type": "tool_use", "input": {}}],
                "sender": "assistant",
            },
        ],
    }
]
CHATGPT_EXPORT = [
    {
        "title": "Deploy",
        "create_time": 1_700_000_000.5,
        "update_time": 1_700_000_100.5,
        "conversation_id": "abcdef01-2345",
        "current_node": "n3",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["sys"]},
            "sys": {
                "message": {"author": {"role": "system"}, "content": {"content_type": "text", "parts": ["be nice"]}},
                "parent": "root",
                "children": ["n1"],
            },
            "n1": {
                "message": {
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["How to deploy?"]},
                },
                "parent": "sys",
                "children": ["n2", "n3"],
            },
            "n2": {
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["An answer that was replaced."]}},
                "parent": "n1",
                "children": [],
            },
            "n3": {
                "message": {
                    "author": {"role": "assistant"},
                    "content": {"content_type": "multimodal_text", "parts": ["make deploy", {"asset_pointer": "x"}]},
                },
                "parent": "n1",
                "children": [],
            },
        },
    }
]


def mined(format_: str, conversations: Any) -> tuple[list[dict[str, Any]], ConversationCounts]:
    counts = ConversationCounts()
    return list(chat_exports.notes_of(format_, conversations, counts)), counts


def test_a_claude_export() -> None:
    """A conversation is a note with its day; the text of a message may be in blocks."""
    [note], counts = mined(CLAUDE, chat_exports.claude(CLAUDE_EXPORT))
    assert note["title"] == "Choosing a database, 2025-03-01 [f0cadad0]"
    assert note["content"] == "User: SQLite or PostgreSQL?\nAssistant: SQLite, for one machine."
    assert (note["created_at"], note["updated_at"]) == ("2025-03-01T10:00:00+00:00", "2025-03-01T10:05:00+00:00")
    assert (note["tier"], note["tags"], counts) == ("long", ["claude"], ConversationCounts(conversations=1))
    assert note["metadata"] == {"mined_from": "claude", "conversation": "5a1b2c3d-0000-4000-8000-000000000001"}


def test_a_chatgpt_export() -> None:
    """The branch to the current node counts; system prompts and answers that were replaced do not."""
    [note], _ = mined(CHATGPT, chat_exports.chatgpt(CHATGPT_EXPORT))
    assert note["title"] == "Deploy, 2023-11-14 [a5790687]"
    assert note["content"] == "User: How to deploy?\nAssistant: make deploy"


def test_a_chatgpt_export_without_a_current_node() -> None:
    """The latest leaf ends the branch; a tree that is a circle ends too."""
    nodes: dict[str, dict[str, Any]] = {
        "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["q"]}}, "parent": None, "children": ["b"]},
        "b": {
            "message": {"author": {"role": "assistant"}, "content": {"parts": ["x"]}, "create_time": 1.0},
            "parent": "a",
            "children": [],
        },
        "c": {
            "message": {"author": {"role": "assistant"}, "content": {"parts": ["y"]}, "create_time": 2.0},
            "parent": "a",
            "children": [],
        },
    }
    [note], _ = mined(CHATGPT, chat_exports.chatgpt([{"id": "1", "mapping": nodes}]))
    assert note["content"] == "User: q\nAssistant: y"
    nodes["a"]["parent"] = "c"
    [circle], _ = mined(CHATGPT, chat_exports.chatgpt([{"id": "1", "mapping": nodes, "current_node": "c"}]))
    assert circle["content"] == "User: q\nAssistant: y"


def test_a_day_of_a_slack_channel() -> None:
    """Names come from the list of users; who joined is no message."""
    users = chat_exports.slack_users(
        [{"id": "U1", "profile": {"display_name": "Ann"}}, {"id": "U2", "real_name": "Bob"}, 7]
    )
    messages = [
        {"type": "message", "subtype": "channel_join", "user": "U1", "text": "<@U1> has joined", "ts": "1700000000.1"},
        {"type": "message", "user": "U1", "text": "Is staging down?", "ts": "1700000001.000200"},
        {"type": "message", "user": "U2", "text": "Since noon.", "ts": "1700000002.000300"},
        {"type": "message", "subtype": "bot_message", "username": "ci", "text": "failed", "ts": "x"},
    ]
    [note], _ = mined(SLACK, chat_exports.slack("ops", "2023-11-14", messages, users))
    assert note["title"] == "#ops 2023-11-14"
    assert note["content"] == "Ann: Is staging down?\nBob: Since noon.\nci: failed"
    assert note["metadata"]["channel"] == "ops"


def test_one_bad_record_of_a_slack_day_is_skipped() -> None:
    """The messages around it are kept, and it is counted; a file that is no list is one bad record."""
    messages = [{"user": "U1", "text": "before", "ts": "1"}, "torn", None, {"user": "U1", "text": "after", "ts": "2"}]
    [note], counts = mined(SLACK, chat_exports.slack("ops", "2023-11-14", messages, {"U1": "Ann"}))
    assert note["content"] == "Ann: before\nAnn: after"
    assert (counts.conversations, counts.bad, counts.empty) == (1, 2, 0)
    for exported, bad in (({}, 1), (None, 1), (["torn"], 1)):
        notes, counts = mined(SLACK, chat_exports.slack("ops", "2023-11-14", exported, {}))
        assert (notes, counts.bad, counts.empty) == ([], bad, 0)


def test_slack_mentions_become_names() -> None:
    """By `users.json`, else by the label that older exports have, else by the id."""
    text = "<@U1> and <@U2|bo> ask <@U3>, not <@u1> or <#C1|ops>"
    messages = [{"user": "U1", "text": text, "ts": "1"}]
    [note], _ = mined(SLACK, chat_exports.slack("ops", "2023-11-14", messages, {"U1": "Ann"}))
    assert note["content"] == "Ann: @Ann and @bo ask @U3, not <@u1> or <#C1|ops>"


def test_the_same_export_gives_the_same_notes() -> None:
    """Two conversations with one name are two notes."""
    twice = [*CLAUDE_EXPORT, {**CLAUDE_EXPORT[0], "uuid": "6a1b2c3d"}]
    first, second = mined(CLAUDE, chat_exports.claude(twice))[0], mined(CLAUDE, chat_exports.claude(twice))[0]
    assert first == second
    assert len({note["uid"] for note in first}) == len({note["title"] for note in first}) == 2


def test_a_long_conversation_is_several_notes() -> None:
    """Cut between two messages, or within one that is too long alone; each fits into a note."""
    lines = [("User", "é" * 20_000), ("Assistant", "x" * 150_000), ("User", "thanks")]
    notes, counts = mined(CLAUDE, [Conversation("id", "Long", lines)])
    assert counts.conversations == 1 and len(notes) == 4
    assert all(len(note["content"].encode()) <= limits.MAX_NOTE_BYTES for note in notes)
    assert [note["title"] for note in notes] == [f"Long [1ecc3b95] ({number} of 4)" for number in (1, 2, 3, 4)]
    text = "".join(note["content"] for note in notes)
    assert text.count("é") == 20_000 and text.count("x") == 150_000 and text.endswith("thanks")


def test_bad_records_are_counted_and_left_out() -> None:
    """And so are conversations in which nothing was said."""
    records = [7, None, {}, {"uuid": "1"}, {"uuid": "2", "chat_messages": "x"}, {"uuid": "3", "chat_messages": [7]}]
    notes, counts = mined(CLAUDE, chat_exports.claude([*records, *CLAUDE_EXPORT]))
    assert (len(notes), counts) == (1, ConversationCounts(conversations=1, empty=1, bad=5))


@pytest.mark.parametrize("exported", [None, 7, "x", {}, {"conversations": 7}])
def test_what_is_no_export_is_refused(exported: object) -> None:
    """It must be a list of conversations."""
    with pytest.raises(Invalid):
        list(chat_exports.claude(exported))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from(["human", "user", "n1", "2025-01-01"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "uuid",
                        "id",
                        "name",
                        "title",
                        "chat_messages",
                        "text",
                        "sender",
                        "content",
                        "mapping",
                        "n1",
                        "n2",
                    ),
                    *("message", "author", "role", "parts", "parent", "children", "current_node", "created_at", "ts"),
                    *("create_time", "user", "profile", "subtype", "conversation_id", "updated_at"),
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@given(st.lists(JSON, max_size=3))
def test_any_json_is_read_or_counted(records: list[Any]) -> None:
    """No record raises, and every note that comes out can be stored."""
    for format_, conversations in (
        (CLAUDE, chat_exports.claude(records)),
        (CHATGPT, chat_exports.chatgpt(records)),
        (SLACK, chat_exports.slack("ops", "2025-01-01", records, chat_exports.slack_users(records))),
    ):
        for note in mined(format_, conversations)[0]:
            assert parse_note(note, NOW, "global").draft.title
