from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nudge.core.errors import RemoteError
from tests.unit.cli.conftest import EXPLAIN, HINT, Nudge, Server, Terminal, Typed


def hit(key: str, value: str, **meta: object) -> dict[str, object]:
    hint = {**HINT, "value": value, "meta": meta}
    return {"component": "api", "key": key, "hint": hint, "score": 0.876, "match_explain": EXPLAIN}


def test_query_sends_what_was_asked(nudge: Nudge, server: Server) -> None:
    """Every filter has its flag; what was not asked for is not sent."""
    server.answers["nudge.query"] = {"hints": []}
    lists = ("--keys", "build", "--keys", "run", "--tags", "a,b", "--tags", "c")
    nudge("query", "--component", "api", *lists, "--regex", "dock.*build", "--limit", "5", "--branch", "dev")
    sent = dict(server.params)
    assert sent.pop("context")["branch"] == "dev"
    assert sent == {
        "component": "api",
        "keys": ["build", "run"],
        "tags": ["a", "b", "c"],
        "regex": "dock.*build",
        "limit": 5,
    }


def test_query_text(nudge: Nudge, server: Server) -> None:
    """Plain words are `text`; --regex is the other."""
    server.answers["nudge.query"] = {"hints": []}
    nudge("query", "--limit", "3", "a.b (c)")
    assert server.params["text"] == "a.b (c)" and "regex" not in server.params
    assert nudge("query", "x", "--regex", "y").code == 2
    nudge("query", "")
    assert server.params["text"] == "", "an unset variable in a script must not find everything"


def test_query_says_when_there_are_more(nudge: Nudge, server: Server) -> None:
    """On stderr: stdout is for the results."""
    server.answers["nudge.query"] = {"hints": [hit("build", "a")], "more": True}
    assert nudge("query", "x").err == "more hints match; add words or use --limit 20\n"


STORED = {
    "value": "v",
    "meta": {},
    "version": 1,
    "created_at": "2026-11-16T08:00:00.000000Z",
    "updated_at": "2026-11-16T08:00:00.000000Z",
}


@pytest.fixture
def answering(server: Server) -> Server:
    """A server that has every hint."""
    explain = {"matched": True, "score": 0.5, "components": {}, "reasons": []}
    server.answers["nudge.get_hint"] = {"hint": STORED, "match_explain": explain}
    server.answers["nudge.delete_hint"] = {"deleted": True, "previous": STORED}
    server.answers["nudge.set_hint"] = server.answers["nudge.bump"] = {"hint": STORED}
    return server


VARIANTS = [{**HINT, "meta": {"scope": {"repo": "git:org/x", "os": ["linux"]}}}, {**HINT, "meta": {}}]
SCOPES = "repo git:org/x, os linux; everywhere"
ONE_WORD = {"component": "shop", "key": "test"}


@pytest.mark.parametrize("verb", ["get", "bump", "delete"])
def test_a_name_in_one_word(nudge: Nudge, answering: Server, verb: str) -> None:
    """`shop/test` works everywhere that `shop test` does, with and without the thin front."""
    for more in ([], ["--json"]):
        nudge(verb, "shop/test", *more)
        assert answering.params["component"] == "shop" and answering.params["key"] == "test"
    nudge(verb, "libs/shop", "test")
    assert (answering.params["component"], answering.params["key"]) == ("libs/shop", "test")


def test_set_with_a_name_in_one_word(nudge: Nudge, answering: Server) -> None:
    """The value is the second word then."""
    for more in ([], ["--priority", "3"]):
        nudge("set", "shop/test", "make test", *more)
        assert {name: answering.params[name] for name in ("component", "key", "value")} == {
            **ONE_WORD,
            "value": "make test",
        }
    assert nudge("set", "shop", "test").code == 2


@pytest.mark.parametrize(("ttl", "stored"), [("30d", "P30D"), ("12h", "PT12H"), ("90m", "PT90M"), ("PT2H", "PT2H")])
def test_ttl_takes_30d_and_12h_beside_iso(nudge: Nudge, answering: Server, ttl: str, stored: str) -> None:
    """What is stored is ISO-8601."""
    nudge("set", "a", "b", "c", "--ttl", ttl)
    assert answering.params["meta"]["ttl"] == stored


def test_get_with_a_component_lists_its_keys(nudge: Nudge, server: Server) -> None:
    """A component that is not there is not found."""
    entry = {"key": "test", "hint": {"value": "make test", "meta": {}}, "eligible": True, "reasons": []}
    server.answers["nudge.list_components"] = {"components": [{"name": "shop", "hint_count": 1}], "hints": [entry]}
    assert "test  make test" in nudge("get", "shop").out
    server.answers["nudge.list_components"] = {"components": [], "hints": []}
    assert nudge("get", "shop").code == 1


