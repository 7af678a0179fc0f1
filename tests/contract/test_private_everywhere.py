"""Nothing of a private project is shown to a caller elsewhere: every operation is called there, with a private project
in the store, through MCP and REST."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from nudge.interfaces.operations import OPERATIONS
from nudge.storage import spool
from tests.contract.repos import clone
from tests.contract.ways import Http, Outcome, Params, Rest
from tests.harness import Machine, Stdio, eventually

PRIVATE, WITHOUT_NOTES, MARK = "payroll", "vault", "zebra"
SESSION = "s-77"
"""A session in the private project. Its id says nothing, since callers name it."""


@dataclass(frozen=True)
class PrivateIds:
    """What a caller elsewhere may guess, or has seen in the project."""

    folder: str
    observation: int
    note: int
    archived: int
    attempt: int
    told: int
    public_note: int


Probes = Callable[[PrivateIds], tuple[Params, ...]]


def always(*params: Params) -> Probes:
    return lambda _: params


_EVENT = {
    "event_id": "walk-1",
    "session_id": "walk",
    "timestamp": 1_700_000_000,
    "type": "command",
    "source_event": "PostToolUse",
    "content": "make test",
}


_NAME = {"component": "deploys", "key": "test"}
_EMPTY_STORE: dict[str, Any] = {"schema_version": "1.0", "components": {}}

PROBES: dict[str, Probes] = {
    "nudge.get_hint": always(_NAME, {"component": "deploys", "key": "nothing"}, {"component": "deploy", "key": "test"}),
    "nudge.set_hint": always({**_NAME, "value": "mine", "meta": {"scope": {"branch": ["walk"]}}}),
    "nudge.query": always(
        {"component": "deploys"}, {"text": MARK[:3] + "*"}, {"regex": "z.bra"}, {"tags": ["animal"]}, {}
    ),
    "nudge.bump": always(_NAME),
    "nudge.delete_hint": always(_NAME),
    "nudge.list_components": always({}, {"component": "deploys"}, {"context": {}}),
    "nudge.hint_versions": always(
        _NAME, {"component": f"{MARK}s", "key": "only"}, {"component": "deploys", "key": "pat"}
    ),
    "nudge.export": always({}, {"component": "deploys"}, {"versions": True}),
    "nudge.import": always({"payload": _EMPTY_STORE, "mode": "replace"}),
    "nudge.search": always({"query": MARK, "project": None}, {"query": MARK}),
    "nudge.search_explain": always({"query": MARK, "project": None, "include_pack_context": True}),
    "nudge.get_observations": lambda ids: ({"ids": [ids.observation]},),
    "nudge.timeline": lambda ids: ({"anchor": ids.observation},),
    "nudge.recent_context": always({"project": None}, {}),
    "nudge.session_trace": always({"session_id": SESSION}, {"session_id": "last"}, {"session_id": "visitor"}),
    "nudge.file_history": lambda ids: ({"file_path": f"{ids.folder}/pay.py"}, {"file_path": "/w/web/shared.py"}),
    "nudge.sessions": always({}, {"project": None}, {"session": SESSION[:2]}),
    "nudge.memory_store": always({"title": "the zoo has animals", "content": "stripes"}),
    "nudge.memory_recall": always({"context": MARK}, {"context": "stripes of the zoo"}),
    "nudge.memory_get": lambda ids: (
        {"id": ids.note},
        {"id": ids.public_note},
        {"id": ids.archived, "archived": True},
    ),
    "nudge.memory_explain": lambda ids: (
        {"query": MARK, "include_pack_context": True},
        {"ids": [ids.note, ids.attempt], "include_pack_context": True},
        {"names": [f"{MARK}-lint", f"{MARK}-fmt src", "deploys/test"], "include_pack_context": True},
        {"query": f"{MARK}-fmt"},
    ),
    "nudge.assemble_context": always({"query": f"how to run {MARK}-lint on the source of the zoo"}),
    "nudge.memory_search": always({"query": MARK}),
    "nudge.memory_list": always({}),
    "nudge.memory_update": lambda ids: ({"id": ids.note, "content": "overwritten"},),
    "nudge.memory_delete": lambda ids: ({"id": ids.note},),
    "nudge.memory_promote": lambda ids: ({"id": ids.note},),
    "nudge.memory_bulk": always({"memories": [{"title": "the zoo", "content": "stripes"}]}),
    "nudge.memory_link": lambda ids: ({"source_id": ids.note, "target_id": ids.public_note},),
    "nudge.memory_delete_link": lambda ids: ({"source_id": ids.note, "target_id": ids.public_note},),
    "nudge.memory_get_links": lambda ids: ({"id": ids.note}, {"id": ids.public_note}),
    "nudge.memory_resolve": lambda ids: ({"winner_id": ids.public_note, "loser_id": ids.note},),
    "nudge.memory_forget": always({"pattern": f"*{MARK}*"}, {"kind": "decision", "dry_run": True}),
    "nudge.memory_consolidate": lambda ids: (
        {"ids": [ids.public_note, ids.note], "title": "both", "summary": "of the two"},
    ),
    "nudge.memory_auto_consolidate": always({"min_count": 2, "dry_run": True}, {"min_count": 2}),
    "nudge.memory_archive_list": always({}),
    "nudge.memory_archive_restore": lambda ids: ({"id": ids.archived},),
    "nudge.memory_archive_purge": always({}),
    "nudge.memory_archive_stats": always({}),
    "nudge.memory_gc": always({}),
    "nudge.memory_stats": always({}),
    "nudge.memory_namespaces": always({}),
    "nudge.memory_capabilities": always({}),
    "nudge.memory_expand_query": always({"query": MARK}),
    "nudge.memory_auto_tag": lambda ids: ({"id": ids.note}, {"id": ids.archived}),
    "nudge.memory_detect_contradiction": lambda ids: ({"id_a": ids.public_note, "id_b": ids.note},),
    "nudge.memory_proposals": always({"state": "all"}, {}),
    "nudge.memory_proposal_accept": always({"id": 1}),
    "nudge.memory_proposal_reject": always({"id": 1}),
    "nudge.memory_proposal_undo": always({"id": 1}),
    "nudge.memory_export": always({}),
    "nudge.memory_import": always({"memories": [{"title": "the zoo", "content": "stripes"}]}),
    "nudge.memory_sync": lambda ids: ({"path": f"{ids.folder}/../copy.db", "direction": "push", "dry_run": True},),
    "nudge.start_ghap": always(
        {"goal": "g", "hypothesis": "h", "action": "a", "prediction": "p", "session_id": "walk"}
    ),
    "nudge.update_ghap": lambda ids: ({"note": "n", "id": ids.attempt}, {"note": "n", "session_id": SESSION}),
    "nudge.get_active_ghap": always({"session_id": SESSION}, {}),
    "nudge.get_orphaned_ghap": lambda ids: ({}, {"adopt": ids.attempt}),
    "nudge.resolve_ghap": lambda ids: (
        {"status": "abandoned", "id": ids.attempt},
        {"status": "abandoned", "session_id": SESSION},
    ),
    "nudge.list_ghap_entries": always({}, {"project": None}, {"session_id": SESSION, "project": None}),
    "nudge.journal_calibration": always({}, {"project": None}),
    "nudge.start_session": always({}),
    "nudge.should_check_in": always({"session_id": SESSION, "frequency": 1}),
    "nudge.increment_tool_count": always({"session_id": SESSION}),
    "nudge.reset_tool_count": always({"session_id": SESSION}),
    "nudge.record": always({"event": _EVENT}),
    "nudge.record_many": always({"events": [_EVENT]}),
    "nudge.inject": always(
        {"explain": True}, {"session_id": SESSION, "source": "resume"}, {"session_id": "visitor", "source": "resume"}
    ),
    "nudge.learned": always({"project": None}, {}),
    "nudge.forget_learned": always({"project": "web", "subject": f"{MARK}-lint"}),
    "nudge.told": always({"project": None}, {}, {"session_id": SESSION}),
    "nudge.never_tell": lambda ids: ({"line": f"#{ids.told}"}, {"line": str(ids.told), "project": None}),
    "nudge.stats": always({"project": None}, {}),
    "nudge.pin": lambda ids: ({"ids": [ids.observation]},),
    "nudge.purge": lambda ids: (
        {"search": MARK},
        {"ids": [ids.observation], "confirm": True},
        {"session": SESSION, "confirm": True},
    ),
    "nudge.backup": lambda ids: ({"path": f"{ids.folder}/../backup.db"},),
    "nudge.statusline": always({"session_id": SESSION}),
    "nudge.export_all": always({}, {"after": "observation:0"}, {"after": "prompt:0"}, {"after": "injection:0"}),
    "nudge.scan": always({"repo": "git:example.com/org/web", "commands": []}),
    "nudge.known": always(
        {"facets": True}, {"query": MARK, "facets": True}, {"context": {}}, {"type": "archived", "facets": True}
    ),
    "nudge.browse": always({"facets": True}, {"query": MARK}, {"session": SESSION}),
    "nudge.changes": always({}, {"after_observation": 0, "after_told": 0}),
    "nudge.settings": always({}),
    "nudge.doctor": always({}),
    "nudge.open_page": always({}),
    "nudge.repo_files": always({}),
    "nudge.decide_repo_file": always({"root": "/", "trust": [], "deny": [], "revoke": []}),
    "nudge.team_join": always({"url": "postgresql://somebody@127.0.0.1:1/team"}),
    "nudge.team_share": always({"repo": "example.com/org/web"}),
    "nudge.team_status": always({}, {"conflicts": True, "withheld": True}),
    "nudge.team_doctor": always({}),
    "nudge.team_leave": always({}),
    "nudge.status": always({}),
    # Refused but at a terminal; their answers are a model and counts.
    **dict.fromkeys(("nudge.semantic_use", "nudge.semantic_off"), always()),
    "nudge.stop": always(),  # ends the server; its answer is a pid and two counts
}
"""Calls of each operation, from elsewhere, that would meet what is private if anything did."""


def test_every_operation_is_probed() -> None:
    """A new operation needs a line in PROBES."""
    assert set(PROBES) == set(OPERATIONS)


# What is private


def _hook(machine: Machine, cwd: str, session: str, name: str, **fields: Any) -> str:
    payload = {"hook_event_name": name, "session_id": session, "cwd": cwd, **fields}
    done = machine.cli("record", stdin=json.dumps(payload), cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run(machine: Machine, cwd: str, session: str, command: str, error: str = "") -> str:
    outcome: dict[str, Any] = {"error": error} if error else {"tool_response": {"stdout": ""}}
    name = "PostToolUseFailure" if error else "PostToolUse"
    call = {"tool_name": "Bash", "tool_use_id": f"{command} {session}", "tool_input": {"command": command}}
    return _hook(machine, cwd, session, name, **call, **outcome)


def _edit(machine: Machine, cwd: str, session: str, path: str) -> None:
    call = {"tool_name": "Write", "tool_input": {"file_path": path, "content": "x"}, "tool_response": {}}
    _hook(machine, cwd, session, "PostToolUse", **call)


def _learn(machine: Machine, folder: str, program: str) -> str:
    """Two sessions in which a command failed and another one worked; returns the error."""
    error = f"Exit code 127\nbash: {program}: command not found"
    for session in (f"{program[-3:]}-1", f"{program[-3:]}-2"):
        _run(machine, folder, session, f"{program} src", error)
        _run(machine, folder, session, f"uv run {program} src")
        _hook(machine, folder, session, "SessionEnd", reason="other")
    return error


def _work(machine: Machine, folder: str, web: str) -> None:
    """Sessions in the private project: a prompt, a fact that is learned and told, edits there and elsewhere."""
    not_found = _learn(machine, folder, f"{MARK}-lint")
    _hook(machine, folder, SESSION, "SessionStart", source="startup")
    _hook(machine, folder, SESSION, "UserPromptSubmit", prompt=f"count each {MARK} in the {PRIVATE} of the zoo please")
    _run(machine, folder, SESSION, f"{MARK}-lint src", not_found)
    _run(machine, folder, SESSION, f"git commit -m 'feed the {MARK}'")
    _edit(machine, folder, SESSION, f"{folder}/pay.py")
    _edit(machine, folder, SESSION, "/w/web/shared.py")
    _edit(machine, folder, SESSION, f"{web}/shared.py")
    # A session elsewhere that looked into the private project for a moment.
    _hook(machine, web, "visitor", "SessionStart", source="startup")
    _hook(machine, web, "visitor", "UserPromptSubmit", prompt="please compare the two of them and then improve both")
    _run(machine, web, "visitor", "make test")
    _run(machine, folder, "visitor", f"ls {MARK}")
    _edit(machine, folder, "visitor", f"{folder}/{MARK}.py")
    _hook(machine, web, "visitor", "SessionEnd", reason="other")


def _keep(agent: Stdio, folder: str) -> dict[str, int]:
    """Hints, notes, an archived note and an attempt, by an agent in the private project; returns the notes' ids."""

    def note(title: str, content: str = f"the {MARK} has stripes", **fields: Any) -> int:
        return int(agent.call("memory_store", title=title, content=content, tags=["animal"], **fields)["id"])

    agent.call("nudge_set_hint", component="deploys", key="test", value=f"deploy {MARK}", meta={"tags": ["animal"]})
    agent.call("nudge_set_hint", component=f"{MARK}s", key="only", value=MARK)
    globs = {"cwd_glob": [f"{folder}/**"]}
    agent.call("nudge_set_hint", component="deploys", key="path", value=MARK, meta={"scope": globs})
    ids = {"note": note(f"The {MARK} of the zoo", kind="decision"), "archived": note(f"An old {MARK} of the zoo")}
    note(f"Another {MARK} of the zoo", kind="decision")
    ids["public_note"] = note("The zoo opens at nine", "all week", namespace="global", kind="decision")
    agent.call("memory_link", source_id=ids["note"], target_id=ids["public_note"])
    agent.call("memory_forget", pattern="An old*")
    attempt = {"hypothesis": MARK, "action": MARK, "prediction": f"{MARK}-lint src exits with 0", "session_id": SESSION}
    return {**ids, "attempt": agent.call("start_ghap", goal=f"feed the {MARK}", **attempt)["id"]}


