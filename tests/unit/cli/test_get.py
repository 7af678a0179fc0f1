from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nudge.errors import RemoteError, Unavailable

from .conftest import EXPLAIN, HINT, Nudge, Server, Terminal

MISS = {
    "code": 40401,
    "message": "http-proxy/build exists, but its one variant does not apply here",
    "data": {
        "reason": "E_NOT_FOUND",
        "why_not": [
            {"scope": {"branch": ["dev", "main"], "os": ["linux"]}, "reasons": ["branch unknown, needs dev or main"]}
        ],
    },
}


def answer(server: Server, value: Any = HINT["value"], **meta: Any) -> dict[str, Any]:
    result = {"hint": {**HINT, "value": value, "meta": {**HINT["meta"], **meta}}, "match_explain": EXPLAIN}
    server.answers["nudge.get_hint"] = result
    return result


def test_pretty(nudge: Nudge, server: Server) -> None:
    """The value first, then why it was chosen."""
    answer(server)
    assert nudge("get", "http-proxy", "build").out.splitlines() == [
        "value: docker compose build router",
        "match:",
        "  score: 0.92",
        "  reasons:",
        "    - cwd matched **/http-proxy*",
        "    - recently used (5m ago)",
    ]


def test_pretty_without_reasons(nudge: Nudge, server: Server) -> None:
    """A hint for everywhere that was never used fits for no reason in particular."""
    server.answers["nudge.get_hint"] = {"hint": HINT, "match_explain": {**EXPLAIN, "reasons": []}}
    assert nudge("get", "a", "b").out.splitlines()[1:] == ["match:", "  score: 0.92"]


def test_explain(nudge: Nudge, server: Server) -> None:
    """--explain adds what the score is made of and all that is known of the hint."""
    template = {"type": "template", "format": "jinja", "body": "{{ host }}", "defaults": {"host": "a", "port": "\x1b"}}
    result = answer(server, template, reason="custom image", added_by="agent:codex", sensitivity="normal")
    result["hint"]["last_used_at"] = "2026-11-16T09:00:00.000000Z"
    assert nudge("get", "http-proxy", "build", "--explain").out.splitlines() == [
        "value: {{ host }}  (template, jinja)",
        "about:",
        "  priority=7 tags=build,docker ttl=session scope=cwd_glob",
        "  scope: cwd **/http-proxy*",
        "  v3, set 2026-11-16T08:30:00.000000Z (first 2026-11-16T08:00:00.000000Z), used 4 times (last 2026-11-16T09:00:00.000000Z)",
        "  reason: custom image",
        "  added by: agent:codex",
        "  sensitivity: normal",
        "  default host=a",
        "  default port=\\x1b",
        "match:",
        "  score: 0.92",
        "  components:",
        "    frecency  0.3000",
        "    priority  0.1400",
        "  reasons:",
        "    - cwd matched **/http-proxy*",
        "    - recently used (5m ago)",
    ]


def test_explain_of_a_bare_hint(nudge: Nudge, server: Server) -> None:
    """With nothing to say there is no empty line."""
    bare = {**HINT, "meta": {}, "updated_at": HINT["created_at"], "use_count": 0}
    server.answers["nudge.get_hint"] = {"hint": bare, "match_explain": EXPLAIN}
    assert nudge("get", "a", "b", "--explain").out.splitlines()[1:5] == [
        "about:",
        "  scope=everywhere",
        "  scope: everywhere",
        "  v3, set 2026-11-16T08:00:00.000000Z, used 0 times",
    ]


def test_json_is_the_exact_result(nudge: Nudge, server: Server) -> None:
    """One line in a pipe, holding the result object and nothing else; --json may stand before the verb."""
    result = answer(server)
    for words in (["get", "a", "b", "--json"], ["--json", "get", "a", "b"]):
        outcome = nudge(*words)
        assert json.loads(outcome.out) == result and outcome.out.count("\n") == 1


def test_json_is_indented_on_a_terminal(nudge: Nudge, server: Server) -> None:
    """A person who asks for JSON can read it, and stored text cannot steer the terminal through it."""
    result = answer(server, "evil \x9b31m é")
    out = nudge.on(Terminal(), "get", "a", "b", "--json").out
    assert out.count("\n") > 5
    assert "\x9b" not in out and json.loads(out) == result


