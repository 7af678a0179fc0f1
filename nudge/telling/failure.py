"""What a failure is answered with where nothing was learned about it: the hint of the repo for that job, else what its
manifest has for it.
"""

from __future__ import annotations

import re

from nudge.core import limits
from nudge.core.programs import NODE_PACKAGE_MANAGERS, TARGET_RUNNERS
from nudge.core.text import quote_command
from nudge.learning.jobs import FORMAT, LINT, TYPES
from nudge.learning.shell import parse_commands, parse_known
from nudge.repofile import SOURCE
from nudge.telling.hint_selection import SCANNED
from nudge.telling.ledger import Line
from nudge.telling.use import COMMAND, IDENTITY, runs
from nudge.telling.wording import hint_value_text, reason_text, short_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nudge.learning.unanswered import Unanswered

_OF_ONE_TOOL = frozenset((LINT, FORMAT, TYPES))
"""Jobs that each tool does in its own way: that `ruff` is run by `make lint` says nothing about `mypy`."""
_RUNNERS = TARGET_RUNNERS | NODE_PACKAGE_MANAGERS
_NAMED = re.compile(r"[\w./:-]+(?: [\w./:-]+){0,2}")
"""A target, script or goal as it is typed: `make test`, `npm run build`."""


def hint_answer(unanswered: Unanswered, hints: Sequence[dict[str, Any]], project: str) -> Line | None:
    """Return the line about the hint for the job that failed. `hints` are those for the job that apply here, best
    first, as rows of `start.build`. None when it is what failed, or when it is not clear which one is meant."""
    possible = [hint for hint in hints if _is_proven(hint) and _may_run(unanswered, hint["value"] or "")]
    hint = _of_place(possible, unanswered, project)
    if hint is None or (hint["value"] and any(runs(parse_known(line), hint["value"]) for line in _lines(unanswered))):
        return None
    name, reason = hint["name"], reason_text(hint["reason"], hint.get("origin"))
    notes = "; ".join(filter(None, (hint.get("stale"), reason)))
    text = f"hint {short_name(name)}: {hint_value_text(name, hint['value'])}" + (f" ({notes})" if notes else "")
    uses = ((COMMAND, hint["value"] or ""), (IDENTITY, name))
    return Line(name, "hint", text, f"the hint for {unanswered.job}", uses)


def manifest_answer(unanswered: Unanswered, command: str, source: str, recipe: str, *, is_plain: bool) -> Line | None:
    """Return the line about a command that a manifest has for the job. `source` is its file and line, `recipe` what it
    runs, and `is_plain` says whether it looks up programs as any shell does. None when it is what failed, or needs the
    program that is missing as well."""
    if any(runs(parse_known(line), command) for line in _lines(unanswered)):
        return None
    if _runs_program(command, unanswered.tool) or (is_plain and _runs_program(recipe, unanswered.tool)):
        return None
    if unanswered.job in _OF_ONE_TOOL and not re.search(rf"\b{re.escape(unanswered.tool)}\b", f"{command}\n{recipe}"):
        return None
    shown = command if _NAMED.fullmatch(command) else quote_command(command)
    if not shown or len(command) > limits.MAX_TOLD_COMMAND:
        return None
    reason = f"the manifest's command for {unanswered.job}"
    return Line(f"manifest {command}", "manifest", f"{source} has: {shown}", reason, ((COMMAND, command),))


def _runs_program(recipe: str, program: str) -> bool:
    """Whether a line of a recipe runs a program as it is, without a launcher."""
    lines = (line.strip().lstrip("@-+ ") for line in recipe.splitlines())
    return any(command.program == program for line in lines for command in parse_commands(line))


def _may_run(unanswered: Unanswered, value: str) -> bool:
    """Whether a command may run the tool that failed, where no other tool does the same: a target or a script may."""
    if unanswered.job not in _OF_ONE_TOOL:
        return True
    commands = parse_commands(value)
    return any(one.tool in (unanswered.tool, *_RUNNERS) or "/" in one.program for one in commands)


def _lines(unanswered: Unanswered) -> tuple[str, ...]:
    return (unanswered.line, *unanswered.tried)


def _is_proven(hint: dict[str, Any]) -> bool:
    """Whether somebody set or trusted it, or it worked here: what scan found is told as what the manifest says."""
    return hint.get("origin") in (None, SOURCE) or (hint["origin"] == SCANNED and hint["is_used"])


def _of_place(hints: Sequence[dict[str, Any]], unanswered: Unanswered, project: str) -> dict[str, Any] | None:
    """The hint of the component in which the command ran; of the only component that has one."""
    components = {hint["name"].rpartition("/")[0]: hint for hint in reversed(hints)}
    if len(components) == 1:
        return hints[0]
    place = (unanswered.cwd or "").removeprefix(unanswered.root or "").split("/")
    names = (*reversed(place), project.rpartition("/")[2])
    return next((components[name] for name in names if name in components), None)
