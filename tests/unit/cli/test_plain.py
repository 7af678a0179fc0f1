from __future__ import annotations

import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nudge.core.clock import iso
from nudge.core.errors import RemoteError, Unavailable
from tests.unit.cli.conftest import EXPLAIN, HINT, Nudge, Server, Terminal

# get

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


def test_get_pretty(nudge: Nudge, server: Server) -> None:
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


def test_get_shows_the_reason_of_the_author(nudge: Nudge, server: Server) -> None:
    """Below the value, on one line, without what could control a terminal."""
    answer(server, "make", reason="the router\nreads it\x1b")
    assert nudge("get", "a", "b").out.splitlines()[:3] == ["value: make", "reason: the router reads it\\x1b", "match:"]


def test_get_pretty_without_reasons(nudge: Nudge, server: Server) -> None:
    """A hint for everywhere that was never used fits for no reason in particular."""
    server.answers["nudge.get_hint"] = {"hint": HINT, "match_explain": {**EXPLAIN, "reasons": []}}
    assert nudge("get", "a", "b").out.splitlines()[1:] == ["match:", "  score: 0.92"]


def test_get_explain(nudge: Nudge, server: Server) -> None:
    """--explain adds what the score is made of and all that is known of the hint."""
    template = {"type": "template", "format": "jinja", "body": "{{ host }}", "defaults": {"host": "a", "port": "\x1b"}}
    result = answer(server, template, reason="custom image", added_by="agent:codex", sensitivity="normal")
    result["hint"]["last_used_at"] = "2026-11-16T09:00:00.000000Z"
    assert nudge("get", "http-proxy", "build", "--explain").out.splitlines() == [
        "value: {{ host }}  (template, jinja)",
        "reason: custom image",
        "about:",
        "  priority: 7",
        "  tags: build, docker",
        "  scope: cwd **/http-proxy*",
        "  v3, set 2026-11-16T08:30:00.000000Z (first 2026-11-16T08:00:00.000000Z), "
        "worked 4 times (last 2026-11-16T09:00:00.000000Z)",
        "  ttl: session",
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


def test_get_explain_of_a_bare_hint(nudge: Nudge, server: Server) -> None:
    """With nothing to say there is no empty line."""
    bare = {**HINT, "meta": {}, "updated_at": HINT["created_at"], "use_count": 0}
    server.answers["nudge.get_hint"] = {"hint": bare, "match_explain": EXPLAIN}
    assert nudge("get", "a", "b", "--explain").out.splitlines()[1:4] == [
        "about:",
        "  scope: everywhere",
        "  v3, set 2026-11-16T08:00:00.000000Z, worked 0 times",
    ]


def test_get_json_is_the_exact_result(nudge: Nudge, server: Server) -> None:
    """One line in a pipe, holding the result object and nothing else; --json may stand before the verb."""
    result = answer(server)
    for words in (["get", "a", "b", "--json"], ["--json", "get", "a", "b"]):
        outcome = nudge(*words)
        assert json.loads(outcome.out) == result and outcome.out.count("\n") == 1


def test_get_json_is_indented_on_a_terminal(nudge: Nudge, server: Server) -> None:
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
def test_get_value_only(nudge: Nudge, server: Server, value: Any, bare: str) -> None:
    """`$(nudge get ... --value-only)` is the bare value, of whatever type, and nothing else."""
    answer(server, value, sensitivity="secret")
    assert nudge("get", "a", "b", "--value-only").out == bare + "\n"


def test_get_value_only_cannot_steer_a_terminal(nudge: Nudge, server: Server) -> None:
    """Raw into a pipe; on a terminal control characters are spelled out even here."""
    answer(server, "a\x1b[2Jb")
    assert nudge.on(Terminal(), "get", "a", "b", "--value-only").out == "a\\x1b[2Jb\n"
    assert nudge("get", "a", "b", "--value-only").out == "a\x1b[2Jb\n"


def test_get_secret_values_are_not_shown(nudge: Nudge, server: Server) -> None:
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


def test_get_stored_text_cannot_steer_a_terminal(nudge: Nudge, server: Server) -> None:
    """Escapes, C1 controls and direction marks are spelled out wherever they were stored."""
    answer(server, "a\x1b]0;x\x07\nb\u202ec", reason="\x1b[31m", tags=["\x9b1m"])
    out = nudge("get", "a\x1b", "b", "--explain").out
    assert not set(out) & set("\x1b\x07\x9b\u202e")
    assert "  a\\x1b]0;x\\x07\n  b\\u202ec\n" in out


def test_get_kind_of_value(nudge: Nudge, server: Server) -> None:
    """A typed value says what it is."""
    answer(server, {"type": "command", "shell": "bash", "cmd": "make"})
    assert nudge("get", "a", "b").out.startswith("value: make  (command, bash)\n")


@pytest.mark.usefixtures("repo")
def test_get_context_is_found_out(nudge: Nudge, server: Server) -> None:
    """Where one stands is sent without a flag; the environment is not."""
    answer(server)
    nudge("get", "a", "b")
    context = server.params["context"]
    assert (context["cwd"], context["repo"], context["branch"]) == (os.getcwd(), "git:github.com/org/x", "dev")
    assert context["os"] in ("linux", "darwin", "windows") and "env" not in context


@pytest.mark.usefixtures("repo")
def test_get_context_flags_win(nudge: Nudge, server: Server) -> None:
    """Each part of the context can be said instead; --env stands before the real environment, for the names a scope
    asks for."""
    answer(server)
    nudge(
        "get", "a", "b", "--repo", "git:o/y", "--branch", "main", "--os", "windows", "--env", "MODE=x=1", "--env", "CI="
    )
    assert server.params["context"] | {"repo": "git:o/y", "branch": "main", "os": "windows"} == server.params["context"]
    assert server.made_with["env"] == {**os.environ, "MODE": "x=1", "CI": ""}


def test_get_another_directory_brings_its_own_repo(nudge: Nudge, server: Server, repo: Path) -> None:
    """--cwd asks as if one stood there: its repo and branch come with it; it may be relative."""
    answer(server)
    (repo / "sub").mkdir()
    nudge("get", "a", "b", "--cwd", "sub")
    assert server.params["context"]["cwd"] == str(repo / "sub") and server.params["context"]["branch"] == "dev"
    nudge("get", "a", "b", "--cwd", "/")
    assert server.params["context"]["cwd"] == "/" and "repo" not in server.params["context"]


def test_get_a_directory_that_is_gone(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """From a deleted directory a hint is still found; only a relative --cwd has no meaning there."""
    answer(server)
    somewhere.rmdir()
    assert nudge("get", "a", "b").code == 0
    assert "cwd" not in server.params["context"]
    assert nudge("get", "a", "b", "--cwd", "x").code == 2


def test_get_a_directory_whose_name_is_no_text(
    nudge: Nudge, server: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that the server would refuse is as good as unknown, so commands work there too."""
    answer(server)
    odd = somewhere / "line\nbreak"
    odd.mkdir()
    monkeypatch.chdir(odd)
    assert nudge("get", "a", "b").code == 0
    assert "cwd" not in server.params["context"]


def test_get_a_miss_says_why(nudge: Nudge, server: Server) -> None:
    """Exit 1, one line, and under it each variant with the gate that keeps it out."""
    server.answers["nudge.get_hint"] = RemoteError(MISS)
    outcome = nudge("get", "http-proxy", "build")
    assert (outcome.code, outcome.out) == (1, "")
    first, second = outcome.err.splitlines()
    assert first.startswith("nudge: E_NOT_FOUND (40401): http-proxy/build exists") and "nudge ls" in first
    assert second == "  for branch dev or main, os linux: branch unknown, needs dev or main"


def test_get_a_miss_offers_what_there_is(nudge: Nudge, server: Server) -> None:
    """A wrong key shows the right ones."""
    data = {"reason": "E_NOT_FOUND", "why_not": [], "known_keys": ["build", "te\x1bst"]}
    server.answers["nudge.get_hint"] = RemoteError({"code": 40401, "message": "a has no key b", "data": data})
    assert nudge("get", "a", "b").err.splitlines()[1] == "  it has: build, te\\x1bst"


def test_get_json_errors(nudge: Nudge, server: Server) -> None:
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
def test_get_exit_codes(nudge: Nudge, server: Server, error: BaseException, code: int) -> None:
    """3 is a refusal, 4 is no server; Ctrl-C ends quietly."""
    server.answers["nudge.get_hint"] = error
    outcome = nudge("get", "a", "b")
    assert outcome.code == code
    assert outcome.err.count("\n") == (0 if code == 130 else 1)


def test_get_value_only_and_json_exclude_each_other(nudge: Nudge, server: Server) -> None:
    """Two forms of output at once cannot be meant."""
    assert nudge("get", "a", "b", "--json", "--value-only").code == 2
    assert server.calls == []


def test_get_autostart_can_be_turned_off(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """NUDGE_AUTOSTART=0 reaches the client."""
    answer(server)
    nudge("get", "a", "b")
    assert server.made_with["autostart"] is True
    monkeypatch.setenv("NUDGE_AUTOSTART", "0")
    nudge("get", "a", "b")
    assert server.made_with["autostart"] is False


def test_get_a_broken_setting_names_itself(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that does not parse is refused by name, in one line."""
    monkeypatch.setenv("NUDGE_PORT", "many")
    outcome = nudge("get", "a", "b")
    assert outcome.code == 3 and "NUDGE_PORT" in outcome.err and outcome.err.count("\n") == 1


def test_get_text_that_stdout_cannot_carry(nudge: Nudge, server: Server) -> None:
    """An ASCII-only stdout gets the value escaped, never a crash."""
    answer(server, "één")
    outcome = nudge.on(Terminal("ascii"), "get", "a", "b")
    assert outcome.code == 0 and "\\xe9\\xe9n" in outcome.out


# set


SECRET = {
    "code": 40002,
    "message": 'value: looks like an AWS key; to keep it anyway, set meta.sensitivity to "secret"',
    "data": {"reason": "E_SECRET_REJECTED", "field": "value"},
}


@pytest.fixture(autouse=True)
def saved(server: Server) -> None:
    server.answers["nudge.set_hint"] = {"hint": HINT}


def typed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_set_minimal(nudge: Nudge, server: Server) -> None:
    """Three words store a string that a user said; outside a repository it has no scope."""
    outcome = nudge("set", "http-proxy", "build", "docker compose build router")
    assert outcome.code == 0
    assert server.calls == [
        (
            "nudge.set_hint",
            {
                "component": "http-proxy",
                "key": "build",
                "value": "docker compose build router",
                "meta": {"source": "user"},
            },
        )
    ]


def test_set_pretty(nudge: Nudge) -> None:
    """The answer names the hint and its version, then what was said of it, where it is for, and how long."""
    assert nudge("set", "http-proxy", "build", "x").out.splitlines() == [
        "✔ saved http-proxy/build (v3)",
        "  priority: 7",
        "  tags: build, docker",
        "  scope: cwd **/http-proxy*",
        "  kept: until it is not used for 30 days",
    ]


def test_set_pretty_of_a_bare_hint(nudge: Nudge, server: Server) -> None:
    """What was not said is not told, but the scope always."""
    server.answers["nudge.set_hint"] = {"hint": {**HINT, "meta": {}}}
    assert nudge("set", "a", "b", "c").out.splitlines() == [
        "✔ saved a/b (v3)",
        "  scope: everywhere",
        "  kept: until it is not used for 30 days",
    ]


def test_set_every_meta_flag(nudge: Nudge, server: Server) -> None:
    """Each field of meta has its flag; tags come with commas, or by repeating it."""
    nudge(
        *(
            "set",
            "a",
            "b",
            "c",
            "--tags",
            "build",
            "--tags",
            "docker",
            "--priority",
            "7",
            "--confidence",
            "0.8",
            "--ttl",
            "PT2H",
        ),
        *("--reason", "custom image", "--sensitivity", "normal", "--source", "agent", "--added-by", "agent:codex"),
        *("--if-match-version", "12", "--global"),
    )
    assert server.params["if_match_version"] == 12
    assert server.params["meta"] == {
        "reason": "custom image",
        "tags": ["build", "docker"],
        "priority": 7,
        "confidence": 0.8,
        "ttl": "PT2H",
        "sensitivity": "normal",
        "source": "agent",
        "added_by": "agent:codex",
        "scope": {},
    }


def test_set_every_scope_flag(nudge: Nudge, server: Server) -> None:
    """Each field of a scope has its flag; lists come with commas, or by repeating it."""
    nudge(
        *("set", "a", "b", "c", "--scope-cwd-glob", "**/http-proxy*,/srv/{x,y}/**", "--scope-cwd-glob", "/opt/**"),
        *(
            "--scope-repo",
            "git:org/x",
            "--scope-branch",
            "dev,main",
            "--scope-branch",
            "hotfix/*",
            "--scope-os",
            "linux,darwin",
        ),
        *(
            "--scope-env",
            "CI,DEBUG",
            "--scope-env-match",
            "MODE=a,b",
            "--scope-env-match",
            "MODE=c",
            "--scope-env-match",
            "T=1",
        ),
    )
    assert server.params["meta"]["scope"] == {
        "cwd_glob": ["**/http-proxy*", "/srv/{x,y}/**", "/opt/**"],
        "repo": "git:org/x",
        "branch": ["dev", "main", "hotfix/*"],
        "os": ["linux", "darwin"],
        "env_required": ["CI", "DEBUG"],
        "env_match": {"MODE": ["a", "b", "c"], "T": ["1"]},
    }


@pytest.mark.usefixtures("repo")
def test_set_a_repo_is_the_default_scope(nudge: Nudge, server: Server) -> None:
    """Without a scope the hint is for the repo one is in, and the output says so and how to widen it."""
    server.answers["nudge.set_hint"] = {"hint": {**HINT, "meta": {"scope": {"repo": "git:github.com/org/x"}}}}
    outcome = nudge("set", "a", "b", "c")
    assert "scope" not in server.params["meta"] and server.context["repo"] == "git:github.com/org/x"
    assert "  scope: repo git:github.com/org/x (this repo; --global for everywhere)" in outcome.out.splitlines()


@pytest.mark.usefixtures("repo")
def test_an_explicit_condition_keeps_the_repo_unless_global(nudge: Nudge, server: Server) -> None:
    """The server adds it, whatever the condition; another repo that is named, or any, takes its place."""
    nudge("set", "a", "b", "c", "--global")
    assert server.params["meta"]["scope"] == {}
    nudge("set", "a", "b", "c", "--scope-os", "linux")
    assert server.params["meta"]["scope"] == {"os": ["linux"]} and server.context["repo"] == "git:github.com/org/x"
    nudge("set", "a", "b", "c", "--scope-os", "linux", "--global")
    assert server.params["meta"]["scope"] == {"os": ["linux"], "repo": []}
    nudge("set", "a", "b", "c", "--scope-os", "linux", "--scope-repo", "git:org/y")
    assert server.params["meta"]["scope"] == {"os": ["linux"], "repo": "git:org/y"}


@pytest.mark.usefixtures("repo")
def test_set_a_dot_is_this_repo(nudge: Nudge, server: Server) -> None:
    """`--scope-repo .` joins the repo to other conditions without spelling its name."""
    nudge("set", "a", "b", "c", "--scope-repo", ".", "--scope-branch", "dev")
    assert server.params["meta"]["scope"] == {"repo": "git:github.com/org/x", "branch": ["dev"]}


def test_set_a_dot_needs_a_repo(nudge: Nudge) -> None:
    """Outside a repository there is no `.` to mean."""
    outcome = nudge("set", "a", "b", "c", "--scope-repo", ".")
    assert outcome.code == 2 and "no" in outcome.err


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["x", "--type", "string"], "x"),
        (["make", "--type", "command"], {"type": "command", "cmd": "make"}),
        (["make", "--shell", "bash"], {"type": "command", "shell": "bash", "cmd": "make"}),
        (["/srv/x", "--type", "path"], {"type": "path", "abs": "/srv/x"}),
        (["/srv/x", "--os", "linux", "--os", "darwin"], {"type": "path", "os": ["linux", "darwin"], "abs": "/srv/x"}),
        (["hi {{n}}", "--format", "mustache"], {"type": "template", "format": "mustache", "body": "hi {{n}}"}),
        (
            ["hi {{n}}", "--type", "template", "--format", "jinja", "--default", "n=a=b", "--default", "m="],
            {"type": "template", "format": "jinja", "body": "hi {{n}}", "defaults": {"n": "a=b", "m": ""}},
        ),
        (['{"http": [8080]}', "--type", "json"], {"type": "json", "data": {"http": [8080]}}),
        (["--", "--verbose"], "--verbose"),
        (["-5"], "-5"),
    ],
)
def test_set_value_types(nudge: Nudge, server: Server, words: list[str], value: Any) -> None:
    """Five types; a flag that belongs to one implies it; what starts with a dash goes after `--`."""
    assert nudge("set", "a", "b", *words).code == 0
    assert server.params["value"] == value


