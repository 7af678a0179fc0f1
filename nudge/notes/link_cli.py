"""The verbs for links between notes: link, unlink, resolve."""

from __future__ import annotations

from collections.abc import Callable

import click

from nudge.cli import completion, output, params
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK
from nudge.cli.params import NOTE_ID, option
from nudge.cli.plain import Invocation
from nudge.cli.render import note_name
from nudge.cli.verbs import NOTES
from nudge.notes.fields import RELATIONS


def _note_argument(name: str, metavar: str, help: str) -> Callable[[params.F], params.F]:
    return click.argument(name, metavar=metavar, type=NOTE_ID, help=help, shell_complete=completion.note_ids)


@verb(
    "note link",
    "nudge note link m12 m7 --relation supersedes",
    "nudge note link m12 m13",
    group=NOTES,
    summary="link two notes",
    operations=("nudge.memory_link",),
)
@_note_argument("source", "SOURCE", "The note that the link starts from, such as m12.")
@_note_argument("target", "TARGET", "The note that the link leads to.")
@option("--relation", type=click.Choice(RELATIONS), help="What SOURCE is to TARGET (default: related_to).")
def link(invocation: Invocation, source: int, target: int, relation: str | None) -> int:
    """`nudge note get` prints the links of a note."""
    fields = {"source_id": source, "target_id": target, **params.drop_none(relation=relation)}
    console, result = invocation.console, invocation.call("nudge.memory_link", fields)
    word = (relation or RELATIONS[0]).replace("_", " ")
    suffix = "" if result["new"] else " (it already was)"
    line = f"{note_name(source)} {word} {note_name(target)}{suffix}"
    console.result(result, [console.styler.done(line)])
    return EXIT_OK


@verb(
    "note unlink",
    "nudge note unlink m12 m7",
    "nudge note unlink m12 m7 --relation supersedes",
    group=NOTES,
    summary="delete a link between two notes",
    operations=("nudge.memory_delete_link",),
)
@_note_argument("source", "SOURCE", "The note that the link starts from, such as m12.")
@_note_argument("target", "TARGET", "The note that the link leads to.")
@option("--relation", type=click.Choice(RELATIONS), help="Only the link of this relation (default: every one).")
def unlink(invocation: Invocation, source: int, target: int, relation: str | None) -> int:
    """Deletes the links from SOURCE to TARGET, not those in the other direction. `nudge note get` prints the links of
    a note."""
    fields = {"source_id": source, "target_id": target, **params.drop_none(relation=relation)}
    console, result = invocation.console, invocation.call("nudge.memory_delete_link", fields)
    line = f"deleted {output.count(result['deleted'], 'link')} from {note_name(source)} to {note_name(target)}"
    console.result(result, [console.styler.done(line)])
    return EXIT_OK


@verb(
    "note resolve",
    "nudge note resolve m12 m7",
    group=NOTES,
    summary="mark which of two contradicting notes is right",
    operations=("nudge.memory_resolve",),
)
@_note_argument("winner", "RIGHT", "The note that is right.")
@_note_argument("loser", "WRONG", "The note that it supersedes.")
def resolve_contradiction(invocation: Invocation, winner: int, loser: int) -> int:
    """WRONG is lowered to priority 1 and confidence 0.1, and a link says that RIGHT supersedes it."""
    result = invocation.call("nudge.memory_resolve", {"winner_id": winner, "loser_id": loser})
    console = invocation.console
    line = f"{note_name(winner)} supersedes {note_name(loser)}, which now has priority 1 and confidence 0.1"
    console.result(result, [console.styler.done(line)])
    return EXIT_OK