def _inside(machine: Machine, folder: str) -> dict[str, Any]:
    """What a caller in the project sees; times of use and scores are left out."""
    here = {"cwd": folder}
    attempts = machine.json("journal", "list", **here)["entries"]
    found = [str(row["id"]) for row in machine.json("search", MARK, **here)]
    return {
        "observations": machine.json("show", *found, **here),
        "hints": machine.json("export", **here)["payload"]["components"],
        "notes": machine.json("memory", "list", "--namespace", PRIVATE, **here),
        "archive": machine.json("memory", "archive", "list", **here),
        "attempts": [(row["id"], row["status"], row["goal"]) for row in attempts],
        "learned": machine.json("learned", **here),
        "never": machine.json("told", **here)["never"],
    }


@pytest.fixture(scope="module")
def walked() -> Iterator[tuple[Machine, PrivateIds, str]]:
    with closing(Machine()) as machine:
        folder, web = clone(machine.base / PRIVATE), clone(machine.base / "web")
        machine.prepared_server("--private-projects", f"{PRIVATE},{WITHOUT_NOTES}")
        _learn(machine, clone(machine.base / WITHOUT_NOTES), f"{MARK}-fmt")
        _work(machine, folder, web)
        agent = machine.serve(cwd=folder)
        agent.initialize()
        ids = _keep(agent, folder)
        _hook(machine, folder, SESSION, "SessionEnd", reason="other")
        eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
        eventually(lambda: machine.json("learned", cwd=folder)["facts"], "the fact is learned")
        eventually(lambda: machine.json("told", cwd=folder)["lines"], "its failure was answered")
        observation = machine.json("search", MARK, cwd=folder)[0]["id"]
        told = machine.json("told", cwd=folder)["lines"][0]["id"]
        yield machine, PrivateIds(folder, observation, **ids, told=told), web
        agent.quit()


