"""A refusal as a person reads it: code, sentence and what to do next in one line; under a miss, what there is
instead."""

from __future__ import annotations

from nudge.cli import exits
from nudge.cli.console import Console
from nudge.cli.render import scope_words, visible
from nudge.errors import SettingInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nudge.errors import NudgeError

_EXITS = {"E_NOT_FOUND": exits.NOTHING_FOUND, "E_UNAVAILABLE": exits.NO_SERVER}

# Other sentences already say what to do.
_ADVICE = {
    "E_NOT_FOUND": "see what there is with: nudge ls",
    "E_QUOTA": "make room with: nudge delete COMPONENT KEY",
    "E_SCOPE_INVALID": "see: nudge {verb} --help",
    "E_INVALID": "see: nudge {verb} --help",
}


def report(error: NudgeError, *, verb: str, as_json: bool) -> int:
    console = Console(as_json=as_json)
    if as_json:
        console.json({"error": error.to_wire()})
    else:
        console.remark(_sentence(error, verb))
        for line in _why_not(error):
            console.remark(line)
    return _EXITS.get(error.reason, exits.REFUSED)


def _sentence(error: NudgeError, verb: str) -> str:
    advice = "" if isinstance(error, SettingInvalid) else _ADVICE.get(error.reason, "").format(verb=verb)
    if error.data.get("why_not"):
        advice = "see its variants with: nudge ls " + visible(str(error.data.get("component", "")))
    said = f"nudge: {error.reason} ({error.code}): {visible(error.message.rstrip('.'))}"
    return f"{said}; {advice}" if advice and "nudge " not in error.message else said


def _why_not(error: NudgeError) -> Iterator[str]:
    """The variants that exist but are not for here, or what else the component has."""
    for variant in error.data.get("why_not") or ():
        yield f"  for {scope_words(variant.get('scope'))}: {visible('; '.join(variant.get('reasons') or ()))}"
    for scope in error.data.get("scopes") or ():
        yield f"  there is one for {scope_words(scope)}"
    if known := error.data.get("known_keys"):
        yield f"  it has: {visible(', '.join(known))}"