@pytest.mark.parametrize(
    ("value", "bare"),
    [
        ("make", "make"),
        ({"type": "command", "shell": "bash", "cmd": "make x"}, "make x"),
        ({"type": "path", "abs": "/srv/x"}, "/srv/x"),
        ({"type": "template", "format": "jinja", "body": "a\nb"}, "a\nb"),
        ({"type": "json", "data": {"é": [1, None]}}, '{"é": [1, null]}'),
        ({"type": "json", "data": "x"}, '"x"'),
    ],
)
def test_value_only(nudge: Nudge, server: Server, value: Any, bare: str) -> None:
    """`$(nudge get ... --value-only)` is the bare value, of whatever type, and nothing else."""
    answer(server, value, sensitivity="secret")
    assert nudge("get", "a", "b", "--value-only").out == bare + "\n"


def test_value_only_cannot_steer_a_terminal(nudge: Nudge, server: Server) -> None:
    """Raw into a pipe; on a terminal control characters are spelt out even here."""
    answer(server, "a\x1b[2Jb")
    assert nudge.on(Terminal(), "get", "a", "b", "--value-only").out == "a\\x1b[2Jb\n"
    assert nudge("get", "a", "b", "--value-only").out == "a\x1b[2Jb\n"


def test_secret_values_are_not_shown(nudge: Nudge, server: Server) -> None:
    """Pretty output never holds a secret; --json, which a program asked for, does."""
    answer(
        server,
        {"type": "template", "format": "jinja", "body": "x", "defaults": {"word": "hunter2"}},
        sensitivity="secret",
    )
    assert "hunter2" not in nudge("get", "a", "b", "--explain").out
    answer(server, "hunter2", sensitivity="secret")
    assert "hunter2" not in nudge("get", "a", "b", "--explain").out
    assert "value: [secret]" in nudge("get", "a", "b").out
    assert "hunter2" in nudge("get", "a", "b", "--json").out


def test_stored_text_cannot_steer_a_terminal(nudge: Nudge, server: Server) -> None:
    """Escapes, C1 controls and direction marks are spelt out wherever they were stored."""
    answer(server, "a\x1b]0;x\x07\nb\u202ec", reason="\x1b[31m", tags=["\x9b1m"])
    out = nudge("get", "a\x1b", "b", "--explain").out
    assert not set(out) & set("\x1b\x07\x9b\u202e")
    assert "  a\\x1b]0;x\\x07\n  b\\u202ec\n" in out


def test_kind_of_value(nudge: Nudge, server: Server) -> None:
    """A typed value says what it is."""
    answer(server, {"type": "command", "shell": "bash", "cmd": "make"})
    assert nudge("get", "a", "b").out.startswith("value: make  (command, bash)\n")


@pytest.mark.usefixtures("repo")
def test_context_is_found_out(nudge: Nudge, server: Server) -> None:
    """Where one stands is sent without a flag; the environment is not."""
    answer(server)
    nudge("get", "a", "b")
    context = server.params["context"]
    assert (context["cwd"], context["repo"], context["branch"]) == (os.getcwd(), "git:org/x", "dev")
    assert context["os"] in ("linux", "darwin", "windows") and "env" not in context


@pytest.mark.usefixtures("repo")
def test_context_flags_win(nudge: Nudge, server: Server) -> None:
    """Each part of the context can be said instead; --env stands before the real environment, for the names a scope
    asks for."""
    answer(server)
    nudge(
        "get", "a", "b", "--repo", "git:o/y", "--branch", "main", "--os", "windows", "--env", "MODE=x=1", "--env", "CI="
    )
    assert server.params["context"] | {"repo": "git:o/y", "branch": "main", "os": "windows"} == server.params["context"]
    assert server.made_with["env"] == {**os.environ, "MODE": "x=1", "CI": ""}


def test_another_directory_brings_its_own_repo(nudge: Nudge, server: Server, repo: Path) -> None:
    """--cwd asks as if one stood there: its repo and branch come with it; it may be relative."""
    answer(server)
    (repo / "sub").mkdir()
    nudge("get", "a", "b", "--cwd", "sub")
    assert server.params["context"]["cwd"] == str(repo / "sub") and server.params["context"]["branch"] == "dev"
    nudge("get", "a", "b", "--cwd", "/")
    assert server.params["context"]["cwd"] == "/" and "repo" not in server.params["context"]


