"""Parameter types and options that several verbs share, and functions that turn their values into parameters of an
operation."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from nudge.cli import completion, plain
from nudge.cli.output import Usage
from nudge.core import context, limits
from nudge.core.clock import iso
from nudge.core.errors import Invalid
from nudge.core.repos import normalize_repo
from nudge.notes.fields import FIELDS, KINDS, TIERS, Field, Form

F = TypeVar("F", bound=Callable[..., Any])

GLOBAL_SECTION = "Global options (anywhere on the line)"
CONTEXT_SECTION = "Context (default: where you are)"
SCOPE_SECTION = "Scope: where the hint applies (several values: separate with commas, or repeat)"

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAY = _UNITS["d"]
_URL = re.compile(r"git:|[a-z+]+://|[^\s/@]+@[^\s/]+:")


class Option(click.Option):
    """An option with the section of the help that lists it. `unlisted` names are accepted
    too: what a seed calls the parameter."""

    def __init__(self, *args: Any, section: str = "Options", unlisted: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section, self.unlisted = section, unlisted

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        shown = self.opts
        self.opts = [*shown, *self.unlisted]
        super().add_to_parser(parser, ctx)
        self.opts = shown


class FunctionType(click.ParamType[Any]):
    """A parameter type with a function that parses its values; the ValueError of that function is the usage error.
    `choices` are offered by completion."""

    def __init__(self, name: str, parse: Callable[[str], Any], choices: Sequence[str] = ()) -> None:
        self.name, self._parse, self._choices = name, parse, choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """After a comma, offer the choices that are not in the list yet."""
        del ctx, param
        *given, last = incomplete.split(",")
        return [
            CompletionItem(",".join([*given, name]))
            for name in self._choices
            if name.startswith(last) and name not in given
        ]


def parse_number(text: str) -> float:
    """Parse a number that JSON can carry: `nan` and `inf` are refused."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number - number != 0:
        raise ValueError(f"{text!a} is not a number")
    return number


def parse_pair(text: str) -> tuple[str, str]:
    """Parse `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"{text!a} is not NAME=VALUE")
    return name, value


def parse_globs(text: str) -> list[str]:
    """Like `plain.parse_list`, but a comma inside braces belongs to the pattern."""
    patterns, depth = [""], 0
    for char in text:
        depth = max(0, depth + (char == "{") - (char == "}"))
        if char == "," and depth == 0:
            patterns.append("")
        else:
            patterns[-1] += char
    return [pattern.strip() for pattern in patterns if pattern.strip()] or plain.parse_list("")


def parse_systems(text: str) -> list[str]:
    """Parse names of operating systems: `linux,darwin`."""
    names = plain.parse_list(text)
    if unknown := next((name for name in names if name not in context.OS_NAMES), None):
        raise ValueError(f"{unknown!a} is not one of {', '.join(map(repr, context.OS_NAMES))}")
    return names


def parse_id(text: str) -> int:
    """Parse the id of an observation: `42`, or `#42` as it is printed."""
    number = plain.parse_whole(text.removeprefix("#"))
    if number < 1:
        raise ValueError(f"{text!a} is not the id of an observation")
    return number


def parse_note_id(text: str) -> int:
    """Parse the id of a note: `m12` as it is printed, or `12`."""
    number = text.removeprefix("m")
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= limits.MAX_NOTE_ID):
        raise ValueError(f"{text!a} is not the id of a note, such as m12")
    return int(number)


def parse_note_ids(text: str) -> list[int]:
    """Parse ids of notes: `m1,m2,m3`."""
    return [parse_note_id(part) for part in plain.parse_list(text)]


def parse_repo(text: str) -> str:
    """Parse the name of a repo, short or full, or its URL; `.` is the repo or directory you are in. A repo is named by
    any other text too: notes may belong to a team."""
    if text == ".":
        if (here := context.resolve().project) is None:
            raise ValueError("'.' needs a directory, and the current one does not exist")
        return here
    return (context.project_of(normalize_repo(text), None) or text) if _URL.match(text) else text


def parse_count(text: str) -> int:
    number = plain.parse_whole(text)
    if number < 1:
        raise ValueError(f"{number} is not a number of results (1 or more)")
    return number


def parse_span(text: str) -> int:
    """Return the seconds in `90m`, `36h`, `7d`, `2w`."""
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in _UNITS:
        raise ValueError(f"{text!a} is not a time span such as 90m, 36h, 7d or 2w")
    return int(number) * _UNITS[unit]


def parse_time(text: str) -> int:
    """Return Unix seconds for a date, an ISO time (local if it names no zone), Unix seconds, or a span before now."""
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
    """Like `parse_time`, as RFC 3339 in UTC."""
    return iso(parse_time(text))


def parse_expiry(text: str) -> str:
    """Return RFC 3339 in UTC for a date, an ISO time, or a span after now."""
    is_span = text[-1:] in _UNITS and text[:-1].isdecimal()
    return iso(int(time.time()) + parse_span(text) if is_span else parse_time(text))


def parse_days(text: str) -> int:
    days, rest = divmod(parse_span(f"{text}d" if text.isdecimal() else text), _DAY)
    if rest:
        raise ValueError(f"{text!a} is not a number of whole days such as 90d or 12w")
    return days


def parse_metadata(text: str) -> dict[str, Any]:
    try:
        metadata = plain.parse_json(text.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(metadata, dict):
        raise ValueError("""must be a JSON object such as '{"ticket": 12}'""")
    return metadata


WHOLE = FunctionType("integer", plain.parse_whole)
COUNT = FunctionType("count", parse_count)
REPO = FunctionType("repo", parse_repo)
NUMBER = FunctionType("number", parse_number)
PORT = FunctionType("port", plain.parse_port)
PAIR = FunctionType("pair", parse_pair)
LIST = FunctionType("list", plain.parse_list)
GLOBS = FunctionType("globs", parse_globs)
SYSTEMS = FunctionType("systems", parse_systems, context.OS_NAMES)
ID = FunctionType("id", parse_id)
NOTE_ID = FunctionType("id", parse_note_id)
NOTE_IDS = FunctionType("ids", parse_note_ids)
TIME = FunctionType("time", parse_time)
UTC_TIME = FunctionType("time", parse_utc)
EXPIRY = FunctionType("time", parse_expiry)
DAYS = FunctionType("days", parse_days)
METADATA = FunctionType("metadata", parse_metadata)


def option(*names: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(*names, cls=Option, **attributes)


def list_option(*names: str, type: FunctionType, **attributes: Any) -> Callable[[F], F]:
    """An option that may be repeated, each time with a list; its value is one list, or None when it is not used."""

    def join(_: click.Context, __: click.Parameter, values: Sequence[list[str]]) -> list[str] | None:
        return [item for items in values for item in items] or None

    return option(*names, type=type, multiple=True, callback=join, **attributes)


def _repo_option(name: str, help: str, complete: completion.Complete, **attributes: Any) -> Callable[[F], F]:
    unlisted = ["--project", "--namespace"]
    return option(
        "--repo",
        name,
        unlisted=unlisted,
        type=REPO,
        metavar="REPO",
        help=help,
        shell_complete=complete,
        **attributes,
    )


def options(*decorators: Callable[[Any], Any]) -> Callable[[F], F]:
    """Combine option decorators; the help lists them in this order."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def name_arguments(key: str = "KEY") -> Callable[[F], F]:
    """Return the arguments COMPONENT and KEY; `key` is how usage shows the second."""
    return options(
        click.argument(
            "component",
            metavar="COMPONENT",
            help="Service, module or directory that the hint is about.",
            shell_complete=completion.hints,
        ),
        click.argument(
            "key",
            metavar=key,
            required=False,
            help="Name of the hint, such as build. COMPONENT/KEY in one word is the same.",
            shell_complete=completion.keys,
        ),
    )


