"""`nudge doctor`: everything that has to be right around a server, looked at from outside. It starts nothing and needs
no server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from nudge.doctor import changes, endpoints, files, installation, machine, neighbours, past, ports, server
from nudge.doctor.finding import FAIL, OK, WARN, Finding, Patient
from nudge.errors import NudgeError

__all__ = ["FAIL", "OK", "WARN", "Finding", "Patient", "examine", "treat"]

# Directories first: a fix of one of their files may count on them.
CHECKS: tuple[Callable[[Patient], Iterable[Finding]], ...] = (
    server.check_settings,
    files.check_directories,
    files.check_files,
    endpoints.check_lock,
    endpoints.check_endpoint,
    endpoints.check_socket,
    files.check_token,
    files.check_leftovers,
    ports.check_port,
    server.check_server,
    changes.check_log,
    changes.check_clock,
    past.check_history,
    past.check_spool,
    installation.check_versions,
    installation.check_installations,
    installation.check_python,
    installation.check_sqlite,
    installation.check_environment,
    machine.check_disk,
    neighbours.check_neighbours,
    neighbours.check_wiring,
)


def examine(patient: Patient) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(patient)]


def treat(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Do what is safe; each check with what was done. What cannot be done stays a finding of the next examination."""
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            did = finding.fix()
        except (OSError, NudgeError):
            continue
        if did:
            yield finding.check, did