def test_delete_with_a_component_asks_and_deletes_all_of_it(nudge: Nudge, answering: Server) -> None:
    """Without a terminal it needs --yes; every key goes once, with all its variants."""
    entries = [{"key": key, "hint": {"value": "v", "meta": {}}} for key in ("build", "test", "test")]
    answering.answers["nudge.list_components"] = {"components": [{"name": "shop", "hint_count": 3}], "hints": entries}
    assert nudge("delete", "shop").code == 2
    assert nudge("delete", "shop", "--yes").out == "✔ deleted shop (3 hints)\n"
    deleted = [params for operation, params in answering.calls if operation == "nudge.delete_hint"]
    assert deleted == [{"component": "shop", "key": "build"}, {"component": "shop", "key": "test"}]


def test_delete_of_a_component_that_is_declined(nudge: Nudge, answering: Server, typed: Typed) -> None:
    """Nothing is deleted, which is a refusal and no wrong usage."""
    entries = [{"key": "build", "hint": {"value": "v", "meta": {}}}]
    answering.answers["nudge.list_components"] = {"components": [{"name": "shop", "hint_count": 1}], "hints": entries}
    typed.lines = ["n"]
    outcome = nudge("delete", "shop")
    assert (outcome.code, outcome.err) == (3, "Delete shop with 1 hint? [y/N] nothing was deleted\n")
    assert [operation for operation, _ in answering.calls] == ["nudge.list_components"]


def test_query_pretty(nudge: Nudge, server: Server) -> None:
    """Score, name and value in columns, the reasons below; secrets hidden, lines kept whole."""
    server.answers["nudge.query"] = {"hints": [hit("build", "a\nb"), hit("long-key", "s3cret", sensitivity="secret")]}
    lines = nudge("query", "x").out.splitlines()
    assert lines[0] == "0.88  api/build     a\\nb"
    assert lines[1] == "      cwd matched **/http-proxy*; recently used (5m ago)"
    assert lines[2] == "0.88  api/long-key  [secret]"


def test_query_and_ls_show_the_reason_of_the_author(nudge: Nudge, server: Server) -> None:
    """On a line of its own, before why the hint matches and where it applies."""
    reason = {"reason": "the base image moved"}
    server.answers["nudge.query"] = {"hints": [hit("build", "make", **reason)]}
    assert nudge("query", "x").out.splitlines()[1:] == [
        "      reason: the base image moved",
        "      cwd matched **/http-proxy*; recently used (5m ago)",
    ]
    entry = {"key": "build", "hint": {**HINT, "meta": reason}, "eligible": True, "reasons": []}
    server.answers["nudge.list_components"] = {"components": [{"name": "api", "hint_count": 1}], "hints": [entry]}
    for words in (["ls", "api"], ["get", "api"]):
        assert nudge(*words).out.splitlines()[1:] == ["         reason: the base image moved", "         everywhere"]


def test_query_says_that_it_found_some_of_the_words(nudge: Nudge, server: Server) -> None:
    """A remark beside what has only some of the words; none where the first has all of them."""
    whole, partial = hit("build", "a"), {**hit("test", "b"), "partial": True}
    server.answers["nudge.query"] = {"hints": [partial]}
    assert "has all of these words" in nudge("query", "a b c d").err
    assert nudge("query", "a b c d", "--json").err == ""
    server.answers["nudge.query"] = {"hints": [whole, partial]}
    assert nudge("query", "a b c d").err == ""


def test_query_finds_nothing(nudge: Nudge, server: Server) -> None:
    """An empty list is an answer: exit 0, nothing on stdout, a remark beside it."""
    server.answers["nudge.query"] = {"hints": []}
    outcome = nudge("query", "x")
    assert (outcome.code, outcome.out) == (0, "") and "nudge ls" in outcome.err
    assert nudge("query", "x", "--json").err == ""


def test_query_says_why_not(nudge: Nudge, server: Server) -> None:
    """What would have matched elsewhere is named beside the empty answer, with what keeps it away."""
    misses = [
        {"component": "api", "key": "ru\x1bn", "reasons": ["os=linux, needs darwin", "branch unknown, needs dev"]}
    ]
    server.answers["nudge.query"] = {"hints": [], "why_not": misses}
    outcome = nudge("query", "x")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines() == [
        "the hints that match do not apply here; list all hints with: nudge ls",
        "  api/ru\\x1bn: os=linux, needs darwin; branch unknown, needs dev",
    ]


