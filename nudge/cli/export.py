"""`nudge export`: all hints as one JSON document."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import nullcontext

from nudge import limits
from nudge.cli import exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console, encoded
from nudge.errors import StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import IO, Any

    from nudge.cli.parsing import Parser

EXAMPLES = (
    "nudge export > nudge-session.json",
    "nudge export -o hints.json --component http-proxy",
    "nudge export --reveal",
    "nudge export --all > history.jsonl",
)


def configure(parser: Parser) -> None:
    parser.add_argument("--format", choices=("json",), default="json", help="the format (json)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file, readable by you alone (- is stdout)"
    )
    parser.add_argument("--component", metavar="NAME", help="only this component")
    parser.add_argument("--reveal", action="store_true", help="with the values of secret hints")
    parser.add_argument("--all", action="store_true", help="the whole history instead, one JSON object a line")


def run(arguments: Namespace) -> int:
    if arguments.all:
        return _export_history(arguments)
    console = Console(as_json=arguments.json)
    result = connect(arguments).call("nudge.export", _params(arguments), patience=limits.LONG_CALL_TIMEOUT)
    payload = result["payload"]
    text = encoded(payload, indent=2)
    if arguments.output not in (None, "-"):
        _write(arguments.output, text + "\n")
        console.result(result, [_written(console.pen, payload, arguments.output)])
    else:
        console.result(result, [text])
    if hidden := sum(1 for hint in _hints(payload) if hint.get("redacted")):
        console.remark(f"{render.counted(hidden, 'secret value')} left out; --reveal includes them")
    return exits.DONE


def _export_history(arguments: Namespace) -> int:
    """Page by page, so that neither side ever holds all of it."""
    client = connect(arguments)
    with _opened(arguments.output) as file:
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            page = client.call("nudge.export_all", {"after": page["next"]} if page["next"] else {})
            for row in page["rows"]:
                file.write(encoded(row, indent=None) + "\n")
    return exits.DONE


def _opened(path: str | None) -> AbstractContextManager[IO[str]]:
    if path in (None, "-"):
        return nullcontext(sys.stdout)
    try:
        return open(
            os.open(os.path.realpath(path or ""), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        )
    except OSError as error:
        raise StorageFailed(f"cannot write {path}: {error.strerror}; choose another place with -o") from None


def _params(arguments: Namespace) -> dict[str, Any]:
    params: dict[str, Any] = {"format": arguments.format}
    if arguments.component is not None:
        params["component"] = arguments.component
    if arguments.reveal:
        params["reveal"] = True
    return params


def _written(pen: render.Pen, payload: dict[str, Any], path: str) -> str:
    return pen.done(f"exported {render.counted(sum(1 for _ in _hints(payload)), 'hint')} to {render.visible(path)}")


def _hints(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for component in payload["components"].values():
        for variants in component["hints"].values():
            yield from variants if isinstance(variants, list) else [variants]


def _write(path: str, text: str) -> None:
    """Beside and renamed over, so that a reader never sees half; a device or a pipe is written to as it is."""
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            with open(target, "w", encoding="utf-8") as device:
                device.write(text)
        else:
            _replace(target, text)
    except OSError as error:
        raise StorageFailed(f"cannot write {path}: {error.strerror}; choose another place with -o") from None


def _replace(path: str, text: str) -> None:
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
