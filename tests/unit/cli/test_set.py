from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from nudge.errors import RemoteError

from .conftest import HINT, Nudge, Server, Terminal

SECRET = {
    "code": 40002,
    "message": "value: looks like an AWS key; add --allow-secret",
    "data": {"reason": "E_SECRET_REJECTED", "field": "value"},
}


@pytest.fixture(autouse=True)
def stored(server: Server) -> None:
    server.answers["nudge.set_hint"] = {"hint": HINT}


def typed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_minimal(nudge: Nudge, server: Server) -> None:
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


def test_pretty(nudge: Nudge) -> None:
    """The answer names the hint and its version, then what its score starts from and where it is for."""
    assert nudge("set", "http-proxy", "build", "x").out.splitlines() == [
        "✔ upserted hint http-proxy/build (v3)",
        "  score base: priority=7 tags=build,docker ttl=session scope=cwd_glob",
        "  scope: cwd **/http-proxy*",
    ]


def test_pretty_of_a_bare_hint(nudge: Nudge, server: Server) -> None:
    """What was not said is not told; a hint for everywhere needs no second line for that."""
    server.answers["nudge.set_hint"] = {"hint": {**HINT, "meta": {}}}
    assert nudge("set", "a", "b", "c").out.splitlines() == [
        "✔ upserted hint a/b (v3)",
        "  score base: scope=everywhere",
    ]


def test_every_meta_flag(nudge: Nudge, server: Server) -> None:
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


def test_every_scope_flag(nudge: Nudge, server: Server) -> None:
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
def test_a_repo_is_the_default_scope(nudge: Nudge, server: Server) -> None:
    """Without a scope the hint is for the repo one is in, and the output says so and how to widen it."""
    server.answers["nudge.set_hint"] = {"hint": {**HINT, "meta": {"scope": {"repo": "git:org/x"}}}}
    outcome = nudge("set", "a", "b", "c")
    assert server.params["meta"]["scope"] == {"repo": "git:org/x"}
    assert "  scope: repo git:org/x (this repo; --global for everywhere)" in outcome.out.splitlines()


@pytest.mark.usefixtures("repo")
def test_global_and_explicit_scopes_stay_as_they_are(nudge: Nudge, server: Server) -> None:
    """The repo is added only where nothing was said."""
    nudge("set", "a", "b", "c", "--global")
    assert server.params["meta"]["scope"] == {}
    nudge("set", "a", "b", "c", "--scope-os", "linux")
    assert server.params["meta"]["scope"] == {"os": ["linux"]}


@pytest.mark.usefixtures("repo")
def test_a_dot_is_this_repo(nudge: Nudge, server: Server) -> None:
    """`--scope-repo .` joins the repo to other conditions without spelling its name."""
    nudge("set", "a", "b", "c", "--scope-repo", ".", "--scope-branch", "dev")
    assert server.params["meta"]["scope"] == {"repo": "git:org/x", "branch": ["dev"]}


def test_a_dot_needs_a_repo(nudge: Nudge) -> None:
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
def test_value_types(nudge: Nudge, server: Server, words: list[str], value: Any) -> None:
    """Five types; a flag that belongs to one implies it; what starts with a dash goes after `--`."""
    assert nudge("set", "a", "b", *words).code == 0
    assert server.params["value"] == value


@pytest.mark.parametrize(
    ("content", "value"), [(b"x\n", "x"), (b"x", "x"), (b"x\n\n", "x\n"), ("één\n".encode(), "één")]
)
def test_stdin(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, content: bytes, value: str) -> None:
    """`-` reads stdin, less the one newline that echo adds."""
    typed(monkeypatch, content)
    nudge("set", "a", "b", "-")
    assert server.params["value"] == value


def test_stdin_that_is_no_text(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are not UTF-8 are refused before a server hears of them."""
    typed(monkeypatch, b"\xff\xfe")
    assert nudge("set", "a", "b", "-").code == 2
    assert server.calls == []


@pytest.mark.parametrize("kind", ["string", "json"])
def test_stdin_that_is_a_document(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """What no hint can hold is refused as such, and neither cut nor sent."""
    typed(monkeypatch, b'"' + b"x" * 3_000_000 + b'"')
    outcome = nudge("set", "a", "b", "-", "--type", kind)
    assert (outcome.code, server.calls) == (3, [])
    assert outcome.err.startswith("nudge: E_INVALID (40001): value: must be at most 8192 bytes")


def test_home_is_expanded(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~/` in a path or a glob is the home, also where the shell did not see it; in a plain string it stays."""
    monkeypatch.setenv("HOME", "/home/ada")
    nudge("set", "a", "b", "~/code", "--type", "path", "--scope-cwd-glob", "~/code/**,~x")
    assert server.params["value"]["abs"] == "/home/ada/code"
    assert server.params["meta"]["scope"]["cwd_glob"] == ["/home/ada/code/**", "~x"]
    nudge("set", "a", "b", "~/code")
    assert server.params["value"] == "~/code"


def test_allow_secret(nudge: Nudge, server: Server) -> None:
    """--allow-secret marks the hint secret, which is what lets it pass."""
    nudge("set", "a", "b", "c", "--allow-secret")
    assert server.params["meta"]["sensitivity"] == "secret"


@pytest.mark.parametrize(
    "words",
    [
        ["--global", "--scope-os", "linux"],
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
def test_what_cannot_be_meant(nudge: Nudge, server: Server, words: list[str]) -> None:
    """A contradiction or an unreadable flag is one line and exit 2, and nothing is sent."""
    outcome = nudge("set", "a", "b", "c d", *words)
    assert outcome.code == 2
    assert outcome.err.startswith("nudge set: ") and outcome.err.count("\n") == 1
    assert server.calls == []


def test_a_secret_is_refused_with_the_way_out(nudge: Nudge, server: Server) -> None:
    """Exit 3, and one line with the code and the server's sentence, which names the flag that would let it pass."""
    server.answers["nudge.set_hint"] = RemoteError(SECRET)
    outcome = nudge("set", "a", "b", "c")
    assert outcome.code == 3
    assert outcome.err == "nudge: E_SECRET_REJECTED (40002): value: looks like an AWS key; add --allow-secret\n"


def test_flags_may_stand_anywhere(nudge: Nudge, server: Server) -> None:
    """Between the words, before the verb, after the last: it is the same command."""
    nudge("--json", "-p", "9000", "set", "a", "--tags", "x", "b", "c", "--global")
    assert (server.params["component"], server.params["key"], server.params["value"]) == ("a", "b", "c")
    assert server.made_with["port"] == 9000


def test_colour_only_on_a_terminal(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets colour, unless NO_COLOR or TERM=dumb asks for none."""
    assert "\x1b[" in nudge.on(Terminal(), "set", "a", "b", "c").out
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            plain = nudge.on(Terminal(), "set", "a", "b", "c").out
        assert "\x1b[" not in plain and "✔" in plain


def test_a_pipe_gets_no_colour(nudge: Nudge) -> None:
    """What a program reads is plain."""
    assert "\x1b" not in nudge("set", "a", "b", "c").out


def test_ascii_symbols(nudge: Nudge) -> None:
    """Where stdout cannot carry our symbols, words stand in for them."""
    outcome = nudge.on(Terminal("ascii"), "set", "a", "b", "c")
    assert outcome.code == 0 and outcome.out.isascii() and "ok" in outcome.out


def test_a_directory_that_is_gone(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """A command works from a directory that was deleted: there is just no repo to scope to."""
    somewhere.rmdir()
    assert nudge("set", "a", "b", "c").code == 0
    assert "scope" not in server.params["meta"]
