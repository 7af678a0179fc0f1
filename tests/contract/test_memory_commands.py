"""Notes at the terminal, against a real server: what stands for each command of the guide, and the same results and
errors as through every other interface."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge.cli.verbs import NOTES, all_verbs
from nudge.interfaces.rest import NOTE_EXAMPLES
from nudge.process.client import Client
from nudge.storage.database import Database
from tests.contract.test_memories import HEX, comparable
from tests.contract.ways import Cli, InProcess, Outcome, outcome_of
from tests.harness import Machine

# The 26 commands of the guide: what is typed in their place, and what the answer has. {a} and {b} are notes in the
# namespace {ns}, {x} is one in the archive, {dir} an empty directory.
COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("serve --http-only", ""),
    "mcp": ("serve", ""),
    "store": (
        "memory store -T Title -c Content --tier mid --namespace {ns} --tags tag1,tag2 --priority 7 --confidence 0.9"
        " --source claude --expires-at 2126-04-15T00:00:00Z",
        r"stored m\d+ Title \(note, mid\)",
    ),
    "update": ("memory update {a} -T Renamed -c Changed --priority 8 --expires-at 2126-06-01T00:00:00Z", "Changed"),
    "recall": ("memory recall zebra nothing --namespace {ns} --limit 10 --tags stripes --since 2026-01-01", "{a} "),
    "search": ("memory search zebra stripes --namespace {ns} --tier mid --limit 20 --until 2126-12-31", "{a} "),
    "get": ("memory get {a}", r"(?s)zebra.*link: related to {b}"),
    "list": (
        "memory list --namespace {ns} --tier mid --limit 1 --offset 1 --tags stripes",
        r"\A{a} [^\n]*\n(?: [^\n]*\n)*\Z",
    ),
    "delete": ("memory delete {a} --yes", "deleted {a}"),
    "promote": ("memory promote {a}", "{a} is kept for good"),
    "forget": ("memory forget --namespace {ns} --pattern zebra --tier mid --yes", "moved 2 notes to the archive"),
    "link": ("memory link {b} {a} --relation supersedes", "{b} supersedes {a}"),
    "consolidate": ("memory consolidate {a},{b} -T Summary -s Both --namespace {ns}", r"m\d+ stands for 2 notes"),
    "resolve": ("memory resolve {a} {b}", "{a} supersedes {b}"),
    "shell": ("memory shell < get {a}", "zebra"),
    "sync": ("memory sync {dir}/other.db --direction push", r"pushed: \d+ created"),
    "auto-consolidate": (
        "memory auto-consolidate --namespace {ns} --min-count 2 --dry-run",
        "would be one:  2 notes  stripes in {ns}",
    ),
    "gc": ("memory gc", "archived 0 expired"),
    "stats": ("memory stats", r"(?s)\d+ notes.*{ns} +2"),
    "namespaces": ("memory namespaces", "{ns} +2 notes"),
    "export": ("memory export --namespace {ns}", '"title": "Zebra"'),
    "import": (
        'memory import < {{"memories": [{{"title": "Imported", "content": "text"}}]}}',
        "imported 1 note: 1 created",
    ),
    "completions": ("completion bash", "complete -o default"),
    "man": ("man memory store", "NUDGE.*NOTE.*STORE"),
    "mine": ("memory mine --format slack {dir} --namespace {ns}", "0 conversations"),
    "archive": ("memory archive restore {x}", "restored {x} Archived"),
}


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with closing(Machine()) as machine:
        machine.prepared_server()
        yield machine


def run(machine: Machine, line: str, stdin: str = "") -> str:
    code, out, err = Cli(machine).run(line.split(), stdin)
    assert code == 0, err
    return out


def ids(machine: Machine, namespace: str) -> dict[str, str]:
    """Two linked notes in a namespace, and one in the archive."""
    cli = Cli(machine)

    def store(title: str) -> str:
        words = ["memory", "store", "-T", title, "-c", "zebra stripes", "--namespace", namespace, "--tags", "stripes"]
        return f"m{json.loads(cli.run([*words, '--json'])[1])['id']}"

    archived = store("Archived")
    run(machine, f"memory forget --namespace {namespace} --yes")
    first, second = store("Zebra"), store("Other")
    run(machine, f"memory link {first} {second}")
    return {"a": first, "b": second, "x": archived}


def test_the_guide_has_26_commands() -> None:
    """None is left out."""
    assert len(COMMANDS) == 26


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("serve", "mcp")])
def test_every_command_of_the_guide(machine: Machine, tmp_path: Path, command: str) -> None:
    """With the options that the guide shows for it."""
    facts = {**ids(machine, namespace=f"of-{command}"), "ns": f"of-{command}", "dir": str(tmp_path)}
    line, wanted = COMMANDS[command]
    words, _, stdin = line.format(**facts).partition(" < ")
    out = run(machine, words, stdin)
    pattern = wanted.format(**facts) if "{" in wanted else wanted
    assert re.search(pattern, out), out


def test_serve_and_mcp() -> None:
    """One command is both: with pipes it speaks MCP, with `--http-only` it serves HTTP until it is stopped."""
    with closing(Machine()) as machine:
        assert machine.prepared_server().port is not None
        stdio = machine.serve()
        stdio.initialize()
        tools = {tool["name"] for tool in stdio.request("tools/list")["result"]["tools"]}
        assert {"memory_store", "memory_recall", "memory_get", "memory_explain"} <= tools


# The same as through every other interface

MEMORY = "nudge.memory_"
VERBS_OF_NOTES = {
    operation
    for verb in all_verbs()
    if verb.group == NOTES and verb.name != "note review"  # it asks about one proposal after the other
    for operation in verb.operations
}
ARGUMENTS = {
    "get": ("id",),
    "update": ("id",),
    "promote": ("id",),
    "delete": ("id",),
    "archive_restore": ("id",),
    "link": ("source_id", "target_id"),
    "delete_link": ("source_id", "target_id"),
    "resolve": ("winner_id", "loser_id"),
    "recall": ("context",),
    "search": ("query",),
    "consolidate": ("ids",),
}
ASKS = ("delete", "forget", "archive_purge")
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("store", {"title": "x", "content": "y" * 70_000}, "E_INVALID"),
    ("store", {"title": "x", "content": f"password = {HEX}"}, "E_SECRET_REJECTED"),
    ("recall", {"context": "?!"}, "E_INVALID"),
    ("recall", {"context": "x", "limit": 201}, "E_INVALID"),
    ("get", {"id": 999}, "E_NOT_FOUND"),
    ("update", {"id": 3, "title": "The server"}, "E_CONFLICT"),
    ("link", {"source_id": 3, "target_id": 3}, "E_INVALID"),
    ("link", {"source_id": 3, "target_id": 999}, "E_NOT_FOUND"),
    ("resolve", {"winner_id": 3, "loser_id": 999}, "E_NOT_FOUND"),
    ("consolidate", {"ids": [3], "title": "t", "summary": "s"}, "E_INVALID"),
    ("archive_restore", {"id": 999}, "E_NOT_FOUND"),
    ("forget", {"dry_run": True}, "E_INVALID"),
    ("delete", {"id": 999}, "E_NOT_FOUND"),
]


def command_line(operation: str, params: dict[str, Any]) -> tuple[list[str], str]:
    """The words for an operation on notes, and what is typed into stdin."""
    if operation == "capabilities":
        return ["semantic", "status", "--json"], ""
    if operation == "import":
        return ["memory", "import", "--json"], json.dumps(params)
    rest, verb = (
        dict(params),
        operation.replace("archive_", "archive ").replace("delete_link", "unlink").replace("_", "-"),
    )
    if operation == "explain":
        flags = ["--pack"] if rest["include_pack_context"] else []
        return ["explain", *rest["query"].split(), *(f"m{number}" for number in rest["ids"]), *flags, "--json"], ""
    if operation == "archive_purge":
        rest["older_than"] = f"{rest.pop('older_than_days')}d"
    words = [_listed(rest.pop(name)) for name in ARGUMENTS.get(operation, ())]
    flags = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={_listed(value)}") for name, value in rest.items()
    ]
    return ["memory", *verb.split(), *words, *flags, *(["--yes"] if operation in ASKS else []), "--json"], ""


def _listed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def outcomes(call: Any) -> Iterator[tuple[str, Outcome]]:
    """Of every example in order, then of every refusal."""
    for operation, params in [*NOTE_EXAMPLES.items(), *((MEMORY + name, params) for name, params, _ in REFUSED)]:
        outcome = comparable(call(operation, params))
        outcome.get("result", {}).pop("next", None)  # an export at the terminal is all pages
        yield operation, outcome


def test_results_and_errors_are_those_of_every_interface(tmp_path: Path) -> None:
    """`--json` is the exact result object, and a refusal has the code that a program gets."""
    with closing(Machine()) as machine, closing(Database.open(str(tmp_path / "notes.db"))) as database:
        machine.prepared_server()
        cli, way = Cli(machine), InProcess(database)
        client = Client(environ=machine.environ, autostart=False)

        def typed(operation: str, params: dict[str, Any]) -> Outcome:
            if operation not in VERBS_OF_NOTES:  # agents only
                return {"result": client.call(operation, params)}
            return outcome_of(*cli.run(*command_line(operation.removeprefix(MEMORY), params)))

        wanted = list(outcomes(way.call))
        assert list(outcomes(typed)) == wanted
        reasons = [outcome["error"]["data"]["reason"] for _, outcome in wanted[len(NOTE_EXAMPLES) :]]
        assert reasons == [reason for *_, reason in REFUSED]


def test_a_title_that_is_known_keeps_its_kind_and_its_tags(machine: Machine) -> None:
    """Both verbs change only what is given; a flag changes it."""
    cli = Cli(machine)

    def note(*words: str) -> tuple[str, list[str]]:
        stored = json.loads(cli.run([*words, "--namespace", "kept", "--json"])[1])
        shown = json.loads(run(machine, f"memory get m{stored['id']} --json"))["memory"]
        return shown["kind"], shown.get("tags", [])

    given = ("--kind", "decision", "--tags", "db,storage")
    assert note("remember", "PostgreSQL", "--title", "Database", *given) == ("decision", ["db", "storage"])
    assert note("remember", "SQLite", "--title", "Database") == ("decision", ["db", "storage"])
    assert note("memory", "store", "-T", "Database", "-c", "DuckDB") == ("decision", ["db", "storage"])
    assert note("memory", "store", "-T", "Database", "-c", "DuckDB", "--kind", "lesson") == (
        "lesson",
        ["db", "storage"],
    )


def test_the_command_that_a_search_names_shows_the_archived_notes(machine: Machine) -> None:
    """A recall and a list that find nothing say how many there are; the command lists exactly those."""
    cli, place = Cli(machine), ["--namespace", "gone"]
    for title in ("Deploy by hand", "Deploys need the VPN", "Other"):
        cli.run(["remember", f"{title}.", "--kind", "decision", *place])
    run(machine, "memory forget --namespace gone --yes")
    for words, count in (
        (["recall", "deployment", "deploy"], 2),
        (["memory", "recall", "deploy"], 2),
        (["memory", "list", "--kind", "decision"], 3),
    ):
        code, out, err = cli.run([*words, *place])
        said = re.search(r"(\d+) archived notes match; list with: nudge (.*)", err)
        assert (code, out) == (0, "") and said is not None, err
        assert int(said[1]) == count == len(run(machine, said[2]).splitlines())
    assert "archived" not in cli.run(["recall", "kubernetes", *place])[2]