class _Agent:
    """An agent on stdio, elsewhere."""

    def __init__(self, stdio: Stdio) -> None:
        self._stdio = stdio

    def call(self, operation: str, params: Params) -> Outcome:
        return self._stdio.tool(OPERATIONS[operation].tool, **params)


def _without(params: Params, answer: Outcome) -> str:
    """The answer as text, without what the caller itself said."""
    text = json.dumps(answer)
    for said in _texts(params):
        text = text.replace(json.dumps(said)[1:-1], "")
    return text.casefold()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _traces(call: Callable[[str, Params], Outcome], ids: PrivateIds) -> list[str]:
    """The answers in which something of the private project can be read."""
    found = []
    for operation in sorted(PROBES, key=lambda name: ("read", "write", "delete").index(OPERATIONS[name].effect)):
        for params in PROBES[operation](ids):
            shown = _without(params, call(operation, params))
            if any(word in shown for word in (PRIVATE, WITHOUT_NOTES, MARK)):
                found.append(f"{operation} {params}: {shown}")
    return found


def test_a_caller_elsewhere_finds_no_trace_of_a_private_project(walked: tuple[Machine, PrivateIds, str]) -> None:
    """Neither an agent in another repo nor a script without a place reads, changes or deletes anything of it, whatever
    ids, names and sessions of it they know; and a caller in the project still has all of it."""
    machine, ids, web = walked
    before = _inside(machine, ids.folder)
    agent = machine.serve(cwd=web)
    agent.initialize()
    counts = agent.call("statusline", session_id=SESSION)
    counted = agent.call("should_check_in", session_id=SESSION, frequency=1)
    assert counts["told"] == counts["used"] == counted["tool_count"] == 0, "a number is a trace"
    traces = _traces(_Agent(agent).call, ids)
    with closing(Http.to(machine)) as http:
        traces += _traces(Rest(http).call, ids)
    agent.quit()
    assert "\n".join(traces) == ""
    assert _inside(machine, ids.folder) == before
