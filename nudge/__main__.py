"""The console script, and its thin front: hooks, the status line, `nudge serve` and plain get, set and bump lines run
without click.

Importing click takes three times as long as starting Python, and agents run these lines all day. A line with anything
that the table does not list goes to click, which also reports every usage error.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn

    Parse = Callable[[str], Any]


class _Grammar:
    """The grammar of a plain line of one verb: positional words, flags, and options with a value."""

    __slots__ = ("flags", "options", "words")

    def __init__(
        self, words: Sequence[str], flags: Mapping[str, str], options: Mapping[str, tuple[str, Parse | None]]
    ) -> None:
        self.words, self.flags, self.options = words, flags, options


def _parse_whole(text: str) -> int:
    return int(text)


def _parse_list(text: str) -> list[str]:
    from nudge.cli.plain import parse_list

    return parse_list(text)


def _parse_type(text: str) -> str:
    from nudge.cli.plain import VALUE_TYPES

    if text not in VALUE_TYPES:
        raise ValueError
    return text


def _parse_port(text: str) -> int:
    from nudge.cli.plain import parse_port

    return parse_port(text)


_PLAIN = {
    "get": _Grammar(("component", "key"), {"--json": "json", "--explain": "explain", "--value-only": "value_only"}, {}),
    "set": _Grammar(
        ("component", "key", "value"),
        {"--json": "json", "--global": "everywhere"},
        {
            "--type": ("type", _parse_type),
            "--reason": ("reason", None),
            "--tags": ("tags", _parse_list),
            "--ttl": ("ttl", None),
        },
    ),
    "bump": _Grammar(("component", "key"), {"--json": "json"}, {"--delta": ("delta", _parse_whole)}),
    "serve": _Grammar(
        (),
        {"--daemon": "daemon", "--detach": "detach", "--http": "http_only", "--http-only": "http_only"},
        {
            "--successor": ("successor", None),
            "--for-new-session": ("for_new_session", None),
            "--port": ("port", _parse_port),
            "-p": ("port", _parse_port),
        },
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words == ["record"]:
            return _run_hook() if argv is not None else _run_only_hook()
        if words == ["statusline"] and argv is None:
            _run_only_statusline()
        values = parse_plain(words)
        if values is not None:
            return _run_plain(words[0], values)
        from nudge.cli import app

        return app.main(words, run_hook=_run_hook)
    except KeyboardInterrupt:  # also while modules are imported
        return 130


def _parsed(text: str | None, parse: Callable[[str], Any] | None) -> Any:
    """Return the value of an option; None when it has none, or one that click must judge."""
    try:
        return text if parse is None or text is None else parse(text)
    except ValueError:
        return None


def parse_plain(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the values of a plain line by their names; None for a line that click must see."""
    grammar = _PLAIN.get(words[0]) if words else None
    if grammar is None or "--" in words:
        return None
    values: dict[str, Any] = {}
    positional: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in grammar.flags:
            values[grammar.flags[word]] = True
        elif word in grammar.options:
            name, parse = grammar.options[word]
            if name in values or (value := _parsed(next(rest, None), parse)) is None:
                return None
            values[name] = value
        elif word.startswith("-"):
            return None
        else:
            positional.append(word)
    if grammar.words and len(positional) == len(grammar.words) - 1:
        from nudge.cli.plain import split_name

        positional[:1] = [part for part in split_name(positional[0]) if part is not None] if positional else []
    if len(positional) != len(grammar.words):
        return None
    return {**dict(zip(grammar.words, positional, strict=True)), **values}


def _run_plain(verb: str, values: dict[str, Any]) -> int:
    if verb == "serve":
        return _run_serve(values)
    from nudge.cli import output

    return output.run_flushed(lambda: _run_hint_verb(verb, bool(values.pop("json", False)), values))


def _run_serve(values: dict[str, Any]) -> int:
    from nudge.core.errors import NudgeError
    from nudge.process import role

    try:
        return role.serve(role.ServeOptions(**values))
    except NudgeError as error:
        from nudge.cli import output

        return output.report_error(error, verb="serve", as_json=False)


def _run_hint_verb(verb: str, as_json: bool, values: dict[str, Any]) -> int:
    from nudge.cli import output, plain
    from nudge.core.errors import NudgeError

    runs: dict[str, Callable[..., int]] = {"get": plain.get, "set": plain.set_hint, "bump": plain.bump}
    invocation = plain.Invocation(as_json=as_json)
    try:
        return runs[verb](invocation, **values)
    except NudgeError as error:
        return output.report_error(error, verb=verb, as_json=as_json)
    except output.Usage as error:
        from nudge.cli import app

        return output.report_usage(error.message, error.advice or app.example_advice(verb), verb)


def _run_hook() -> int:
    import os

    from nudge import hook

    return hook.main(None if sys.stdin is None else sys.stdin.buffer, os.environ)


def _run_only_hook() -> int:
    """Run the hook as the only work of this process: without garbage collection, and `hook.run` exits without tearing
    down the interpreter. Every tool call of every agent pays for this."""
    import gc

    gc.disable()
    from nudge import hook

    hook.run()
    return 0


def _run_only_statusline() -> NoReturn:
    """As for a hook: an agent's client runs it every few seconds."""
    import gc

    gc.disable()
    from nudge import statusline

    statusline.run()


if __name__ == "__main__":
    sys.exit(main())