def test_a_directory_that_is_gone(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """From a deleted directory a hint is still found; only a relative --cwd has no meaning there."""
    answer(server)
    somewhere.rmdir()
    assert nudge("get", "a", "b").code == 0
    assert "cwd" not in server.params["context"]
    assert nudge("get", "a", "b", "--cwd", "x").code == 2


def test_a_directory_whose_name_is_no_text(
    nudge: Nudge, server: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that the server would refuse is as good as unknown, so commands work there too."""
    answer(server)
    odd = somewhere / "line\nbreak"
    odd.mkdir()
    monkeypatch.chdir(odd)
    assert nudge("get", "a", "b").code == 0
    assert "cwd" not in server.params["context"]


def test_a_miss_says_why(nudge: Nudge, server: Server) -> None:
    """Exit 1, one line, and under it each variant with the gate that keeps it out."""
    server.answers["nudge.get_hint"] = RemoteError(MISS)
    outcome = nudge("get", "http-proxy", "build")
    assert (outcome.code, outcome.out) == (1, "")
    first, second = outcome.err.splitlines()
    assert first.startswith("nudge: E_NOT_FOUND (40401): http-proxy/build exists") and "nudge ls" in first
    assert second == "  for branch dev or main, os linux: branch unknown, needs dev or main"


def test_a_miss_offers_what_there_is(nudge: Nudge, server: Server) -> None:
    """A wrong key shows the right ones."""
    data = {"reason": "E_NOT_FOUND", "why_not": [], "known_keys": ["build", "te\x1bst"]}
    server.answers["nudge.get_hint"] = RemoteError({"code": 40401, "message": "a has no key b", "data": data})
    assert nudge("get", "a", "b").err.splitlines()[1] == "  it has: build, te\\x1bst"


def test_json_errors(nudge: Nudge, server: Server) -> None:
    """With --json the error object is on stdout too, and the exit code is the same."""
    server.answers["nudge.get_hint"] = RemoteError(MISS)
    outcome = nudge("get", "a", "b", "--json")
    assert (outcome.code, json.loads(outcome.out), outcome.err) == (1, {"error": MISS}, "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RemoteError({"code": 40001, "message": "context.os: no", "data": {"reason": "E_INVALID"}}), 3),
        (RemoteError({"code": 50701, "message": "disk full", "data": {"reason": "E_STORAGE"}}), 3),
        (RemoteError({"code": 77777, "message": "new", "data": {"reason": "E_FROM_THE_FUTURE"}}), 3),
        (Unavailable("no server; start one with: nudge serve"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(nudge: Nudge, server: Server, error: BaseException, code: int) -> None:
    """3 is a refusal, 4 is no server; Ctrl-C ends quietly."""
    server.answers["nudge.get_hint"] = error
    outcome = nudge("get", "a", "b")
    assert outcome.code == code
    assert outcome.err.count("\n") == (0 if code == 130 else 1)


def test_value_only_and_json_exclude_each_other(nudge: Nudge, server: Server) -> None:
    """Two forms of output at once cannot be meant."""
    assert nudge("get", "a", "b", "--json", "--value-only").code == 2
    assert server.calls == []


def test_autostart_can_be_turned_off(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """NUDGE_AUTOSTART=0 reaches the client."""
    answer(server)
    nudge("get", "a", "b")
    assert server.made_with["autostart"] is True
    monkeypatch.setenv("NUDGE_AUTOSTART", "0")
    nudge("get", "a", "b")
    assert server.made_with["autostart"] is False


def test_a_broken_setting_names_itself(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that does not parse is refused by name, in one line."""
    monkeypatch.setenv("NUDGE_PORT", "many")
    outcome = nudge("get", "a", "b")
    assert outcome.code == 3 and "NUDGE_PORT" in outcome.err and outcome.err.count("\n") == 1


def test_text_that_stdout_cannot_carry(nudge: Nudge, server: Server) -> None:
    """An ASCII-only stdout gets the value escaped, never a crash."""
    answer(server, "één")
    outcome = nudge.on(Terminal("ascii"), "get", "a", "b")
    assert outcome.code == 0 and "\\xe9\\xe9n" in outcome.out