context_options = options(
    option("--cwd", metavar="DIR", section=CONTEXT_SECTION, help="Directory; its repo and branch are used too."),
    option("--repo", metavar="REPO", section=CONTEXT_SECTION, help="Repo: git:org/repo, a clone URL or file:///path."),
    option("--branch", metavar="BRANCH", section=CONTEXT_SECTION, help="Git branch."),
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
    """Return the options for the conditions of a scope; `everywhere` is the help of --global."""
    section = {"section": SCOPE_SECTION}
    return options(
        list_option(
            "--scope-cwd-glob",
            type=GLOBS,
            metavar="GLOB",
            help="Directories as globs, such as '**/http-proxy*'.",
            **section,
        ),
        list_option(
            "--scope-repo",
            type=LIST,
            metavar="REPO",
            help="Repos: git:org/repo, a clone URL, or . for this one.",
            **section,
        ),
        list_option(
            "--scope-branch", type=LIST, metavar="BRANCH", help="Branches, also as globs: 'hotfix/*'.", **section
        ),
        list_option(
            "--scope-os", type=SYSTEMS, metavar="OS", help="Operating systems: linux, darwin, windows.", **section
        ),
        list_option(
            "--scope-env", type=LIST, metavar="NAME", help="Environment variables that must be set.", **section
        ),
        option(
            "--scope-env-match",
            type=PAIR,
            multiple=True,
            metavar="NAME=VALUE[,VALUE]",
            help="Environment variable and the values it may have.",
            **section,
        ),
        option("--global", "everywhere", is_flag=True, help=everywhere, **section),
    )


dry_run_option = option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")


def clamped_count(most: int) -> FunctionType:
    """The type of a number that is taken as the nearest one from 1 to `most`."""
    return FunctionType("count", lambda text: min(max(plain.parse_whole(text), 1), most))


def limit_option(default: int, noun: str = "results", most: int | None = None) -> Callable[[F], F]:
    """With `most`, the number is clamped."""
    limit = COUNT if most is None else clamped_count(most)
    return option("--limit", type=limit, metavar="N", help=f"Maximum number of {noun} (default: {default}).")


def window_options(noun: str) -> Callable[[F], F]:
    return options(
        option(
            "--before",
            type=TIME,
            metavar="WHEN",
            help=f"Only {noun} before WHEN: a date, an ISO time, or 7d (seven days ago).",
        ),
        option("--after", type=TIME, metavar="WHEN", help=f"Only {noun} after WHEN."),
    )


def drop_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None: options that were not used are not sent."""
    return {name: value for name, value in values.items() if value is not None}


# Notes

id_argument = click.argument(
    "note_id", metavar="ID", type=NOTE_ID, help="The note, such as m12 or 12.", shell_complete=completion.note_ids
)


def namespace_option(
    help: str = "Only notes of this repo; . is the one you are in.", name: str = "namespace"
) -> Callable[[F], F]:
    """The option for the repo of notes; `name` is the parameter of the verb."""
    return _repo_option(name, help, completion.namespaces)


filter_options = options(
    namespace_option(),
    option("--tier", type=click.Choice(TIERS), help="Only notes of this tier."),
    option("--kind", type=click.Choice(KINDS), help="Only notes of this kind."),
    list_option("--tags", type=LIST, metavar="TAG,TAG", help="Only notes with one of these tags."),
    option(
        "--since",
        type=UTC_TIME,
        metavar="WHEN",
        help="Only notes changed since WHEN: a date, an ISO time, or 7d (seven days ago).",
    ),
    option("--until", type=UTC_TIME, metavar="WHEN", help="Only notes changed until WHEN."),
    option("--min-priority", type=WHOLE, metavar="N", help="Only notes of this priority or higher (1 to 10)."),
)


def field_options(table: Sequence[Field] = FIELDS, *, is_new: bool = True) -> Callable[[F], F]:
    """Return the options for the fields of a note or an attempt. An update has no defaults: what is not given stays."""
    return options(*(_field_option(one, is_new) for one in table if one.help and (is_new or one.is_changeable)))


_FIELD_TYPES = {
    Form.SECONDS: WHOLE,
    Form.TAGS: LIST,
    Form.PATHS: LIST,
    Form.WHOLE: WHOLE,
    Form.FRACTION: NUMBER,
    Form.TIME: EXPIRY,
    Form.OBJECT: METADATA,
}


def _field_option(one: Field, is_new: bool) -> Callable[[F], F]:
    name = f"--{one.name.replace('_', '-')}"
    names = (*(one.options or (name,)), one.name)
    help = f"{one.help} (default: {one.default})." if is_new and one.default else f"{one.help}."
    match one.form:
        case Form.TEXT | Form.PARTS:
            return option(*names, metavar=one.metavar, required=is_new and one.is_required, help=help)
        case Form.REPO:
            return namespace_option(help)
        case Form.CHOICE:
            choice, is_needed = click.Choice(one.offered or one.accepted), is_new and one.is_required
            return option(*names, type=choice, metavar=one.metavar or None, required=is_needed, help=help)
        case Form.TAGS | Form.PATHS:
            return list_option(name, type=_FIELD_TYPES[one.form], metavar=one.metavar, help=help)
        case _:
            return option(name, type=_FIELD_TYPES[one.form], metavar=one.metavar, help=help)


words_argument = click.argument("words", metavar="WORDS...", nargs=-1, required=True, help="Words to search for.")


def note_fields(namespace: str | None = None, **values: Any) -> dict[str, Any]:
    """Return the fields of an operation on notes: the options that were used."""
    return drop_none(namespace=namespace, **values)


def read_text(text: str) -> str:
    """Return the text of a note as it was given; `-` reads it from stdin."""
    if text != "-":
        return text
    too_large = Invalid(f"must be at most {limits.MAX_NOTE_BYTES} bytes", field="content")
    return plain.read_stdin(limits.MAX_NOTE_BYTES + 1, too_large, "convert it first, for example with iconv")


# Repos: what the history calls a project, and notes a namespace


def project_option(help: str, **attributes: Any) -> Callable[[F], F]:
    """The option for the repo of observations, sessions, attempts and facts."""
    return _repo_option("project", help, completion.projects, **attributes)


def all_projects_option(help: str = "All repos.") -> Callable[[F], F]:
    return option("--all-repos", "all_projects", unlisted=["--all-projects"], is_flag=True, help=help)


project_options = options(
    project_option("Only this repo (default: the one you are in)."),
    all_projects_option(),
)


def resolve_project(project: str | None, all_projects: bool) -> str | None:
    """Return the project that --repo names, else the current one; None stands for all of them."""
    if all_projects and project is not None:
        raise Usage("--repo and --all-repos exclude each other", "leave one out")
    if all_projects or project is not None:
        return None if all_projects else str(project).casefold()
    return context.resolve().project


def project_params(project: str | None) -> dict[str, Any]:
    """Return the parameters for a project; None asks for all of them.

    The current project goes with a question about all: a private project is shown only to callers that are in it."""
    here = context.resolve().project if project is None else None
    return {"project": project} | ({} if here is None else {"context": {"project": here}})
