"""What the verbs of notes share: options, arguments, filters, and the call of an operation."""

from __future__ import annotations

import sys
from typing import Any

import click

from nudge import limits
from nudge.cli import completion, params, plain
from nudge.cli.output import Usage
from nudge.cli.params import EXPIRY, LIST, NOTE_ID, NUMBER, UTC_TIME, WHOLE, list_option, option
from nudge.cli.plain import Invocation
from nudge.context import resolve
from nudge.errors import Invalid

TIERS = ("short", "mid", "long")
KINDS = (
    *("note", "decision", "bugfix", "feature", "refactor", "discovery", "change", "lesson", "attempt"),
    "session_summary",
)
STORED_KINDS = tuple(kind for kind in KINDS if kind != "attempt")  # attempts are the journal's to write
SOURCES = ("user", "claude", "agent", "hook", "api", "cli", "import", "consolidation", "system")
RELATIONS = ("related_to", "supersedes", "contradicts", "derived_from")


def parse_metadata(text: str) -> dict[str, Any]:
    try:
        metadata = plain.parse_json(text.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(metadata, dict):
        raise ValueError("""must be a JSON object such as '{"ticket": 12}'""")
    return metadata


METADATA = params.Parsed("metadata", parse_metadata)
_TIER = {"type": click.Choice(TIERS), "help": "short (6 hours), mid (7 days) or long (for good)."}
_KIND = {"type": click.Choice(STORED_KINDS), "help": "What the note is: decision, lesson, bugfix, ... (note)."}

id_argument = click.argument(
    "note_id", metavar="ID", type=NOTE_ID, help="The note, as m12 or 12.", shell_complete=completion.note_ids
)
namespace_option = option(
    "--namespace",
    metavar="NAME",
    help="Only of this namespace; . is the repo you are in.",
    shell_complete=completion.namespaces,
)
filter_options = params.options(
    namespace_option,
    option("--tier", type=click.Choice(TIERS), help="Only of this tier."),
    option("--kind", type=click.Choice(KINDS), help="Only of this kind."),
    list_option("--tags", type=LIST, metavar="TAG,TAG", help="Only with one of these tags."),
    option("--since", type=UTC_TIME, metavar="WHEN", help="Only changed since: a date, an ISO time, or 7d."),
    option("--until", type=UTC_TIME, metavar="WHEN", help="Only changed until then."),
    option("--min-priority", type=WHOLE, metavar="N", help="Only of this priority or higher (1 to 10)."),
)
field_options = params.options(
    option("--kind", **_KIND),
    option("--tier", **_TIER),
    list_option("--tags", type=LIST, metavar="TAG,TAG", help="Labels to filter by."),
    option("--priority", type=WHOLE, metavar="N", help="1 to 10 (5)."),
    option("--confidence", type=NUMBER, metavar="X", help="0.0 to 1.0 (1.0)."),
    option(
        "--namespace",
        metavar="NAME",
        help="Where it belongs (the repo you are in).",
        shell_complete=completion.namespaces,
    ),
    option("--source", type=click.Choice(SOURCES), help="Where it comes from (cli)."),
    option("--expires-at", type=EXPIRY, metavar="WHEN", help="When it expires: a date, an ISO time, or 30d from now."),
    option("--metadata", type=METADATA, metavar="JSON", help="Any object that is kept with it."),
)
words_argument = click.argument("words", metavar="WORDS...", nargs=-1, required=True, help="What to look for.")


def call(invocation: Invocation, operation: str, fields: dict[str, Any], **options: Any) -> Any:
    """Call an operation on notes, with where the caller is: that is the default namespace."""
    return invocation.client().call(f"nudge.memory_{operation}", fields, context=plain.context_params(), **options)


def filters(namespace: str | None = None, **given: Any) -> dict[str, Any]:
    return params.given(namespace=named_namespace(namespace), **given)


def named_namespace(name: str | None) -> str | None:
    """A namespace; `.` is that of the repo or directory you are in."""
    if name != ".":
        return name
    here = resolve().project
    if here is None:
        raise Usage("--namespace . needs a directory, and the current one does not exist", "name the namespace")
    return here


def read_text(text: str) -> str:
    """The text itself; `-` is stdin."""
    if text != "-":
        return text
    content = sys.stdin.buffer.read(limits.MAX_NOTE_BYTES + 2)
    if len(content) > limits.MAX_NOTE_BYTES + 1:
        raise Invalid(f"must be at most {limits.MAX_NOTE_BYTES} bytes", field="content")
    try:
        return content.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise Usage("stdin is not UTF-8 text", "convert it first, for example with iconv") from None
