from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from nudge.core.clock import iso
from nudge.core.errors import RemoteError
from tests.unit.cli.conftest import Nudge, Outcome, Server, Terminal

NOW = int(time.time())
SESSION = "d4f8a2b1-0000-4000-8000-000000000000"
FAILED = {
    "id": 42,
    "timestamp": NOW - 7_300,
    "obs_type": "command_error",
    "content_preview": "cargo test",
    "file_path": None,
}
EDITED = {
    "id": 7,
    "timestamp": NOW + 600,
    "obs_type": "file_edit",
    "content_preview": "/x/a.py",
    "file_path": "/x/a.py",
}
FOUND = [{**FAILED, "session_id": SESSION}, {**EDITED, "session_id": SESSION}]
FULL: dict[str, Any] = {
    "id": 42,
    "timestamp": NOW - 7_300,
    "session_id": SESSION,
    "project": "api",
    "obs_type": "command_error",
    "source_event": "PostToolUseFailure",
    "tool_name": "Bash",
    "content": "cargo test\n--all",
    "file_path": None,
    "metadata": {"exit_code": 101, "error": "one\ntwo"},
    "is_pinned": True,
}


def clock(timestamp: int, form: str = "%H:%M:%S") -> str:
    return time.strftime(form, time.localtime(timestamp))


def not_found(message: str) -> RemoteError:
    return RemoteError({"code": 40401, "message": message, "data": {"reason": "E_NOT_FOUND"}})


def _asked(server: Server) -> dict[str, Any]:
    """The last request, without where the caller is."""
    params = dict(server.params)
    assert set(params.pop("context")) == {"project"}
    return params


def on_terminal(nudge: Nudge, monkeypatch: pytest.MonkeyPatch, *words: str) -> Outcome:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    return nudge.on(Terminal(), *words)


# search


def test_search_into_a_pipe(nudge: Nudge, server: Server) -> None:
    """A pipe gets the same text as a terminal, --json the array; the count is on stderr."""
    server.answers["nudge.search"] = FOUND
    outcome = nudge("search", 'auth "error"')
    assert outcome.out.splitlines() == [
        "#42  2h ago  command_error  cargo test",
        " #7     now  file_edit      /x/a.py",
    ]
    assert outcome.err == 'nudge: 2 results for "auth "error""\n'
    assert json.loads(nudge("search", "x", "--json").out) == FOUND


def test_a_hit_in_error_text_shows_that_text(nudge: Nudge, server: Server) -> None:
    """Below its row, on one line, without what could control a terminal."""
    server.answers["nudge.search"] = [{**FOUND[0], "found_text": "…No module\nnamed\x1b yaml"}, FOUND[1]]
    assert nudge("search", "yaml").out.splitlines() == [
        "#42  2h ago  command_error  cargo test",
        "      …No module named\\x1b yaml",
        " #7     now  file_edit      /x/a.py",
    ]


def test_search_takes_several_words(nudge: Nudge, server: Server) -> None:
    """Without quotes, as `query` and `recall` do."""
    server.answers["nudge.search"] = FOUND
    assert nudge("search", "exit", "3", "--limit", "5").err.startswith('nudge: 2 results for "exit 3"')
    assert server.params["query"] == "exit 3"
    assert nudge("search").err.startswith("nudge search: missing QUERY")


def test_search_counts_one(nudge: Nudge, server: Server) -> None:
    """One result is not "1 results"."""
    server.answers["nudge.search"] = FOUND[:1]
    assert nudge("search", "x").err == 'nudge: 1 result for "x"\n'


