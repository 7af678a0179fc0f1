"""The tables `facts` (one row for each answer and session, and for each broken test) and `invocations`."""

from __future__ import annotations

from dataclasses import asdict

from nudge.core import limits
from nudge.core.thin_json import dumps, loads
from nudge.learning.broken_tests import TEST
from nudge.learning.cure import DIRECTORY, FLAG, LAUNCHER, PATH, RUNNER, STEP, VARIABLE, Cure
from nudge.learning.fact import Evidence, Fact
from nudge.learning.facts import Facts
from nudge.learning.failures import diagnose
from nudge.learning.jobs import INSTALL, job_of, step_of, subcommand
from nudge.learning.shell import parse_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from nudge.learning.facts import Changes

    class SqlConnection(Protocol):
        def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any: ...
        def executemany(self, sql: str, parameters: Sequence[Any], /) -> Any: ...


_COLUMNS = "project, kind, subject, tool, error, answer, session_id, failure_id, success_id, timestamp, details"
_INSERT = f"INSERT OR REPLACE INTO facts ({_COLUMNS}) VALUES ({', '.join('?' * 11)})"  # noqa: S608 - constants
_IN_COLUMNS = ("kind", "subject", "tool", "error", "answer")
# Kinds of facts as earlier versions stored them, without details.
_OLD_KINDS = {"program": LAUNCHER, "module": LAUNCHER, "path": PATH, "option": FLAG, "target": RUNNER, "call": LAUNCHER}
_OLD_FAMILIES = {"program": "tool", "module": "module", "path": "path", "option": "option", "target": "script"}


def load(connection: SqlConnection, project: str | None = None) -> Facts:
    """Return the stored facts, of one project or of all."""
    facts = Facts()
    condition, values = (" WHERE project = ?", (project,)) if project is not None else ("", ())
    for row in connection.execute(f"SELECT {_COLUMNS} FROM facts{condition}", values):  # noqa: S608 - constants
        _add(facts, row)
    sql = f"SELECT project, tool, head, session_id, timestamp FROM invocations{condition}"  # noqa: S608 - constants
    for row in connection.execute(sql, values):
        facts.add_run(*row)
    return facts


def _add(facts: Facts, row: Sequence[Any]) -> None:
    project, kind, subject, tool, error, answer, session, failure_id, success_id, timestamp, details = row
    if kind == TEST:
        facts.tests.add_row(project, subject, tool, error, session, failure_id, timestamp)
        return
    read = loads(details)
    codes = read.pop("exit_codes", (None, None))
    branch, credit = read.pop("branch", ""), read.pop("credit", (0, 0))
    evidence = Evidence(failure_id, success_id, timestamp, (codes[0], codes[1]), branch, (credit[0], credit[1]))
    if (held := facts.get(project, (kind, subject, answer))) is not None:
        held.support[session] = evidence
        held.add_causes(tuple(read.get("causes", ())))
        return
    if read:
        lists = {name: tuple(value) for name, value in read.items() if isinstance(value, list)}
        cure = Cure(kind=kind, subject=subject, tool=tool, error=error, answer=answer, **{**read, **lists})
    else:
        cure = _from_old(kind, subject, tool, error, answer)
    facts.add(project, Fact(cure, {session: evidence}))


def _from_old(kind: str, subject: str, tool: str, error: str, answer: str) -> Cure:
    """A fact as an earlier version stored it: what it does not say is read from its texts."""
    failure = diagnose(error, None)
    commands = parse_commands(subject)
    command = commands[-1] if commands and kind != "path" else None
    family = _OLD_FAMILIES.get(kind, failure.family)
    detail = subject if kind == "path" else failure.detail
    return Cure(
        kind=_kind_of_old(kind, answer),
        subject=subject,
        answer=answer,
        tool=tool,
        subcommand=subcommand(command) if command is not None else "",
        program=command.launched_program.rpartition("/")[2] if command is not None else "",
        job=job_of(command) if command is not None else "",
        nature=failure.nature if kind == "call" else "surroundings",
        family=family,
        detail=detail,
        error=error,
        causes=failure.causes,
        sign=failure.sign,
        added=_added_in_old(answer),
        keeps_arguments=kind in ("program", "module"),
    )


def _kind_of_old(kind: str, answer: str) -> str:
    commands = parse_commands(answer)
    if kind == "call" and commands:
        if commands[0].tool == "cd":
            return DIRECTORY
        if commands[-1].variables:
            return VARIABLE
    if kind in ("call", "program", "module") and commands and step_of(commands[-1]) == INSTALL:
        return STEP
    return _OLD_KINDS.get(kind, kind)


def _added_in_old(answer: str) -> tuple[str, ...]:
    commands = parse_commands(answer)
    if not commands:
        return ()
    return tuple(map(str, commands[-1].variables)) or tuple(map(str, commands[-1].words[: commands[-1].head_length]))


def store(connection: SqlConnection, changes: Changes) -> None:
    """Apply the changes to the tables. The caller holds the transaction."""
    for project, (kind, subject, answer) in changes.withdrawn:
        connection.execute(
            "DELETE FROM facts WHERE project = ? AND subject = ? AND answer = ? AND kind != ?"
            " AND (kind = ? OR details = '{}')",
            (project, subject, answer, TEST, kind),
        )
    for project, name in changes.passed_tests:
        connection.execute("DELETE FROM facts WHERE project = ? AND kind = ? AND subject = ?", (project, TEST, name))
    rows = [_row(project, session, fact.cure, fact.support[session]) for project, session, fact in changes.learned]
    for project, session, test in changes.broken_tests:
        timestamp, failure_id = test.sessions[session]
        rows.append(
            (project, TEST, test.id, test.runner, test.reason, "", session, failure_id, 0, int(timestamp), "{}")
        )
    connection.executemany(_INSERT, rows)
    connection.executemany("INSERT OR REPLACE INTO invocations VALUES (?, ?, ?, ?, ?)", changes.runs)


def store_evidence(connection: SqlConnection, project: str, session: str, cure: Cure, evidence: Evidence) -> None:
    """Store what one session says about a cure, in place of what it said before."""
    connection.execute(_INSERT, _row(project, session, cure, evidence))


def _row(project: str, session: str, cure: Cure, evidence: Evidence) -> tuple[Any, ...]:
    details = {name: value for name, value in asdict(cure).items() if name not in _IN_COLUMNS}
    details |= {"exit_codes": evidence.exit_codes, "branch": evidence.branch}
    details |= {"credit": evidence.credit} if any(evidence.credit) else {}
    ids = (evidence.failure_id, evidence.success_id, int(evidence.timestamp))
    return (project, cure.kind, cure.subject, cure.tool, cure.error, cure.answer, session, *ids, dumps(details))


def forget(connection: SqlConnection, project: str, subject: str) -> int:
    """Delete the facts about a subject; return the number of rows."""
    rows = connection.execute("DELETE FROM facts WHERE project = ? AND subject = ?", (project, subject))
    return int(rows.rowcount)


def delete_old(connection: SqlConnection, now: float) -> int:
    """Delete facts older than FACT_SECONDS; return the number of rows."""
    oldest = int(now - limits.FACT_SECONDS)
    deleted = connection.execute("DELETE FROM facts WHERE timestamp < ?", (oldest,)).rowcount
    connection.execute("DELETE FROM invocations WHERE timestamp < ?", (oldest,))
    return int(deleted)
