"""`nudge disconnect`: take our entries out of a client's files, and nothing else; with --delete-data leave nothing of
ours anywhere."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import redirect_stdout
from io import StringIO
from shlex import quote

from nudge.cli import exits, question, render, stop
from nudge.cli.connect import show_changes
from nudge.cli.console import Console
from nudge.cli.parsing import Usage
from nudge.clients import config_files, plan, registry
from nudge.clients.plan import Ledger
from nudge.errors import StorageFailed
from nudge.usecases import delete_data
from nudge.usecases.measures import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nudge.cli.parsing import Parser
    from nudge.clients.client import Client
    from nudge.clients.plan import Change
    from nudge.usecases.delete_data import Belonging

EXAMPLES = ("nudge disconnect codex", "nudge disconnect --all", "nudge disconnect --all --delete-data")


def configure(parser: Parser) -> None:
    names = registry.names()
    parser.add_argument("client", metavar="CLIENT", nargs="?", choices=names, help=", ".join(names))
    parser.add_argument("--all", action="store_true", help="every client")
    parser.add_argument("--delete-data", action="store_true", help="with --all: hints, history, settings and logs too")
    parser.add_argument("--yes", action="store_true", help="do not ask before data is deleted")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    if arguments.all == (arguments.client is not None):
        raise Usage("CLIENT and --all exclude each other" if arguments.all else "missing CLIENT")
    if arguments.delete_data and not arguments.all:
        raise Usage("--delete-data goes with --all", "try: nudge disconnect --all --delete-data")
    clients = registry.all_clients() if arguments.all else (registry.get(arguments.client),)
    if arguments.delete_data:
        return _delete_everything(console, clients, arguments)
    changes = _disconnect(console, clients)
    console.result(_result(changes), _told(console.pen, changes))
    return exits.DONE


def _disconnect(console: Console, clients: Sequence[Client]) -> list[Change]:
    ledger = Ledger()
    files = plan.files_of(clients, ledger)
    changes = plan.disconnect(files, ledger)
    show_changes(console, changes)
    plan.apply(changes, ledger)
    plan.forget(files, ledger)
    return changes


def _result(changes: Sequence[Change]) -> dict[str, object]:
    return {"changed": [change.path for change in changes]}


def _told(pen: render.Pen, changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        fate = "removed" if change.after is None else "took out"
        yield pen.done(f"{fate} {' and '.join(change.file.parts)}: {render.visible(config_files.shown(change.path))}")
    if not changes:
        yield pen.done("nothing was connected")


# Everything


def _delete_everything(console: Console, clients: Sequence[Client], arguments: Namespace) -> int:
    owned = delete_data.find()
    if not console.as_json:
        console.show(_inventory(owned))
    if not question.agreed(
        "Disconnect every client, stop the server and delete all of this for good?", yes=arguments.yes
    ):
        console.remark("nothing was changed")
        return exits.REFUSED
    changes = _disconnect(console, clients)
    _check_that_nothing_is_wired()
    _stop()
    owned = delete_data.find()  # stopping has written the last of it
    delete_data.delete(owned)
    deleted = [belonging.path for belonging in owned]
    told = [
        *_told(console.pen, changes),
        console.pen.done(f"deleted {render.counted(len(deleted), 'path')}; nothing of Nudge is left"),
    ]
    console.result({**_result(changes), "deleted": deleted}, told)
    return exits.DONE


def _check_that_nothing_is_wired() -> None:
    """What we know of a file that is still wired must not go before our entries in it."""
    ledger = Ledger()
    left = next(filter(os.path.lexists, ledger.paths), None)
    if left is not None:
        raise StorageFailed(
            f"{config_files.shown(left)} may still be wired; nothing was deleted; look at it, then: rm {quote(ledger.path)}"
        )


def _inventory(owned: Sequence[Belonging]) -> Iterator[str]:
    sizes = [size(belonging.size) for belonging in owned]
    width = render.widest(sizes)
    for belonging, told in zip(owned, sizes, strict=True):
        yield f"{told.rjust(width)}  {render.visible(config_files.shown(belonging.path))}"
    yield f"{size(sum(belonging.size for belonging in owned))} in all"


def _stop() -> None:
    """In the words of `nudge stop --force`, which nobody needs to read here."""
    if delete_data.server_runs():
        with redirect_stdout(StringIO()):
            stop.run(Namespace(json=False, port=None, force=True, forget=True))