def test_search_on_a_terminal(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that fits the screen."""
    server.answers["nudge.search"] = [*FOUND, {**FOUND[0], "id": 3, "content_preview": "x" * 100}]
    outcome = on_terminal(nudge, monkeypatch, "search", "test")
    assert outcome.out.splitlines()[:2] == [
        "#42  2h ago  command_error  cargo test",
        " #7     now  file_edit      /x/a.py",
    ]
    assert len(outcome.out.splitlines()[2]) == 60 and outcome.err == 'nudge: 3 results for "test"\n'


def test_search_explains(nudge: Nudge, server: Server) -> None:
    """Each result with the parts of its score; --json is the whole envelope."""
    item = {
        "id": 42,
        "kind": "command_error",
        "title": "cargo test",
        "created_at": None,
        "project": "acme/api",
        "retrieval": {"source": "query", "rank": 1},
        "score": {"total": 0.9, "components": {"base": 0.7, "recency": 0.2, "tier": None}},
        "matches": {"query_terms": ["cargo"], "project_match": None},
        "pack_context": None,
    }
    envelope = {"items": [item], "missing_ids": [], "errors": [], "metadata": {"query": "cargo"}}
    server.answers["nudge.search_explain"] = envelope
    assert nudge("search", "cargo", "--explain").out.splitlines() == [
        "#42  command_error  cargo test  (rank 1)",
        "  score  0.9000",
        "    match    0.7000",
        "    recency  0.2000",
        "  words: cargo",
        "  repo: acme/api",
    ]
    assert json.loads(nudge("search", "cargo", "--explain", "--json").out) == envelope
    assert nudge("search", "x", "--explain", "--ids").code == 2


def test_search_ids(nudge: Nudge, server: Server) -> None:
    """One number a line, for a pipe; the count is on stderr."""
    server.answers["nudge.search"] = FOUND
    outcome = nudge("search", "stale", "--ids")
    assert (outcome.out, outcome.err) == ("42\n7\n", 'nudge: 2 results for "stale"\n')
    assert json.loads(nudge("search", "stale", "--ids", "--json").out) == [42, 7]
    assert nudge("search", "x", "--ids", "--full").code == 2


def test_search_full(nudge: Nudge, server: Server) -> None:
    """The matches are fetched whole, fifty at a time, in their order."""
    server.answers["nudge.search"] = [{**FOUND[0], "id": number} for number in range(1, 62)]
    server.answers["nudge.get_observations"] = [FULL]
    outcome = nudge("search", "x", "--full", "--limit", "60", "--json")
    assert json.loads(outcome.out) == [FULL, FULL]
    assert "more observations match; add words or use --limit 100" in outcome.err
    assert [params["ids"] for op, params in server.calls if op == "nudge.get_observations"] == [
        list(range(1, 51)),
        list(range(51, 61)),
    ]


def test_search_sends_what_was_asked(nudge: Nudge, server: Server, repo: Path) -> None:
    """Every project is searched, unless one is named; the server is told where we are. Every filter has its flag."""
    del repo
    server.answers |= {"nudge.search": FOUND}
    nudge("search", "q")
    assert server.params == {"query": "q", "project": None, "context": {"project": "github.com/org/x"}, "limit": 21}
    flags = (
        "--repo",
        "web",
        "--type",
        "command",
        "--limit",
        "5",
        "--order-by",
        "blended",
        "--before",
        "200",
        "--after",
        "100",
    )
    nudge("search", "q", *flags)
    assert server.params == {
        "query": "q",
        "project": "web",
        "obs_type": "command",
        "limit": 6,
        "order_by": "blended",
        "before": 200,
        "after": 100,
    }


def test_search_finds_nothing(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty array is an answer."""
    server.answers["nudge.search"] = []
    outcome = nudge("search", "q")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", 'nudge: 0 results for "q"\n')
    assert on_terminal(nudge, monkeypatch, "search", "q").err == outcome.err


def test_what_is_left_out_is_said(nudge: Nudge, server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who has private projects is told that a question about all projects is not about those."""
    del repo
    server.answers |= {"nudge.search": [], "nudge.sessions": []}
    monkeypatch.setenv("NUDGE_PRIVATE_PROJECTS", "X,PayRoll")
    remark = "private repos were left out; name one with --repo: payroll"
    assert remark in on_terminal(nudge, monkeypatch, "search", "q").err and remark in nudge("sessions").err
    assert remark not in nudge("sessions", "--repo", "payroll").err


def test_a_search_that_cannot_be_read(nudge: Nudge, server: Server) -> None:
    """The server says where; exit 3."""
    message = "query: a parenthesis is never closed: it opens at character 3"
    server.answers["nudge.search"] = RemoteError({"code": 40001, "message": message, "data": {"reason": "E_INVALID"}})
    outcome = nudge("search", "a (b")
    assert outcome.code == 3 and "at character 3" in outcome.err


@pytest.mark.parametrize(
    ("word", "ago"), [("90s", 90), ("5m", 300), ("36h", 129_600), ("7d", 604_800), ("2w", 1_209_600)]
)
def test_so_long_ago(nudge: Nudge, server: Server, word: str, ago: int) -> None:
    """A time may be a span that goes back from now."""
    server.answers["nudge.search"] = []
    nudge("search", "q", "--after", word)
    assert abs(time.time() - ago - server.params["after"]) < 10


def test_times(nudge: Nudge, server: Server) -> None:
    """A date or an ISO time is taken in the zone it names, else in ours."""
    server.answers["nudge.search"] = []
    nudge("search", "q", "--after", "2026-11-16T08:30:00Z", "--before", "2026-11-17")
    assert server.params["after"] == 1_794_817_800
    assert server.params["before"] == int(time.mktime((2026, 11, 17, 0, 0, 0, 0, 0, -1)))
    outcome = nudge("search", "q", "--after", "yesterday")
    assert outcome.code == 2 and "'yesterday' is not a time such as" in outcome.err


# timeline, show


def test_timeline(nudge: Nudge, server: Server) -> None:
    """What happened around it, in order, with a mark at the middle."""
    before = {**FULL, "id": 41, "obs_type": "file_read", "file_path": "/x/a.py", "is_pinned": False}
    server.answers["nudge.timeline"] = {"anchor": FULL, "before": [before], "after": []}
    lines = nudge("timeline", "#42", "--before", "1", "--after", "0").out.splitlines()
    when = clock(FULL["timestamp"])
    assert lines[0] == f"session {SESSION}, api, {clock(FULL['timestamp'], '%Y-%m-%d')}"
    assert lines[1] == f"  #41  {when}  file_read      /x/a.py"
    assert lines[2] == f"> #42  {when}  command_error  cargo test --all  (pinned)"
    assert _asked(server) == {"anchor": 42, "before": 1, "after": 0}


@pytest.mark.parametrize("word", ["x", "0", "-3", "#"])
def test_no_number(nudge: Nudge, word: str) -> None:
    """An id is a number, with or without the sign it is printed with."""
    assert nudge("timeline", "--", word).code == 2


def test_timeline_of_nothing(nudge: Nudge, server: Server) -> None:
    """Exit 1, and where to find an id."""
    server.answers["nudge.timeline"] = not_found("anchor observation not found")
    outcome = nudge("timeline", "9")
    assert (
        outcome.code == 1
        and outcome.err == "nudge: E_NOT_FOUND (40401): there is no observation #9; find one with: nudge search\n"
    )
    assert json.loads(nudge("timeline", "9", "--json").out)["error"]["code"] == 40401


def test_show(nudge: Nudge, server: Server) -> None:
    """Everything that is known, lines kept, and nothing in it that steers a terminal."""
    server.answers["nudge.get_observations"] = [{**FULL, "tool_name": "Ba\x1b[2Jsh"}]
    outcome = nudge("show", "42", "#9")
    assert outcome.out.splitlines() == [
        f"#42  command_error  {clock(FULL['timestamp'], '%Y-%m-%d %H:%M:%S')} (2h ago)  (pinned)",
        "  cargo test",
        "  --all",
        f"  session: {SESSION}",
        "  repo: api",
        "  event: PostToolUseFailure",
        "  tool: Ba\\x1b[2Jsh",
        "  exit_code: 101",
        "  error: one",
        "    two",
    ]
    assert outcome.code == 0 and outcome.err == "not found: #9\n" and _asked(server) == {"ids": [42, 9]}


def test_show_of_nothing(nudge: Nudge, server: Server) -> None:
    """Nothing found is exit 1; a program still gets its array."""
    server.answers["nudge.get_observations"] = []
    outcome = nudge("show", "9", "--json")
    assert (outcome.code, outcome.out) == (1, "[]\n")


# sessions, trace


def listed(session_id: str = SESSION, **more: Any) -> dict[str, Any]:
    usual = {
        "session_id": session_id,
        "project": "api",
        "repo": "git:org/api",
        "cwd": "/x",
        "client": "codex",
        "started_at": 1_794_817_800,
        "ended_at": 1_794_821_400,
        "last_event_at": 1_794_821_400,
        "observation_count": 12,
        "summary": {"intent": "fix the\nlogin"},
    }
    return {**usual, **more}


def test_sessions(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """All projects unless one is named; what each was about comes last."""
    server.answers["nudge.sessions"] = [
        listed(),
        listed("ffff" * 8, project=None, ended_at=None, summary=None, observation_count=1),
    ]
    when = clock(1_794_817_800, "%Y-%m-%d %H:%M")
    assert nudge("sessions").out.splitlines() == [
        f'd4f8a2b1  {when}  1h    api  codex  12 obs  "fix the login"',
        f"ffffffff  {when}  open  -    codex  1 obs",
    ]
    assert server.params == {"project": None, "context": {"project": str(somewhere).casefold()}, "limit": 21}
    assert "there are more sessions; use --limit 2" in nudge("sessions", "--limit", "1").err
    nudge("sessions", "--repo", "api", "--limit", "3")
    assert server.params == {"project": "api", "limit": 4}
    server.answers["nudge.sessions"] = []
    assert "nudge connect" in nudge("sessions").err
    assert nudge("sessions", "--repo", "nope").err.startswith("no session of nope is recorded")


TRACE: dict[str, Any] = {
    "session_id": SESSION,
    "project": "api",
    "started_at": 1_794_817_800,
    "ended_at": None,
    "summary": {
        "intent": "fix it",
        "files": [],
        "commits": [],
        "counts": {"command": 2, "file_edit": 3},
        "failed": [{"command": "make", "id": 4, "passed": 6}, {"command": "make x", "id": 5, "passed": None}],
    },
    "prompts": [
        {
            "prompt_id": None,
            "timestamp": 1_794_817_801,
            "source": "system",
            "content": "",
            "observation_count": 1,
            "observations": [
                {"id": 1, "timestamp": 1_794_817_801, "obs_type": "session_start", "content_preview": "startup"}
            ],
        },
        {
            "prompt_id": 1,
            "timestamp": 1_794_817_810,
            "source": "user",
            "content": "Fix the\nlogin",
            "observation_count": 1,
            "observations": [
                {
                    "id": 42,
                    "timestamp": 1_794_817_820,
                    "obs_type": "file_read",
                    "file_path": "/a.py",
                    "content_preview": "x",
                }
            ],
        },
    ],
    "injections": [
        {
            "id": 1,
            "timestamp": 1_794_817_801,
            "items": [{"id": 50}, {"id": "api/test"}, 7],
            "text": "# Nudge\n- #50 \x1b[2J",
        }
    ],
}


def test_trace(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The session, what it was told, and each prompt with what it led to."""
    server.answers |= {"nudge.sessions": [listed()], "nudge.session_trace": TRACE}
    at = [clock(1_794_817_800 + seconds) for seconds in (0, 1, 10, 20)]
    assert nudge("trace", "last").out.splitlines() == [
        f"{SESSION}  api",
        f"since {clock(1_794_817_800, '%Y-%m-%d')} {at[0]}, still open",
        'intent: "fix it"',
        'failed: "make" #4, passed in #6',
        'failed: "make x" #5, did not pass in this session',
        "3 file_edit, 2 command",
        f"{at[1]} (told at the start) #50, api/test, #7",
        f"{at[1]} (no prompt) -> 1 observation",
        f"  #1  {at[1]}  session_start  startup",
        f'{at[2]} "Fix the login" -> 1 observation',
        f"  #42  {at[3]}  file_read  /a.py",
    ]
    last = {"project": str(somewhere).casefold(), "nonempty": True, "limit": 1}
    traced = {"context": {"project": str(somewhere).casefold()}, "session_id": SESSION}
    assert server.calls == [("nudge.sessions", last), ("nudge.session_trace", traced)]


def test_a_trace_says_how_to_see_the_rest(nudge: Nudge, server: Server) -> None:
    """The command to type next starts after the latest line."""
    server.answers |= {"nudge.sessions": [listed()], "nudge.session_trace": {**TRACE, "more": True}}
    outcome = nudge("trace", "last", "--limit", "3")
    assert server.params["limit"] == 3
    assert f"there is more: nudge trace {SESSION} --after {iso(1_794_817_820)}\n" in outcome.err


def test_trace_of_several_days(nudge: Nudge, server: Server) -> None:
    """Every line says on which; so does the end."""
    prompts = [TRACE["prompts"][0], {**TRACE["prompts"][1], "timestamp": 1_794_817_810 + 86_400}]
    server.answers |= {
        "nudge.sessions": [listed()],
        "nudge.session_trace": {**TRACE, "prompts": prompts, "ended_at": 1_794_817_900 + 86_400},
    }
    lines = nudge("trace", "last").out.splitlines()
    dated = "%Y-%m-%d %H:%M:%S"
    assert lines[1] == f"{clock(1_794_817_800, dated)} to {clock(1_794_817_900 + 86_400, dated)}"
    assert lines[-2].startswith(f'{clock(1_794_817_810 + 86_400, dated)} "Fix the login"')
    assert lines[-1].split()[1:3] == clock(1_794_817_820, dated).split()


def test_trace_of_a_forgotten_prompt(nudge: Nudge, server: Server) -> None:
    """Its words are gone, its place is not."""
    prompt = {**TRACE["prompts"][1], "content": ""}
    server.answers |= {"nudge.sessions": [listed()], "nudge.session_trace": {**TRACE, "prompts": [prompt]}}
    assert "(a deleted prompt) -> 1 observation" in nudge("trace", "last").out


def test_trace_full(nudge: Nudge, server: Server) -> None:
    """With the text that the agent was told, which may not steer our terminal either."""
    server.answers |= {"nudge.sessions": [listed()], "nudge.session_trace": TRACE}
    assert "  # Nudge\n  - #50 \\x1b[2J\n" in nudge("trace", "last", "--full").out
    assert json.loads(nudge("trace", "last", "--json").out) == TRACE


@pytest.mark.parametrize(("word", "known"), [("d4f8", [SESSION]), (SESSION, [SESSION, SESSION + "x"])])
def test_trace_by_the_beginning(nudge: Nudge, server: Server, word: str, known: list[str]) -> None:
    """As much of the id as tells it from the others; a whole id is itself, whatever begins with it."""
    server.answers |= {"nudge.sessions": [listed(name) for name in known], "nudge.session_trace": TRACE}
    assert nudge("trace", word, "--repo", "api", "--after", "5").code == 0
    assert server.calls[0][1] == {"project": "api", "session": word, "limit": 20}
    assert server.params == {"project": "api", "session_id": SESSION, "after": 5}


def test_trace_of_nobody(nudge: Nudge, server: Server) -> None:
    """Unknown is exit 1, ambiguous is exit 2, and both say where to look."""
    server.answers["nudge.sessions"] = []
    outcome = nudge("trace", "abc")
    assert outcome.code == 1 and "session not found: abc; list them with: nudge sessions" in outcome.err
    server.answers["nudge.sessions"] = [listed("abc1"), listed("abc2")]
    outcome = nudge("trace", "abc")
    assert outcome.code == 2 and "several sessions begin with 'abc'" in outcome.err and "abc1" in outcome.err
    assert nudge("trace", "").code == 2


# history, recent


def test_history_of_a_file(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """By session, with what it was for and the prompt behind each touch; a relative path is one from here."""
    path = str(somewhere / "a.py")
    touch = {
        "observation_id": 42,
        "timestamp": 1_794_817_820,
        "obs_type": "file_edit",
        "content_preview": path,
        "prompt_content": "Fix the login",
        "is_pinned": False,
    }
    session = {
        "session_id": SESSION,
        "project": "api",
        "started_at": 1_794_817_800,
        "summary_intent": "fix it",
        "touches": [touch],
    }
    server.answers["nudge.file_history"] = {"file_path": path, "sessions": [session]}
    when = clock(1_794_817_800, "%Y-%m-%d %H:%M")
    assert nudge("history", "a.py", "--limit", "3").out.splitlines() == [
        f'd4f8a2b1  {when}  api  "fix it"',
        f"  #42  {when}  file_edit",
        '      "Fix the login"',
    ]
    assert _asked(server) == {"file_path": path, "limit": 3}


def test_history_of_an_unknown_file(nudge: Nudge, server: Server) -> None:
    """No sessions is an answer, and says what to try."""
    server.answers["nudge.file_history"] = {"file_path": "/a.py", "sessions": []}
    outcome = nudge("history", "/a.py")
    assert (outcome.code, outcome.out) == (0, "") and "nudge history" in outcome.err


def test_recent_files(nudge: Nudge, server: Server, repo: Path) -> None:
    """Without a file: those touched lately in this project, the latest first."""
    del repo
    edit = {**FULL, "project": "x", "obs_type": "file_edit", "is_pinned": False, "score": 1}
    server.answers["nudge.recent_context"] = [
        {**edit, "id": 1, "file_path": "/x/old.py", "timestamp": NOW - 7_300},
        {**edit, "id": 2, "file_path": None},
        {**edit, "id": 3, "file_path": "/x/new.py", "timestamp": NOW + 600},
        {**edit, "id": 4, "file_path": "/y.py", "project": "web"},
    ]
    assert nudge("history").out.splitlines() == ["#3     now  file_edit  /x/new.py", "#1  2h ago  file_edit  /x/old.py"]
    assert server.params == {"project": "github.com/org/x", "limit": 100}
    told = json.loads(nudge("history", "--json", "--limit", "1").out)
    assert [entry["file_path"] for entry in told] == ["/x/new.py"] and "content" not in told[0]
    assert len(json.loads(nudge("history", "--all-repos", "--json").out)) == 3


def test_recent_files_of_one_change(nudge: Nudge, server: Server, repo: Path) -> None:
    """Each file of a patch is one, under the latest change that touched it."""
    del repo
    edit = {**FULL, "project": "x", "obs_type": "file_edit", "is_pinned": False, "score": 1}
    server.answers["nudge.recent_context"] = [
        {**edit, "id": 1, "file_path": "/x/a.py", "timestamp": NOW - 10, "metadata": {"files": ["/x/a.py", "/x/b.py"]}},
        {**edit, "id": 2, "file_path": "/x/b.py", "timestamp": NOW - 5, "metadata": {}},
    ]
    told = json.loads(nudge("history", "--json").out)
    assert [(entry["file_path"], entry["id"]) for entry in told] == [("/x/b.py", 2), ("/x/a.py", 1)]


def test_recent(nudge: Nudge, server: Server) -> None:
    """Commits, failures, edits and prompts: the server is asked for those alone."""
    server.answers["nudge.recent_context"] = [{**FULL, "score": 0.9}]
    assert (
        nudge("recent", "--repo", "api", "--limit", "3").out
        == "#42  2h ago  command_error  cargo test --all  (pinned)\n"
    )
    assert server.params == {"project": "api", "work": True, "limit": 4}
    server.answers["nudge.recent_context"] = []
    assert "nudge connect" in nudge("recent").err


def test_recent_of_several_projects(nudge: Nudge, server: Server) -> None:
    """Where not every row is of the project that was asked for, each says whose it is."""
    server.answers["nudge.recent_context"] = [
        {**FULL, "is_pinned": False},
        {**FULL, "id": 7, "project": None, "is_pinned": False},
    ]
    rows = ["#42  2h ago  command_error  api  cargo test --all", " #7  2h ago  command_error  -    cargo test --all"]
    assert nudge("recent", "--all-repos").out.splitlines() == nudge("recent", "--repo", "api").out.splitlines() == rows


# All of them

FACT = {
    "project": "api",
    "kind": "module",
    "subject": "python3 -m pytest",
    "error": "No module named pytest",
    "answer": "pytest",
    "sessions": 2,
    "last": 0,
    "id": 7,
    "ids": [6, 7],
    "exit_codes": [1, 0],
    "credit": {"worked": 0, "failed": 0},
}
NO_COPIES = {"prompts": 0, "injections": 0}
ANSWERS: dict[str, tuple[tuple[str, ...], Any]] = {
    "nudge.search": (("search", "x"), FOUND),
    "nudge.timeline": (("timeline", "1"), {"anchor": FULL, "before": [], "after": []}),
    "nudge.recent_context": (("recent",), [FULL]),
    "nudge.file_history": (("history", "/a.py"), {"file_path": "/a.py", "sessions": []}),
    "nudge.sessions": (("sessions",), [listed()]),
    "nudge.get_observations": (("show", "42"), [FULL]),
    "nudge.learned": (("facts",), {"facts": [FACT]}),
    "nudge.pin": (("pin", "42"), {"pinned": True, "ids": [42], "missing": []}),
    "nudge.purge": (("purge", "--id", "1"), {**NO_COPIES, "total": 0, "counts": {}, "pinned": 0, "deleted": False}),
    "nudge.backup": (("backup",), {"path": "/b", "bytes": 1}),
    "nudge.inject": (("inject",), {"text": "- x", "items": []}),
}


@pytest.mark.parametrize("operation", ANSWERS)
def test_json_is_the_result(nudge: Nudge, server: Server, operation: str) -> None:
    """--json prints what the operation answered, to the letter."""
    words, answer = ANSWERS[operation]
    server.answers[operation] = answer
    assert json.loads(nudge(*words, "--json").out) == answer


@pytest.mark.parametrize(
    "operation", ["nudge.search", "nudge.timeline", "nudge.recent_context", "nudge.get_observations"]
)
def test_stored_text_is_escaped(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    """What was recorded may not steer the terminal that shows it."""
    evil: Any = {
        **FULL,
        "content": "a\x1b[2Jb",
        "content_preview": "a\x1b[2Jb",
        "project": "\x1b[2J",
        "metadata": {"\x1b": "\x1b"},
    }
    words, answer = ANSWERS[operation]
    server.answers[operation] = {**answer, "anchor": evil} if isinstance(answer, dict) else [evil]
    outcome = on_terminal(nudge, monkeypatch, *words)
    assert "\x1b" not in outcome.out and "a\\x1b[2Jb" in outcome.out


@pytest.mark.parametrize(
    ("words", "operation", "empty"),
    [
        (["search", "x"], "search", []),
        (["recent"], "recent_context", []),
        (["recent"], "recent_context", FOUND),
        (["facts"], "learned", {"facts": []}),
        (["told"], "told", {"lines": [], "never": [], "total": 0, "next": None}),
        (["stats"], "stats", {"weeks": [], "comparison": None}),
        (["trace", "last"], "sessions", []),
    ],
)
def test_a_project_that_does_not_exist(
    nudge: Nudge, server: Server, words: list[str], operation: str, empty: Any
) -> None:
    """An empty result says that no project has this name, not that nothing happened in this one."""
    server.answers |= {"nudge.sessions": [], f"nudge.{operation}": empty}
    message = "no repo is called nope here; list them with: nudge sessions\n"
    outcome = nudge(*words, "--repo", "nope")
    assert outcome.err.endswith(message) and outcome.code == (1 if words[0] == "trace" else 0)
    assert message not in nudge(*words).err
    if words[0] != "trace":
        server.answers["nudge.sessions"] = [{"session_id": "s1"}]
        assert message not in nudge(*words, "--repo", "nope").err
