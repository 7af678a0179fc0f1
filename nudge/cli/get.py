"""`nudge get`: the hint that fits here best, and why."""

from __future__ import annotations

from nudge.cli import context_flags, exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = (
    "nudge get http-proxy build",
    "nudge get http-proxy build --explain",
    'eval "$(nudge get http-proxy build --value-only)"',
    "nudge get http-proxy directory --os windows",
)


def configure(parser: Parser) -> None:
    parser.add_argument("component", metavar="COMPONENT", help="service, module or folder")
    parser.add_argument("key", metavar="KEY", help="what the hint is about")
    parser.add_argument("--explain", action="store_true", help="show what the score is made of, and all about the hint")
    parser.add_argument("--value-only", action="store_true", help="print the bare value and nothing else, for scripts")
    context_flags.add(parser)


def run(arguments: Namespace) -> int:
    if arguments.value_only and arguments.json:
        raise Usage("--value-only and --json exclude each other", "leave one out")
    console = Console(as_json=arguments.json)
    params = {"component": arguments.component, "key": arguments.key, "context": context_flags.read(arguments)}
    result = connect(arguments).call("nudge.get_hint", params)
    if arguments.value_only:
        console.show([_bare(console, result["hint"])])
    else:
        console.result(result, _lines(console.pen, result, explain=arguments.explain))
    return exits.DONE


def _bare(console: Console, hint: dict[str, Any]) -> str:
    """Byte for byte into a pipe; on a terminal even this value must not steer it."""
    value = render.bare_value(hint["value"])
    return render.visible(value, lines=True) if console.is_terminal else value


def _lines(pen: render.Pen, result: dict[str, Any], *, explain: bool) -> Iterator[str]:
    hint = result["hint"]
    yield from _value_lines(pen, hint)
    if explain:
        yield from _about(pen, hint)
    yield from render.match_lines(pen, result["match_explain"], parts=explain)


def _value_lines(pen: render.Pen, hint: dict[str, Any]) -> Iterator[str]:
    label, kind = pen.paint("bold", "value:"), render.kind_of(hint)
    first, *more = render.shown_value(hint, lines=True).split("\n")
    note = pen.paint("dim", f"  ({kind})") if kind else ""
    if more:
        yield f"{label}{note}"
        yield from (f"  {line}" for line in (first, *more))
    else:
        yield f"{label} {pen.paint('green', first)}{note}"


def _about(pen: render.Pen, hint: dict[str, Any]) -> Iterator[str]:
    meta = hint.get("meta", {})
    yield pen.paint("bold", "about:")
    yield f"  {render.score_base(hint)}"
    yield f"  scope: {render.scope_words(render.scope_of(hint))}"
    yield f"  v{hint['version']}, set {hint['updated_at']}{_first_set(hint)}, {_uses(hint)}"
    yield from (f"  {word}: {render.visible(str(meta[name]))}" for name, word in _SAID.items() if name in meta)
    yield from _defaults(hint)


def _first_set(hint: dict[str, Any]) -> str:
    return f" (first {hint['created_at']})" if hint["created_at"] != hint["updated_at"] else ""


def _uses(hint: dict[str, Any]) -> str:
    last = f" (last {hint['last_used_at']})" if "last_used_at" in hint else ""
    return f"used {render.counted(hint.get('use_count', 0), 'time')}{last}"


def _defaults(hint: dict[str, Any]) -> Iterator[str]:
    """What a template has for the names that nobody fills in; they are part of the value, and as secret."""
    value = hint.get("value")
    defaults = value.get("defaults") if isinstance(value, dict) and not render.is_secret(hint) else None
    yield from (f"  default {render.visible(f'{name}={text}')}" for name, text in (defaults or {}).items())


_SAID = {"reason": "reason", "source": "source", "added_by": "added by", "sensitivity": "sensitivity"}
