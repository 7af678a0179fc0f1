"""What the verbs of the history share: the flags that say which part of it is meant, and how an observation looks."""

from __future__ import annotations

import argparse
import time

from nudge import config, context
from nudge.cli import render
from nudge.cli.parsing import Usage, whole
from nudge.clock import ago
from nudge.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from nudge.cli.parsing import Parser
    from nudge.ipc.client import Client

    Observation = dict[str, Any]

SHORT_ID = (
    8  # characters of a session's id that a table shows; as many as tell two sessions apart are enough to name one
)
IDS_AT_ONCE = 50  # that one request may ask for

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_STYLES = {
    "command_error": "red",
    "git_commit": "green",
    "file_edit": "yellow",
    "file_write": "yellow",
    "user_prompt": "cyan",
}


# Flags


def identity(text: str) -> int:
    """`42`, or `#42` as it is printed."""
    number = whole(text.removeprefix("#"))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!a} is not an observation's id")
    return number


def span(text: str) -> int:
    """Seconds in `90m`, `36h`, `7d`, `2w`."""
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text!a} is not a time span such as 90m, 36h, 7d or 2w")
    return int(number) * _UNITS[unit]


def moment(text: str) -> int:
    """Unix seconds; a date or an ISO time, here if it names no zone; or a span, so long ago."""
    if text.isdecimal():
        return int(text)
    if text[-1:] in _UNITS and text[:-1].isdecimal():
        return int(time.time()) - span(text)
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(f"{text!a} is not a time such as 2026-11-16, 2026-11-16T08:30 or 7d") from None


def add_project(parser: Parser) -> None:
    parser.add_argument("--project", metavar="NAME", help="this project (the one you are in)")
    parser.add_argument("--all-projects", action="store_true", help="every project")


def project_of(arguments: Namespace) -> str | None:
    """The one that is named, else where we are; None is all of them."""
    if arguments.all_projects and arguments.project is not None:
        raise Usage("--project and --all-projects exclude each other", "leave one out")
    if arguments.all_projects or arguments.project is not None:
        return None if arguments.all_projects else str(arguments.project).casefold()
    return context.resolve().project


def asked_of(project: str | None) -> dict[str, Any]:
    """A project, or all of them with where we are: of a private one only those are told who stand in it."""
    here = context.resolve().project if project is None else None
    return {"project": project} | ({} if here is None else {"context": {"project": here}})


def left_out() -> str | None:
    """What a question about all projects does not see from here."""
    private = set(config.load().private_projects) - {context.resolve().project}
    return f"private projects were left out; name one with --project: {', '.join(sorted(private))}" if private else None


def add_window(parser: Parser, what: str) -> None:
    parser.add_argument(
        "--before", type=moment, metavar="WHEN", help=f"only {what} before: a date, an ISO time, or 7d for so long ago"
    )
    parser.add_argument("--after", type=moment, metavar="WHEN", help=f"only {what} after")


def given(arguments: Namespace, **names: str) -> dict[str, Any]:
    """Parameters from those flags that were used."""
    return {parameter: value for parameter, flag in names.items() if (value := getattr(arguments, flag)) is not None}


# Asking


def find_session(client: Client, word: str, project: str | None = None) -> str:
    """`last`, a whole id, or enough of its beginning."""
    which = {"limit": 1} if word == "last" else {"session": word, "limit": 20}
    found = client.call("nudge.sessions", {**asked_of(project), **which})
    ids = [str(session["session_id"]) for session in found]
    if word in ids or (word and len(ids) == 1):
        return word if word in ids else ids[0]
    if not ids:
        raise NotFound(f"session not found: {word}; see: nudge sessions")
    raise Usage(f"several sessions begin with {word!a}", f"one is {ids[0]}; see: nudge sessions")


def fetch(client: Client, ids: Sequence[int]) -> list[Observation]:
    """Whole observations, in the order of asking."""
    portions = (ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE))
    return [found for portion in portions for found in client.call("nudge.get_observations", {"ids": list(portion)})]


# Showing


def local(timestamp: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return time.strftime(form, time.localtime(timestamp))


def clock_of(timestamps: Iterable[float]) -> str:
    """How to tell these times: what lasts several days says of each line on which."""
    days = {local(timestamp, "%Y-%m-%d") for timestamp in timestamps}
    return "%H:%M:%S" if len(days) < 2 else "%Y-%m-%d %H:%M:%S"


def age(timestamp: float) -> str:
    return ago(time.time() - timestamp)


def said(observation: Observation) -> str:
    """One line of it: the path for what is about a file, or several, else what was run, asked or searched for."""
    text = observation.get("content", observation.get("content_preview")) or ""
    path = observation.get("file_path")
    if str(observation["obs_type"]).startswith("file_") and path and not text.startswith(f"{path}\n"):
        text = path
    return render.visible(" ".join(str(text).split()))


def quoted(text: str | None) -> str:
    return f'"{render.visible(" ".join((text or "").split()))}"'


def table(
    pen: render.Pen, observations: Sequence[Observation], *, clock: str | None = None, indent: str = ""
) -> Iterator[str]:
    """`#42  2h ago  command_error  cargo test`; with `clock`, the time of day instead of the age."""
    return _table(pen, observations, [""] * len(observations), clock=clock, indent=indent)


def table_of_projects(pen: render.Pen, observations: Sequence[Observation], here: str | None) -> Iterator[str]:
    """The same, with the project of each where not all are of the one that was asked for."""
    names = [str(one.get("project") or "-") for one in observations]
    shown = any(name != here for name in names)
    return _table(pen, observations, [f"{render.visible(name)}  " if shown else "" for name in names])


def _table(
    pen: render.Pen,
    observations: Sequence[Observation],
    marks: Sequence[str],
    *,
    clock: str | None = None,
    indent: str = "",
) -> Iterator[str]:
    cells = [
        (f"#{number_of(one)}", local(one["timestamp"], clock) if clock else age(one["timestamp"]), _type(one), mark)
        for one, mark in zip(observations, marks, strict=True)
    ]
    widths = [render.widest(column) for column in zip(*cells, strict=True)]
    for one, (number, when, type_, mark) in zip(observations, cells, strict=True):
        head = f"{indent}{number.rjust(widths[0])}  {when.rjust(widths[1])}  "
        name, whose = render.padded(type_, widths[2]), render.padded(mark, widths[3])
        text = pen.clip(said(one), len(head) + widths[2] + 2 + widths[3])
        yield f"{head}{pen.paint(_STYLES[type_], name) if type_ in _STYLES else name}  {whose}{text}{_pin(pen, one)}".rstrip()


def number_of(observation: Observation) -> int:
    return int(observation["id"] if "id" in observation else observation["observation_id"])


def _type(observation: Observation) -> str:
    return render.visible(str(observation["obs_type"]))


def _pin(pen: render.Pen, observation: Observation) -> str:
    return pen.paint("dim", "  (pinned)") if observation.get("is_pinned") else ""


def short(session_id: str) -> str:
    return render.visible(session_id[:SHORT_ID])


def counts(by_type: dict[str, int]) -> str:
    """`12 command, 3 file_edit`, the most first."""
    ordered = sorted(by_type.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{number} {render.visible(type_)}" for type_, number in ordered)


def columns(rows: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Each cell but the last padded to its column."""
    listed = [list(row) for row in rows]
    widths = [render.widest(column) for column in zip(*listed, strict=True)]
    for row in listed:
        yield [*(render.padded(cell, width) for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]
