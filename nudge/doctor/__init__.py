"""`nudge doctor`: checks of the installation, the files and the server from outside. It starts no server and needs
none.

`Snapshot.take(port)` collects what the checks read, `run(snapshot)` returns their findings, and `fix(findings,
confirm)` repairs what can be repaired, some of it only after asking. The checks are in `files` (directories, modes,
disk), `server` (settings, lock, endpoint, socket, port), `data` (change log, clock, database, spool),
`meaning`, `language_model`, and `installation` (versions, PATH, Python, and what the agent clients start)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nudge.core.errors import NudgeError
from nudge.doctor import data, files, installation, language_model, meaning, server
from nudge.doctor.model import FAIL, OK, WARN, Finding, Snapshot

__all__ = ["FAIL", "OK", "WARN", "Finding", "Snapshot", "fix", "run"]

# Directories come before their files: a file is repaired after its directory.
CHECKS: tuple[Callable[[Snapshot], Iterable[Finding]], ...] = (
    server.check_settings,
    files.check_directories,
    files.check_files,
    files.check_data_files,
    server.check_lock,
    server.check_endpoint,
    server.check_socket,
    files.check_token,
    files.check_leftovers,
    server.check_port,
    server.check_server,
    data.check_change_log,
    data.check_clock,
    data.check_history,
    data.check_spool,
    meaning.check_meaning,
    language_model.check_language_model,
    installation.check_versions,
    installation.check_programs,
    installation.check_python,
    installation.check_sqlite,
    installation.check_environment,
    files.check_disk,
    installation.check_memory_tools,
    installation.check_connections,
    installation.check_hook_script,
    installation.check_status_line,
)


def run(snapshot: Snapshot) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(snapshot)]


def _decline(question: str) -> bool:
    del question
    return False


def fix(findings: Sequence[Finding], confirm: Callable[[str], bool] = _decline) -> list[tuple[str, str]]:
    """Run the repairs of the findings; one with a question only when `confirm` returns True for it. Return the check
    and a description for each repair that changed something. A repair that fails is skipped: the next run finds the
    problem again."""
    fixed = []
    for finding in findings:
        if finding.repair is None or (finding.question is not None and not confirm(finding.question)):
            continue
        try:
            done = finding.repair()
        except (OSError, NudgeError):
            continue
        if done:
            fixed.append((finding.check, done))
    return fixed
