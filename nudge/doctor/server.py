"""The settings, and the server's own word about itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from nudge import paths
from nudge.doctor.finding import Finding, Patient, edit, fail, ok, warn
from nudge.ipc import lock


def check_settings(patient: Patient) -> Iterator[Finding]:
    if patient.settings_problem is not None:
        yield fail(
            "settings", patient.settings_problem, _where_it_is_set(patient, patient.settings_problem.partition(":")[0])
        )
        return
    odd = list(_odd_settings(patient))
    yield from odd or [ok("settings", "readable")]


def _odd_settings(patient: Patient) -> Iterator[Finding]:
    if not patient.settings.autostart:
        yield warn(
            "settings", "autostart is off: no command starts a server", _where_it_is_set(patient, "NUDGE_AUTOSTART")
        )
    if patient.settings.unknown:
        file = paths.config_file(patient.environ)
        yield warn("settings", f"{file} sets what is no setting: {', '.join(patient.settings.unknown)}", edit(file))


def _where_it_is_set(patient: Patient, variable: str) -> str:
    return f"unset {variable}" if variable in patient.environ else edit(paths.config_file(patient.environ))


def check_server(patient: Patient) -> Iterator[Finding]:
    if patient.silent is not None:
        yield fail("server", patient.silent, "nudge stop --force")
    elif patient.status is None and not lock.is_free(os.path.join(patient.directory, paths.LOCK)):
        yield warn("server", "one is starting and does not answer yet", "nudge stop --force")
    elif patient.status is None:
        yield ok("server", "none runs; one starts with the next command that needs it")
    else:
        troubles = list(_troubles(patient.status))
        yield from troubles or [
            ok("server", f"answers (pid {patient.status.get('pid')}, {patient.status.get('owner')})")
        ]


def _troubles(status: Mapping[str, Any]) -> Iterator[Finding]:
    read_only = (status.get("session") or {}).get("read_only")
    if read_only:
        yield warn("server", f"takes no changes: {read_only}", "nudge stop --forget")
    elif status.get("durability") == "none" and not status.get("warnings"):
        yield warn("server", "keeps hints in its memory only", "nudge stop --force")
    for warning in status.get("warnings") or ():
        yield warn("server", warning, "nudge status")
    if status.get("last_error"):
        yield warn("server", f"last error: {status['last_error']}", "nudge status")
