"""`nudge doctor`: what is wrong, and the command that mends it. Never starts a server."""

from __future__ import annotations

import os

from nudge import config, paths
from nudge.cli import exits, render
from nudge.cli.console import Console
from nudge.errors import NudgeError, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence
    from typing import Any

    from nudge.cli.parsing import Parser
    from nudge.doctor import Finding, Patient

EXAMPLES = ("nudge doctor", "nudge doctor --fix", "nudge doctor --json")

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "fixed": "cyan"}


def configure(parser: Parser) -> None:
    parser.add_argument(
        "--fix", action="store_true", help="mend what is safe: modes of our own files, leftovers of dead servers"
    )


def run(arguments: Namespace) -> int:
    from nudge import doctor as checkup

    console = Console(as_json=arguments.json)
    findings = checkup.examine(_patient(arguments))
    fixed = list(checkup.treat(findings)) if arguments.fix else []
    if fixed:
        findings = checkup.examine(_patient(arguments))
    failed = any(finding.level == checkup.FAIL for finding in findings)
    result = {
        "ok": not failed,
        "findings": [finding.to_wire() for finding in findings],
        "fixed": [{"check": check, "did": did} for check, did in fixed],
    }
    console.result(result, _lines(console.pen, findings, fixed))
    return exits.REFUSED if failed else exits.DONE


def _patient(arguments: Namespace) -> Patient:
    from nudge.doctor import Patient

    settings, problem = config.load_or_default()
    if arguments.port is not None:
        settings.port = arguments.port
    status, silent = _server()
    return Patient(
        directory=paths.runtime_dir(),
        log_directory=paths.log_dir(),
        home=paths.home(),
        cwd=_cwd(),
        environ=os.environ,
        settings=settings,
        settings_problem=problem,
        status=status,
        silent=silent,
    )


def _server() -> tuple[dict[str, Any] | None, str | None]:
    from nudge.ipc.client import Client

    try:
        return Client(autostart=False).status(), None
    except Unavailable as error:
        return None, error.message.partition(";")[0]
    except NudgeError as error:
        return None, error.message


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _lines(pen: render.Pen, findings: Sequence[Finding], fixed: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = render.widest([*(finding.check for finding in findings), *(check for check, _ in fixed)])
    for check, did in fixed:
        yield _line(pen, "fixed", check.ljust(width), did)
    for finding in findings:
        yield _line(pen, finding.level, finding.check.ljust(width), finding.message)
        if finding.mend is not None:
            yield f"{' ' * (width + 9)}{pen.paint('dim', 'mend:')} {render.visible(finding.mend)}"
    yield _summary(pen, findings)


def _line(pen: render.Pen, level: str, check: str, message: str) -> str:
    return f"{pen.paint(_COLOURS[level], level.ljust(5))}  {check}  {render.visible(message)}"


def _summary(pen: render.Pen, findings: Sequence[Finding]) -> str:
    levels = [finding.level for finding in findings]
    failures, warnings = levels.count("fail"), levels.count("warn")
    if not failures and not warnings:
        return pen.done("all is well")
    told = f"{render.counted(failures, 'failure')}, {render.counted(warnings, 'warning')}"
    fixable = any(finding.fix is not None for finding in findings)
    return f"{told}; what is safe is mended by: nudge doctor --fix" if fixable else told
