"""`nudge import`: hints from a file, from stdin, or from the session before this one."""

from __future__ import annotations

import os
import sys

from nudge import limits, paths
from nudge.cli import exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import Usage
from nudge.errors import Invalid, NotFound, NudgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser
    from nudge.ipc.client import Client

EXAMPLES = (
    "nudge import ./hints.json",
    "nudge import ./hints.json --mode skip",
    "cat hints.json | nudge import -",
    "nudge import --previous",
)


def configure(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="what nudge export wrote; - is stdin")
    parser.add_argument("--previous", action="store_true", help="the hints of the session before this one")
    parser.add_argument(
        "--mode",
        choices=("merge", "replace", "skip"),
        default="merge",
        help="merge: the newer wins; skip: what is here stays; replace: only the file's hints remain (merge)",
    )


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    parts = _parts(_payload(*_source(arguments)))
    if arguments.mode == "replace" and len(parts) > 1:
        raise Invalid(
            "this is more than one step can replace; import it with --mode merge, or into a new session (nudge stop --forget)"
        )
    result = _import(connect(arguments), parts, arguments.mode)
    console.result(result, _lines(console.pen, result))
    return exits.DONE


def _import(client: Client, parts: list[Any], mode: str) -> dict[str, Any]:
    """Each part all or nothing; one answer for all of them."""
    results: list[dict[str, Any]] = []
    for payload in parts:
        try:
            results.append(
                client.call("nudge.import", {"payload": payload, "mode": mode}, patience=limits.LONG_CALL_TIMEOUT)
            )
        except NudgeError as error:
            if results:
                error.message += (
                    f"; {len(results)} of {len(parts)} parts were imported, and the same command goes on from there"
                )
            raise
    counts = {
        name: sum(result[name] for result in results) for name, count in results[0].items() if isinstance(count, int)
    }
    reasons = [reason for result in results for reason in result["reasons"]]
    return {**counts, "reasons": reasons[: limits.MAX_IMPORT_REASONS]}


def _parts(payload: Any) -> list[Any]:
    """The payload as often as it takes, each time with as many hints as one call may have; what is not shaped like one
    is the server's to
    refuse."""
    import json

    if not _is_well_shaped(payload):
        return [payload]
    parts: list[Any] = []
    room = 0
    entries = (
        (name, *entry) for name, component in payload["components"].items() for entry in component["hints"].items()
    )
    for component, key, hints in entries:
        size = len(json.dumps([component, key, hints]))
        if size > room:
            parts.append({**payload, "components": {}})
            room = limits.IMPORT_PART_BYTES
        room -= size
        parts[-1]["components"].setdefault(component, {"hints": {}})["hints"][key] = hints
    return parts if len(parts) > 1 else [payload]


def _is_well_shaped(payload: Any) -> bool:
    components = payload.get("components") if isinstance(payload, dict) else None
    if not isinstance(components, dict):
        return False
    return all(
        isinstance(part, dict) and list(part) == ["hints"] and isinstance(part["hints"], dict)
        for part in components.values()
    )


def _lines(pen: render.Pen, result: dict[str, Any]) -> Iterator[str]:
    removed = f", removed {result['removed']}" if result.get("removed") else ""
    yield pen.done(f"imported {render.counted(result['imported'], 'hint')}, skipped {result['skipped']}{removed}")
    for skipped in result.get("reasons", ()):
        yield f"  {render.name_of(skipped['component'], skipped['key'])}: {render.visible(skipped['reason'])}"
    if (more := result["skipped"] - len(result.get("reasons", ()))) > 0:
        yield f"  and {more} more"


def _source(arguments: Namespace) -> tuple[str, bytes]:
    """What it is called, and its bytes."""
    if arguments.previous == (arguments.file is not None):
        raise Usage("FILE and --previous exclude each other" if arguments.previous else "missing FILE")
    if arguments.previous:
        return "the previous session", _previous()
    name = "stdin" if arguments.file == "-" else arguments.file
    return name, _limited(name, None if arguments.file == "-" else arguments.file)


def _previous() -> bytes:
    path = os.path.join(paths.runtime_dir(), paths.PREVIOUS)
    if not os.path.exists(path):
        raise NotFound("no earlier session is kept; the first one ends when no nudge process has run for a while")
    return _limited("the previous session", path)


def _limited(name: str, path: str | None) -> bytes:
    """A file's content, or that of stdin; one byte too many tells that there is more than any store holds."""
    try:
        with sys.stdin.buffer if path is None else open(path, "rb") as file:
            content = file.read(limits.MAX_IMPORT_FILE_BYTES + 1)
    except OSError as error:
        raise Usage(f"cannot read {name}: {error.strerror}", "name a file that nudge export wrote") from None
    if len(content) > limits.MAX_IMPORT_FILE_BYTES:
        raise Invalid(
            f"{name} is larger than {limits.MAX_IMPORT_FILE_BYTES // limits.MIB} MiB, which is more than hints can be"
        )
    return content


def _payload(name: str, content: bytes) -> Any:
    """The document; also as `nudge export --json` wraps it."""
    from nudge.cli import strict_json

    try:
        document = strict_json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{name} is not JSON: {error}; it must be what nudge export writes") from None
    wrapped = isinstance(document, dict) and "payload" in document and "components" not in document
    return document["payload"] if wrapped else document