@pytest.mark.parametrize(
    ("content", "value"), [(b"x\n", "x"), (b"x", "x"), (b"x\n\n", "x\n"), ("één\n".encode(), "één")]
)
def test_set_stdin(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, content: bytes, value: str) -> None:
    """`-` reads stdin, less the one newline that echo adds."""
    typed(monkeypatch, content)
    nudge("set", "a", "b", "-")
    assert server.params["value"] == value


def test_set_stdin_that_is_no_text(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are not UTF-8 are refused before a server hears of them."""
    typed(monkeypatch, b"\xff\xfe")
    assert nudge("set", "a", "b", "-").code == 2
    assert server.calls == []


@pytest.mark.parametrize("kind", ["string", "json"])
def test_set_stdin_that_is_a_document(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """What no hint can hold is refused as such, and neither cut nor sent."""
    typed(monkeypatch, b'"' + b"x" * 3_000_000 + b'"')
    outcome = nudge("set", "a", "b", "-", "--type", kind)
    assert (outcome.code, server.calls) == (3, [])
    assert outcome.err.startswith("nudge: E_INVALID (40001): value: must be at most 8192 bytes")


def test_set_home_is_expanded(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~/` in a path or a glob is the home, also where the shell did not see it; in a plain string it stays."""
    monkeypatch.setenv("HOME", "/home/ada")
    nudge("set", "a", "b", "~/code", "--type", "path", "--scope-cwd-glob", "~/code/**,~x")
    assert server.params["value"]["abs"] == "/home/ada/code"
    assert server.params["meta"]["scope"]["cwd_glob"] == ["/home/ada/code/**", "~x"]
    nudge("set", "a", "b", "~/code")
    assert server.params["value"] == "~/code"


def test_set_allow_secret(nudge: Nudge, server: Server) -> None:
    """--allow-secret marks the hint secret, which is what lets it pass."""
    nudge("set", "a", "b", "c", "--allow-secret")
    assert server.params["meta"]["sensitivity"] == "secret"


@pytest.mark.parametrize(
    "words",
    [
        ["--global", "--scope-repo", "git:org/x"],
        ["--allow-secret", "--sensitivity", "normal"],
        ["--type", "template"],
        ["--type", "json"],
        ["--type", "json", "--shell", "bash"],
        ["--shell", "bash", "--format", "jinja"],
        ["--scope-branch", ""],
        ["--scope-cwd-glob", ","],
        ["--scope-env-match", "MODE"],
        ["--priority", "high"],
        ["--confidence", "nan"],
        ["--type", "yaml"],
        ["--prio", "3"],
    ],
)
def test_set_what_cannot_be_meant(nudge: Nudge, server: Server, words: list[str]) -> None:
    """A contradiction or an unreadable flag is one line and exit 2, and nothing is sent."""
    outcome = nudge("set", "a", "b", "c d", *words)
    assert outcome.code == 2
    assert outcome.err.startswith("nudge set: ") and outcome.err.count("\n") == 1
    assert server.calls == []


def test_set_a_secret_is_refused_with_the_way_out(nudge: Nudge, server: Server) -> None:
    """Exit 3, and one line with the code and the server's finding, and the flag that would let it pass."""
    server.answers["nudge.set_hint"] = RemoteError(SECRET)
    outcome = nudge("set", "a", "b", "c")
    assert outcome.code == 3
    assert outcome.err == (
        "nudge: E_SECRET_REJECTED (40002): value: looks like an AWS key; to keep it anyway, add --allow-secret\n"
    )


def test_set_flags_may_stand_anywhere(nudge: Nudge, server: Server) -> None:
    """Between the words, before the verb, after the last: it is the same command."""
    nudge("--json", "-p", "9000", "set", "a", "--tags", "x", "b", "c", "--global")
    assert (server.params["component"], server.params["key"], server.params["value"]) == ("a", "b", "c")
    assert server.made_with["port"] == 9000


def test_set_colour_only_on_a_terminal(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets colour, unless NO_COLOR or TERM=dumb asks for none."""
    assert "\x1b[" in nudge.on(Terminal(), "set", "a", "b", "c").out
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            plain = nudge.on(Terminal(), "set", "a", "b", "c").out
        assert "\x1b[" not in plain and "✔" in plain


def test_set_a_pipe_gets_no_colour(nudge: Nudge) -> None:
    """What a program reads is plain."""
    assert "\x1b" not in nudge("set", "a", "b", "c").out


def test_set_ascii_symbols(nudge: Nudge) -> None:
    """Where stdout cannot carry our symbols, words stand in for them."""
    outcome = nudge.on(Terminal("ascii"), "set", "a", "b", "c")
    assert outcome.code == 0 and outcome.out.isascii() and "ok" in outcome.out


def test_set_a_directory_that_is_gone(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """A command works from a directory that was deleted: there is just no repo to scope to."""
    somewhere.rmdir()
    assert nudge("set", "a", "b", "c").code == 0
    assert "scope" not in server.params["meta"]


# bump


@pytest.mark.parametrize(
    ("words", "delta", "line"),
    [
        ([], 1, "↑ counted a success: worked 4 times, last now\n"),
        (["--delta", "3"], 3, "↑ counted 3 successes: worked 4 times, last now\n"),
        (["--delta", "-1"], -1, "↓ counted a failure: worked 4 times\n"),
    ],
)
def test_bump(nudge: Nudge, server: Server, words: list[str], delta: int, line: str) -> None:
    """Credit goes to what `get` gives here, so where we are goes along; a negative one counts failures."""
    server.answers["nudge.bump"] = {"hint": HINT}
    assert nudge("bump", "http-proxy", "build", *words).out == line
    assert server.params["delta"] == delta and "os" in server.context and "context" not in server.params
    nudge("bump", "http-proxy", "build", *words, "--os", "windows")
    assert server.params["context"]["os"] == "windows" and server.context is None


def test_conflict_says_how_to_go_on(nudge: Nudge, server: Server) -> None:
    """Exit 3, and the server's own sentence, which names the version there is."""
    server.answers["nudge.set_hint"] = RemoteError(
        {"code": 40901, "message": "it is at 4", "data": {"reason": "E_CONFLICT"}}
    )
    outcome = nudge("set", "a", "b", "c", "--if-match-version", "3")
    assert outcome.code == 3 and "it is at 4" in outcome.err


def test_bump_of_a_hint_that_fails(nudge: Nudge, server: Server) -> None:
    """Both counts are printed, and what the server says about it."""
    server.answers["nudge.bump"] = {"hint": {**HINT, "failure_count": 5}, "note": "set it right"}
    outcome = nudge("bump", "http-proxy", "build", "--delta", "-1")
    assert outcome.out == "↓ counted a failure: worked 4 times, failed 5 times\n  set it right\n"
    used = {**HINT, "last_used_at": iso(time.time() - 7_300)}
    server.answers["nudge.bump"] = {"hint": used}
    outcome = nudge("bump", "http-proxy", "build", "--delta", "-1")
    assert outcome.out == "↓ counted a failure: worked 4 times, last 2h ago\n"