def test_long_values_are_cut_on_a_terminal_only(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row fits the terminal; a pipe gets everything."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    server.answers["nudge.query"] = {"hints": [hit("build", "x" * 200), hit("test", "宽" * 100)]}
    rows = [line for line in nudge.on(Terminal(), "query", "x").out.splitlines() if line.startswith("0.88")]
    assert all("…" in row for row in rows) and len(rows[0]) <= 60 and len(rows[1]) <= 45
    assert "x" * 200 in nudge("query", "x").out


@pytest.mark.parametrize("verb", ["ls", "list-components"])
def test_ls(nudge: Nudge, server: Server, verb: str) -> None:
    """Components with their counts; plain `nudge ls` marks what applies here."""
    server.answers["nudge.list_components"] = {
        "components": [
            {"name": "api", "hint_count": 1, "eligible_count": 1},
            {"name": "proxy", "hint_count": 3, "eligible_count": 2},
            {"name": "web", "hint_count": 2, "eligible_count": 0},
        ]
    }
    assert nudge(verb).out.splitlines() == [
        "● api    1 hint",
        "● proxy  3 hints, 2 for here",
        "○ web    2 hints, none for here",
    ]
    assert server.params.keys() == {"context"}


def test_ls_component(nudge: Nudge, server: Server) -> None:
    """Every variant is there; the ones that are not for here say why."""
    server.answers["nudge.list_components"] = {
        "components": [{"name": "api", "hint_count": 2}],
        "hints": [
            {"key": "build", "hint": HINT, "eligible": True, "reasons": []},
            {"key": "run", "hint": {**HINT, "meta": {}}, "eligible": False, "reasons": ["branch=x, needs dev"]},
        ],
    }
    assert nudge("ls", "api").out.splitlines() == [
        "● build  docker compose build router",
        "         cwd **/http-proxy*",
        "○ run    docker compose build router",
        "         everywhere (not here: branch=x, needs dev)",
    ]
    assert server.params["component"] == "api" and "os" in server.params["context"]


def test_ls_of_nothing(nudge: Nudge, server: Server) -> None:
    """An empty store says how to fill it; a component that does not exist is not found, or with --json an
    empty list."""
    server.answers["nudge.list_components"] = {"components": [], "hints": []}
    assert "nudge set" in nudge("ls").err
    outcome = nudge("ls", "api")
    assert outcome.code == 1 and outcome.err == nudge("get", "api").err
    assert outcome.err == "nudge: E_NOT_FOUND (40401): component api is not known; list all with: nudge ls\n"
    as_json = nudge("ls", "api", "--json")
    assert as_json.code == 0 and json.loads(as_json.out) == {"components": [], "hints": []}
    server.answers["nudge.list_components"]["note"] = "the hints of the last session are gone"
    assert nudge("ls", "api").err.endswith("nudge ls; the hints of the last session are gone\n")


def test_an_end_of_options_with_nothing_behind_it(nudge: Nudge, server: Server) -> None:
    """A script may write it always, whether words follow or not."""
    server.answers["nudge.list_components"] = {"components": []}
    assert nudge("ls", "--").code == 0 and server.params.keys() == {"context"}


@pytest.mark.parametrize("verb", ["delete", "rm"])
def test_delete(nudge: Nudge, server: Server, verb: str) -> None:
    """Without a scope all variants go; with one, that one; --global is the one for everywhere."""
    server.answers["nudge.delete_hint"] = {"deleted": True, "previous": HINT}
    assert nudge(verb, "api", "build").out == "✔ deleted hint api/build (v3, cwd **/http-proxy*)\n"
    assert server.params == {"component": "api", "key": "build"}
    nudge(verb, "api", "build", "--scope-os", "windows")
    assert server.params["scope"] == {"os": ["windows"]}
    nudge(verb, "api", "build", "--global")
    assert server.params["scope"] == {}


def test_delete_several(nudge: Nudge, server: Server) -> None:
    """When several variants go, their number is said, and where each applied."""
    server.answers["nudge.delete_hint"] = {"deleted": True, "previous": VARIANTS}
    assert nudge("delete", "api", "build").out == f"✔ deleted hint api/build (2 variants: {SCOPES})\n"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 3)])
def test_delete_of_several_asks(nudge: Nudge, server: Server, typed: Typed, answer: str, code: int) -> None:
    """At a terminal, naming the scopes: a variant may be of another repo. --yes, or a scope, goes ahead."""
    entries = [{"key": "build", "hint": variant} for variant in VARIANTS]
    server.answers["nudge.list_components"] = {"hints": [*entries, {"key": "test", "hint": HINT}]}
    server.answers["nudge.delete_hint"] = {"deleted": True, "previous": VARIANTS}
    typed.lines = [answer]
    outcome = nudge("delete", "api", "build")
    said = "" if answer == "y" else "nothing was deleted\n"
    assert (outcome.code, outcome.err) == (code, f"Delete all 2 variants of api/build ({SCOPES})? [y/N] {said}")
    assert ("nudge.delete_hint" in dict(server.calls)) == (answer == "y")
    for words in (["build", "--yes"], ["build", "--global"], ["test"]):
        assert nudge("delete", "api", *words).err == ""


