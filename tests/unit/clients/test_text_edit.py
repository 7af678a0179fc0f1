from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nudge.clients.text_edit import EditBuffer, undo

EDITS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8), st.text("xyz\n", max_size=6)), max_size=8)


@given(st.text("abc\n", max_size=30), EDITS)
def test_every_edit_can_be_taken_back(original: str, edits: list[tuple[int, int, str]]) -> None:
    """Whatever was inserted, replaced or deleted, in whatever order and overlap, the steps lead back to the
    original."""
    draft, plain = EditBuffer(original), original
    for at, length, text in edits:
        start = min(at, len(plain))
        end = min(start + length, len(plain))
        draft.replace(start, end, text)
        plain = plain[:start] + text + plain[end:]
        assert draft.text == plain
    assert undo(draft.text, draft.undo()) == original


def test_the_steps_hold_nothing_of_another() -> None:
    """What we did not touch is in no step: a configuration may hold keys, and the steps are kept."""
    draft = EditBuffer('{"key": "sk-secret"}')
    draft.insert(19, ', "b": 1')
    assert draft.text == '{"key": "sk-secret", "b": 1}'
    assert draft.undo() == [(19, 8, "")]


def test_nothing_done_is_nothing_to_undo() -> None:
    """A text that was not changed has no undo steps."""
    assert EditBuffer("abc").undo() == []
