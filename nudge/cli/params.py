"""Parameter types and shared options of the click commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from nudge import context, limits
from nudge.cli import plain
from nudge.clock import iso

F = TypeVar("F", bound=Callable[..., Any])

GLOBAL_SECTION = "Anywhere on the line"
CONTEXT_SECTION = "Context (the current one, unless given)"
SCOPE_SECTION = "Scope (each takes several, with commas or repeated)"

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAY = _UNITS["d"]


class Option(click.Option):
    """An option with the section of the help that lists it."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class Parsed(click.ParamType[Any]):
    """A value made by a plain function; its ValueError is the usage error. `choices` are offered by completion."""

    def __init__(self, name: str, parse: Callable[[str], Any], choices: Sequence[str] = ()) -> None:
        self.name, self._parse, self._choices = name, parse, choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Behind a comma, offer the names that are not in the list yet."""
        from click.shell_completion import CompletionItem

        del ctx, param
        *given, last = incomplete.split(",")
        return [
            CompletionItem(",".join([*given, name]))
            for name in self._choices
            if name.startswith(last) and name not in given
        ]


def parse_id(text: str) -> int:
    """`42`, or `#42` as it is printed."""
    number = plain.parse_whole(text.removeprefix("#"))
    if number < 1:
        raise ValueError(f"{text!a} is not the id of an observation")
    return number


def parse_note_id(text: str) -> int:
    """`m12` as it is printed, or `12`."""
    number = text.removeprefix("m")
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= limits.MAX_NOTE_ID):
        raise ValueError(f"{text!a} is not the id of a note, such as m12")
    return int(number)


def parse_note_ids(text: str) -> list[int]:
    """`m1,m2,m3`."""
    return [parse_note_id(part) for part in plain.parse_list(text)]


def parse_count(text: str) -> int:
    number = plain.parse_whole(text)
    if number < 1:
        raise ValueError(f"{number} is not a number of results (1 or more)")
    return number


def parse_span(text: str) -> int:
    """Seconds in `90m`, `36h`, `7d`, `2w`."""
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in _UNITS:
        raise ValueError(f"{text!a} is not a time span such as 90m, 36h, 7d or 2w")
    return int(number) * _UNITS[unit]


def parse_time(text: str) -> int:
    """Unix seconds; a date or an ISO time, local if it names no zone; or a span, counted back from now."""
    if text.isdecimal():
        return int(text)
    if text[-1:] in _UNITS and text[:-1].isdecimal():
        return int(time.time()) - parse_span(text)
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!a} is not a time such as 2026-11-16, 2026-11-16T08:30 or 7d") from None


def parse_utc(text: str) -> str:
    """What `parse_time` takes, as RFC 3339 in UTC."""
    return iso(parse_time(text))


def parse_expiry(text: str) -> str:
    """A date, an ISO time, or a span that is counted from now, as RFC 3339 in UTC."""
    is_span = text[-1:] in _UNITS and text[:-1].isdecimal()
    return iso(int(time.time()) + parse_span(text) if is_span else parse_time(text))


def parse_days(text: str) -> int:
    days, rest = divmod(parse_span(f"{text}d" if text.isdecimal() else text), _DAY)
    if rest:
        raise ValueError(f"{text!a} is not a number of whole days such as 90d or 12w")
    return days


WHOLE = Parsed("integer", plain.parse_whole)
COUNT = Parsed("count", parse_count)
NUMBER = Parsed("number", plain.parse_number)
PORT = Parsed("port", plain.parse_port)
PAIR = Parsed("pair", plain.parse_pair)
LIST = Parsed("list", plain.parse_list)
GLOBS = Parsed("globs", plain.parse_globs)
SYSTEMS = Parsed("systems", plain.parse_list, context.OS_NAMES)
ID = Parsed("id", parse_id)
NOTE_ID = Parsed("id", parse_note_id)
NOTE_IDS = Parsed("ids", parse_note_ids)
TIME = Parsed("time", parse_time)
UTC_TIME = Parsed("time", parse_utc)
EXPIRY = Parsed("time", parse_expiry)
DAYS = Parsed("days", parse_days)


def option(*names: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(*names, cls=Option, **attributes)


def list_option(*names: str, type: Parsed, **attributes: Any) -> Callable[[F], F]:
    """An option that may be repeated, each time with a list; its value is one list, or None when it is not used."""

    def join(_: click.Context, __: click.Parameter, values: Sequence[list[str]]) -> list[str] | None:
        return [item for items in values for item in items] or None

    return option(*names, type=type, multiple=True, callback=join, **attributes)


def options(*decorators: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several option decorators as one, listed in this order by the help."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def name_arguments(function: F) -> F:
    """COMPONENT and KEY."""
    from nudge.cli import completion

    return options(
        click.argument(
            "component", metavar="COMPONENT", help="Service, module or folder.", shell_complete=completion.components
        ),
        click.argument(
            "key",
            metavar="KEY",
            required=False,
            help="What the hint is about; COMPONENT/KEY in one word is the same.",
            shell_complete=completion.keys,
        ),
    )(function)


context_options = options(
    option("--cwd", metavar="DIR", section=CONTEXT_SECTION, help="Directory; its repo and branch are used too."),
    option("--repo", metavar="REPO", section=CONTEXT_SECTION, help="git:org/repo, a clone URL or file:///path."),
    option("--branch", metavar="BRANCH", section=CONTEXT_SECTION, help="Branch."),
    option("--os", type=click.Choice(context.OS_NAMES), section=CONTEXT_SECTION, help="Operating system."),
    option(
        "--env",
        type=PAIR,
        multiple=True,
        metavar="NAME=VALUE",
        section=CONTEXT_SECTION,
        help="Environment variable (repeatable).",
    ),
)


def scope_options(everywhere: str) -> Callable[[F], F]:
    """The conditions of a scope; `everywhere` is the help of --global."""
    section = {"section": SCOPE_SECTION}
    return options(
        list_option(
            "--scope-cwd-glob", type=GLOBS, metavar="GLOB", help="Directories, such as '**/http-proxy*'.", **section
        ),
        list_option(
            "--scope-repo", type=LIST, metavar="REPO", help="git:org/repo, a clone URL, or . for this one.", **section
        ),
        list_option("--scope-branch", type=LIST, metavar="BRANCH", help="Branches or globs: 'hotfix/*'.", **section),
        list_option("--scope-os", type=SYSTEMS, metavar="OS", help="linux, darwin, windows.", **section),
        list_option(
            "--scope-env", type=LIST, metavar="NAME", help="Environment variables that must be set.", **section
        ),
        option(
            "--scope-env-match",
            type=PAIR,
            multiple=True,
            metavar="NAME=VALUE[,VALUE]",
            help="Allowed values of a variable.",
            **section,
        ),
        option("--global", "everywhere", is_flag=True, help=everywhere, **section),
    )


def limit_option(default: int, noun: str = "results", type: Parsed = COUNT) -> Callable[[F], F]:
    return option("--limit", type=type, metavar="N", help=f"Maximum number of {noun} ({default}).")


def window_options(noun: str) -> Callable[[F], F]:
    return options(
        option(
            "--before",
            type=TIME,
            metavar="WHEN",
            help=f"Only {noun} before: a date, an ISO time, or 7d (seven days ago).",
        ),
        option("--after", type=TIME, metavar="WHEN", help=f"Only {noun} after."),
    )


def given(**values: Any) -> dict[str, Any]:
    """The parameters that have a value."""
    return {name: value for name, value in values.items() if value is not None}