def test_delete_misses_a_variant(nudge: Nudge, server: Server) -> None:
    """A scope that no variant has shows the scopes that there are."""
    data = {"reason": "E_NOT_FOUND", "why_not": [], "scopes": [{"os": ["linux"]}, {}]}
    server.answers["nudge.delete_hint"] = RemoteError({"code": 40401, "message": "no variant", "data": data})
    outcome = nudge("delete", "api", "build", "--scope-os", "windows")
    assert outcome.code == 1
    assert outcome.err.splitlines()[1:] == ["  there is one for os linux", "  there is one for everywhere"]


# scan

MAKEFILE = "build:\n\tcc x.c\n\ntest:\n\t./t\n"


def scan_entry(component: str, key: str, cmd: str, reason: str) -> dict[str, Any]:
    return {"component": component, "key": key, "value": {"type": "command", "cmd": cmd}, "reason": reason}


@pytest.fixture(autouse=True)
def scan_result(server: Server) -> None:
    server.answers["nudge.scan"] = {
        "added": [scan_entry("x", "build", "make build", "Makefile:1")],
        "updated": [scan_entry("x", "test", "make test", "Makefile:4")],
        "removed": [scan_entry("x", "lint", "make lint", "Makefile:9")],
        "kept": [scan_entry("x", "run", "make run", "Makefile:7")],
        "unchanged": 2,
        "skipped": [{"component": "x", "key": "format", "reason": "value.cmd looks like a key"}],
    }


def test_scan_sends_what_the_manifests_say(
    nudge: Nudge, server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From anywhere in the repo, its root is read; commands go as typed values with the line they come from."""
    (repo / "Makefile").write_text(MAKEFILE)
    (repo / "sub").mkdir()
    monkeypatch.chdir(repo / "sub")
    assert nudge("scan").code == 0
    assert (server.params["repo"], server.params["dry_run"]) == ("git:github.com/org/x", False)
    built = server.params["commands"][0]
    assert built.pop("files").keys() == {"Makefile"}
    assert built == scan_entry("x", "build", "make build", "Makefile:1")


@pytest.mark.usefixtures("repo")
def test_scan_pretty(nudge: Nudge) -> None:
    """A mark for each outcome, then the sum; what was passed over is a remark."""
    outcome = nudge("scan")
    assert outcome.out.splitlines() == [
        "+ x/build  make build  Makefile:1",
        "~ x/test   make test  Makefile:4",
        "- x/lint   make lint  Makefile:9",
        "= x/run    make run  Makefile:7",
        "✔ 1 added, 1 updated, 1 removed, 1 kept, 2 unchanged (kept: set by a person or an agent, or learned)",
    ]
    assert outcome.err == "skipped: x/format: value.cmd looks like a key\n"


@pytest.mark.usefixtures("repo")
def test_scan_dry_run(nudge: Nudge, server: Server) -> None:
    """--dry-run reaches the server, and the output does not claim that anything was set."""
    last = nudge("scan", "--dry-run").out.splitlines()[-1]
    assert server.params["dry_run"] is True and last.startswith("nothing was set")


def test_scan_another_directory(nudge: Nudge, server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DIR names the repo to read."""
    monkeypatch.chdir("/")
    assert nudge("scan", str(repo)).code == 0
    assert server.params["repo"] == "git:github.com/org/x"


def test_scan_outside_a_repo(nudge: Nudge, server: Server) -> None:
    """Hints from a manifest belong to a repo; without one nothing is set, and the line says what to do."""
    outcome = nudge("scan")
    assert outcome.code == 3 and "git repository" in outcome.err
    assert nudge("scan", "missing").code == 2
    assert server.calls == []


def test_an_unreadable_manifest_is_told(nudge: Nudge, server: Server, repo: Path) -> None:
    """A broken file is named on stderr, and the others count."""
    (repo / "package.json").write_text("{")
    outcome = nudge("scan")
    assert outcome.code == 0 and "package.json" in outcome.err
    assert server.params["unread"] == ["package.json"]


def test_an_older_server_is_not_told_of_nothing(nudge: Nudge, server: Server, repo: Path) -> None:
    """It would not know the word."""
    (repo / "Makefile").write_text(MAKEFILE)
    nudge("scan")
    assert "unread" not in server.params


def test_where_a_command_is_to_be_run_is_told(nudge: Nudge, server: Server, repo: Path) -> None:
    """One for a nested package works at the root only, and is offered anywhere in the repo."""
    (repo / "services/api").mkdir(parents=True)
    (repo / "services/api/Makefile").write_text("test:\n")
    nudge("scan")
    reason = "services/api/Makefile:1, run it in the root of the repo"
    (found,) = server.params["commands"]
    assert found.pop("files").keys() == {"services/api/Makefile"}
    assert found == scan_entry("api", "test", "make -C services/api test", reason)
