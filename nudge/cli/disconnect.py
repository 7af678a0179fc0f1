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
from nudge.clients import clients, files, plan
from nudge.clients.launch import NAME, Launch
from nudge.clients.ledger import Ledger
from nudge.clients.place import Place
from nudge.errors import StorageFailed
from nudge.usecases import delete_data
from nudge.usecases.measures import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nudge.cli.parsing import Parser
    from nudge.clients.plan import Step
    from nudge.clients.targets import Target
    from nudge.clients.wiring import Wiring
    from nudge.usecases.delete_data import Belonging

EXAMPLES = ("nudge disconnect codex", "nudge disconnect --all", "nudge disconnect --all --delete-data")


def configure(parser: Parser) -> None:
    parser.add_argument("client", metavar="CLIENT", nargs="?", choices=clients.NAMES, help=", ".join(clients.NAMES))
    parser.add_argument("--all", action="store_true", help="every client")
    parser.add_argument("--delete-data", action="store_true", help="with --all: hints, history, settings and logs too")
    parser.add_argument("--yes", action="store_true", help="do not ask before data is deleted")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    if arguments.all == (arguments.client is not None):
        raise Usage("CLIENT and --all exclude each other" if arguments.all else "missing CLIENT")
    if arguments.delete_data and not arguments.all:
        raise Usage("--delete-data goes with --all", "try: nudge disconnect --all --delete-data")
    wirings = clients.ALL if arguments.all else (clients.named(arguments.client),)
    if arguments.delete_data:
        return _delete_everything(console, wirings, arguments)
    steps = _disconnect(console, wirings)
    console.result(_result(steps), _told(console.pen, steps))
    return exits.DONE


def _disconnect(console: Console, wirings: Sequence[Wiring]) -> list[Step]:
    records = Ledger()
    targets = _targets(wirings, records)
    steps = plan.disconnecting(targets, records)
    show_changes(console, steps)
    plan.apply(steps, records)
    plan.forget(targets, records)
    return steps


def _targets(wirings: Sequence[Wiring], records: Ledger) -> list[Target]:
    """The files of the clients as they are found here, and those that we have wired where they were found before."""
    here = {target.path: target for wiring in wirings for target in wiring.targets(Place(), Launch(NAME))}
    places = records.places()
    wired = (target for place in places for wiring in wirings for target in wiring.targets(place, Launch(NAME)))
    return list({**{target.path: target for target in wired if target.path in records.paths}, **here}.values())


def _result(steps: Sequence[Step]) -> dict[str, object]:
    return {"changed": [step.path for step in steps]}


def _told(pen: render.Pen, steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        fate = "removed" if step.after is None else "took out"
        yield pen.done(f"{fate} {' and '.join(step.target.parts)}: {render.visible(files.shown(step.path))}")
    if not steps:
        yield pen.done("nothing was connected")


# Everything


def _delete_everything(console: Console, wirings: Sequence[Wiring], arguments: Namespace) -> int:
    owned = delete_data.find()
    if not console.as_json:
        console.show(_inventory(owned))
    if not question.agreed(
        "Disconnect every client, stop the server and delete all of this for good?", yes=arguments.yes
    ):
        console.remark("nothing was changed")
        return exits.REFUSED
    steps = _disconnect(console, wirings)
    _check_that_nothing_is_wired()
    _stop()
    owned = delete_data.find()  # stopping has written the last of it
    delete_data.delete(owned)
    deleted = [belonging.path for belonging in owned]
    told = [
        *_told(console.pen, steps),
        console.pen.done(f"deleted {render.counted(len(deleted), 'path')}; nothing of Nudge is left"),
    ]
    console.result({**_result(steps), "deleted": deleted}, told)
    return exits.DONE


def _check_that_nothing_is_wired() -> None:
    """What we know of a file that is still wired must not go before our entries in it."""
    records = Ledger()
    left = next(filter(os.path.lexists, records.paths), None)
    if left is not None:
        raise StorageFailed(
            f"{files.shown(left)} may still be wired; nothing was deleted; look at it, then: rm {quote(records.path)}"
        )


def _inventory(owned: Sequence[Belonging]) -> Iterator[str]:
    sizes = [size(belonging.size) for belonging in owned]
    width = render.widest(sizes)
    for belonging, told in zip(owned, sizes, strict=True):
        yield f"{told.rjust(width)}  {render.visible(files.shown(belonging.path))}"
    yield f"{size(sum(belonging.size for belonging in owned))} in all"


def _stop() -> None:
    """In the words of `nudge stop --force`, which nobody needs to read here."""
    if delete_data.server_runs():
        with redirect_stdout(StringIO()):
            stop.run(Namespace(json=False, port=None, force=True, forget=True))
