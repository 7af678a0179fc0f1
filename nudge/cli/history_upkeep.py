"""The verbs that keep the history: pin, unpin, purge, backup, restore, backfill, replay, and the switches on, off."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click

from nudge import config, locks, paths
from nudge import switches as switch
from nudge.cli import completion, output, params, plain
from nudge.cli.app import verb
from nudge.cli.history import find_session
from nudge.cli.output import EXIT_INTERRUPTED, EXIT_NOT_FOUND, EXIT_OK, EXIT_REFUSED, Pen, Usage
from nudge.cli.params import DAYS, ID, TIME, option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, progress, yes_option
from nudge.context import Context, project_name, resolve
from nudge.errors import Invalid, NotFound, NudgeError
from nudge.security.globs import is_ignored
from nudge.text import escape, format_size

_ids_argument = click.argument(
    "ids", metavar="ID...", nargs=-1, required=True, type=ID, help="Ids of observations, such as 42 or #42."
)


# pin, unpin


@verb("pin", "nudge pin 42", "nudge pin 42 43 44")
@_ids_argument
def pin(invocation: Invocation, ids: tuple[int, ...]) -> int:
    """A pinned observation never expires; the others are deleted after the retention time of their type. Prints the ids
    that were pinned, and those that were not found."""
    return _pin(invocation, ids, pinned=True)


@verb("unpin", "nudge unpin 42", "nudge unpin 42 43 44")
@_ids_argument
def unpin(invocation: Invocation, ids: tuple[int, ...]) -> int:
    """Prints the ids that were unpinned, and those that were not found."""
    return _pin(invocation, ids, pinned=False)


def _pin(invocation: Invocation, ids: Sequence[int], *, pinned: bool) -> int:
    console = invocation.console
    result = invocation.client().call("nudge.pin", {"ids": list(ids), "pinned": pinned})
    word = "pinned" if pinned else "unpinned"
    console.result(result, [console.pen.done(f"{word} {_id_list(result['ids'])}")] if result["ids"] else [])
    if result["missing"]:
        console.note(f"not found: {_id_list(result['missing'])}")
    return EXIT_OK if result["ids"] else EXIT_NOT_FOUND


def _id_list(ids: Sequence[int]) -> str:
    few = ", ".join(f"#{number}" for number in ids[:10])
    return few if len(ids) <= 10 else f"{few} and {output.count(len(ids) - 10, 'other')}"


# purge

_FILTERS = {"section": "What to delete (an observation must match all that are given)"}


@verb(
    "purge",
    "nudge purge --search 'customer name' --confirm",
    "nudge purge --project old-thing",
    "nudge purge --type file_read --older-than 30d --confirm",
    "nudge purge --id 42 --id 43 --confirm",
)
@option(
    "--before",
    type=TIME,
    metavar="WHEN",
    help="Recorded before WHEN: a date, an ISO time, or 7d (seven days ago).",
    **_FILTERS,
)
@params.project_option("Of this project.", **_FILTERS)
@option(
    "--session",
    metavar="SESSION",
    help="Of this session: last, an id, or the beginning of an id.",
    shell_complete=completion.sessions,
    **_FILTERS,
)
@option("--id", "ids", type=ID, multiple=True, metavar="ID", help="This observation (repeatable).", **_FILTERS)
@option(
    "--type",
    metavar="TYPE",
    help="Of this type, such as file_read.",
    shell_complete=completion.observation_types,
    **_FILTERS,
)
@option("--older-than", type=DAYS, metavar="SPAN", help="Older than this many days or weeks: 90d, 12w.", **_FILTERS)
@option(
    "--search", metavar="QUERY", help="Found by this search, which also looks into errors and descriptions.", **_FILTERS
)
@option("--confirm", is_flag=True, help="Delete them. Without it, they are only counted.")
def purge(invocation: Invocation, session: str | None, ids: tuple[int, ...], confirm: bool, **filters: Any) -> int:
    """Prints how many observations of each type match; deletes them only with --confirm. Pinned observations, prompts
    and texts that agents were told are deleted too if they match, also from the files on the disk. Exit code 1 when
    --id finds nothing."""
    selection = params.drop_none(**filters, ids=list(ids) or None)
    if not selection and session is None:
        raise Usage(
            "say what to delete: --before, --project, --session, --id, --type, --older-than or --search",
            "try: nudge purge --project old-thing",
        )
    console, client = invocation.console, invocation.client()
    if session is not None:
        selection["session"] = find_session(client, session, filters["project"])
    result = client.call("nudge.purge", {**selection, "confirm": confirm})
    is_missing = bool(ids) and not (result["total"] or result["prompts"] or result["injections"])
    console.result(result, [] if is_missing else _purge_lines(console.pen, result))
    if not console.as_json:
        for note in _purge_notes(result):
            console.note(note)
    if is_missing:
        console.note(f"not found: {_id_list(ids)}")
        return EXIT_NOT_FOUND
    return EXIT_OK


def _purge_lines(pen: Pen, result: dict[str, Any]) -> Iterator[str]:
    by_type = sorted(result["counts"].items(), key=lambda entry: (-entry[1], entry[0]))
    width = max((len(str(number)) for _, number in by_type), default=0)
    yield from (f"{str(number).rjust(width)}  {escape(type_)}" for type_, number in by_type)
    total = output.count(result["total"], "observation")
    pinned = f", {result['pinned']} of them pinned" if result["pinned"] else ""
    copies = [output.count(result["prompts"], "prompt")] if result["prompts"] else []
    copies += [output.count(result["injections"], "injected text")] if result["injections"] else []
    suffix = pinned + (f", with {' and '.join(copies)}" if copies else "")
    yield pen.done(f"deleted {total}{suffix}") if result["deleted"] else f"{total} would be deleted{suffix}"


def _purge_notes(result: dict[str, Any]) -> Iterator[str]:
    if not result["deleted"] and (result["total"] or result["prompts"] or result["injections"]):
        yield "nothing was deleted; to delete, add --confirm"
    if result["deleted"] and result.get("scrubbed") is False:
        yield "the database's log may hold copies until its readers finish; the next purge or restart removes them"
    if result.get("waiting"):
        events = output.count(result["waiting"], "hook event")
        yield f"{events} in the spool were not searched; see: nudge doctor"
    for path in result.get("backups") or ():
        yield f"a backup may still contain them: {escape(path)}"


# backup, restore


@verb("backup", "nudge backup", "nudge backup ~/backups/nudge.db")
@click.argument(
    "file",
    metavar="[FILE]",
    required=False,
    type=click.Path(),
    help="A new file (default: in the directory backups, beside the database).",
)
def backup(invocation: Invocation, file: str | None) -> int:
    """Works while the server is running. Prints the path and the size of the copy."""
    fields = {} if file is None else {"path": plain.absolute_path(file)}
    result = invocation.client().call("nudge.backup", fields)
    line = f"backed up to {escape(result['path'])} ({format_size(result['bytes'])})"
    invocation.console.result(result, [invocation.console.pen.done(line)])
    return EXIT_OK


@verb("restore", "nudge restore ~/backups/nudge.db", "nudge restore nudge.db --yes")
@click.argument("file", metavar="FILE", type=click.Path(), help="A file that nudge backup wrote.")
@yes_option
def restore(invocation: Invocation, file: str, yes: bool) -> int:
    """Checks the backup and asks for confirmation. Then stops the server, keeps the present history in the directory
    backups, and prints where it is."""
    from nudge.usecases import owned_files

    console = invocation.console
    path = plain.existing_path(file, "name a file that nudge backup wrote")
    contents = owned_files.examine_backup(path)
    summary = (
        f"{output.count(contents['observations'], 'observation')} of {output.count(contents['sessions'], 'session')}"
    )
    if not ask(f"Replace the present history with {summary}? The present one is kept.", yes=yes):
        console.note("nothing was changed")
        return EXIT_REFUSED
    stopped = _stop_server(invocation)
    result = {"path": path, **contents, "kept": owned_files.restore_backup(path), "stopped": stopped}
    lines = [console.pen.done(f"restored {summary} from {escape(path)}")]
    lines += [f"  the previous history: {escape(str(result['kept']))}"] if result["kept"] else []
    lines += ["  the server was stopped; the next command starts one"] if stopped else []
    console.result(result, lines)
    return EXIT_OK


def _stop_server(invocation: Invocation) -> bool:
    """Stop the server if one is running, and return whether one was. A server inside a client refuses to stop, and the
    error says how to stop it."""
    if locks.is_free(paths.lock_file()):
        return False
    invocation.client().call("nudge.stop", {"force": False, "forget": False}, start=False)
    return True


# backfill


@verb("backfill", "nudge backfill", "nudge backfill --dry-run", "nudge backfill --since 2026-10-01 --project api")
@click.argument(
    "directory",
    metavar="[DIR]",
    required=False,
    type=click.Path(file_okay=False),
    help="Directory of the transcripts (default: ~/.claude/projects).",
)
@option("--dry-run", is_flag=True, help="Count the events by type, and record nothing.")
@option("--since", type=TIME, metavar="DATE", help="Only events since this date or time.")
@option("--project", metavar="NAME", help="Only events of this project.", shell_complete=completion.projects)
def backfill(
    invocation: Invocation, directory: str | None, dry_run: bool, since: int | None, project: str | None
) -> int:
    """Each event is recorded once, however often this runs. Prints how many events are new."""
    from nudge.clients import claude_code
    from nudge.clients.client import Home
    from nudge.usecases import transcripts

    console = invocation.console
    if directory is not None:
        root = plain.existing_path(directory, "name a directory of transcripts")
    else:
        root = plain.absolute_path(claude_code.CLIENT.transcripts(Home()))
    if not os.path.isdir(root):
        raise NotFound(f"there are no transcripts in {root}; name the directory with: nudge backfill DIR")
    only = transcripts.EventFilter(since=since, project=project, wanted=_recording_filter())
    state = transcripts.BackfillState(paths.runtime_dir(os.environ), config.database_file(os.environ))
    files = transcripts.find_new(root, state, only.since)
    work = transcripts.Backfill(files, only, state, None if dry_run else invocation.client().call)
    try:
        with progress(console, "reading transcripts", sum(file.size - file.offset for file in files)) as advance:
            result = work.run(advance)
    except KeyboardInterrupt:
        console.note("stopped; what was recorded stays, and the next run continues from here")
        return EXIT_INTERRUPTED
    except NudgeError:
        console.note("what was recorded stays, and the next run continues from here")
        raise
    console.result(result, _backfill_lines(console.pen, result, dry_run=dry_run))
    for path, reason in work.unreadable.items():
        console.note(f"skipped: {escape(f'{path}: {reason}')}")
    for reason, count in work.refusals.items():
        console.note(f"refused: {count:,} events: {escape(reason)}")
    return EXIT_OK


# replay


@verb("replay", "nudge replay", "nudge replay ~/.claude/projects/-home-me-api", "nudge replay --json")
@click.argument(
    "paths_given",
    metavar="[TRANSCRIPT]...",
    nargs=-1,
    type=click.Path(),
    help="Transcripts, or directories of them (default: ~/.claude/projects).",
)
def replay(invocation: Invocation, paths_given: tuple[str, ...]) -> int:
    """Reads the transcripts in order of time. Prints how many failures were known by then, how many commands it took to
    get past them, and what Nudge would have told. Stores nothing, and needs no server."""
    from nudge.clients import claude_code
    from nudge.clients.client import Home
    from nudge.usecases import transcripts

    console = invocation.console
    roots = [plain.existing_path(path, "name transcripts, or directories of them") for path in paths_given]
    roots = roots or [plain.absolute_path(claude_code.CLIENT.transcripts(Home()))]
    files = transcripts.find_all(roots)
    if not files:
        raise NotFound(f"there are no transcripts in {', '.join(roots)}; name others with: nudge replay PATH")
    with progress(console, "reading transcripts", sum(file.size for file in files)) as advance:
        result = transcripts.replay(files, advance)
    console.result(result, _replay_lines(console.pen, result))
    return EXIT_OK


def _replay_lines(pen: Pen, result: dict[str, Any]) -> Iterator[str]:
    read = f"{result['sessions']:,} sessions, {result['commands']:,} commands, {result['failures']:,} failures"
    yield f"read {read}"
    yield pen.done(
        f"had Nudge been there: {result['failures_spared']:,} failures spared at the start, "
        f"{result['failures_answered']:,} answered at once, {result['commands_saved']:,} commands saved"
    )
    for line in result["told"]:
        when = time.strftime("%Y-%m-%d", time.localtime(line["timestamp"]))
        yield f"  {when}  {line['kind']:<8}  {escape(line['subject'])} -> {escape(line['answer'])}"


def _recording_filter() -> Callable[[Iterable[str], Context], bool]:
    """Return the filter of backfill: events of a project that is switched off, or about an ignored path, are not
    recorded. Raise Invalid when recording is off altogether."""
    directory = paths.runtime_dir(os.environ)
    if off := switch.why_off(os.environ, directory, Context()):
        raise Invalid(f"recording is off {off.where}; turn it on with: {off.fix}")
    switches, settings = switch.load(directory), config.load(os.environ)

    def is_wanted(touched: Iterable[str], context: Context) -> bool:
        ignored = bool(settings.ignore) and any(is_ignored(path, settings.ignore) for path in touched if path)
        return not ignored and not switches.covers(context)

    return is_wanted


def _backfill_lines(pen: Pen, result: dict[str, Any], *, dry_run: bool) -> Iterator[str]:
    if not result["files"]:
        yield "nothing new to read"
        return
    transcripts = output.count(result["files"], "transcript")
    if not dry_run:
        events = f"{result['new']:,} new of {result['events']:,} events"
        yield pen.done(f"{events} in {transcripts}, {result['seconds']:.1f} s")
        return
    width = output.widest(result["types"])
    yield from (f"{output.pad(name, width)}  {count:>9,}" for name, count in result["types"].items())
    yield f"nothing was recorded (--dry-run): {result['events']:,} events in {transcripts}"


# on, off


@verb("off", "nudge off", "nudge off --all", "NUDGE_OFF=1 claude")
@option("--all", "everywhere", is_flag=True, help="Turn it off in all projects.")
def off(invocation: Invocation, everywhere: bool) -> int:
    """Hooks record nothing and agents are told nothing until `nudge on`. Set NUDGE_OFF=1 to turn it off for one run."""
    here = resolve()
    if not everywhere and switch.project_key(here) is None:
        raise Invalid("the current directory does not exist; cd to the project, or use: nudge off --all")
    switches = switch.turn_off(paths.runtime_dir(), None if everywhere else here)
    where = "everywhere" if everywhere else f"for {escape(project_name(here.project or 'this project'))}"
    undo = f"; turn them on with: {escape(reason.fix)}" if (reason := switches.why(here)) else ""
    pen = invocation.console.pen
    result = {"recording": False, **switches.to_wire()}
    invocation.console.result(result, [pen.done(f"recording and telling are off {where}{undo}")])
    return EXIT_OK


@verb("on", "nudge on", "nudge on --all")
@option(
    "--all",
    "everywhere",
    is_flag=True,
    help="Turn it on in all projects, including those that were turned off one by one.",
)
def on(invocation: Invocation, everywhere: bool) -> int:
    """Undoes `nudge off`. Fails when NUDGE_OFF or a setting keeps it off, and says which."""
    here = resolve()
    if off := switch.why_off_for_this_run(os.environ) or switch.why_off_by_settings(os.environ, here):
        raise switch.still_off(off)
    switches = switch.turn_on(paths.runtime_dir(), None if everywhere else here)
    where = "every project" if everywhere else escape(project_name(here.project or "this project"))
    pen = invocation.console.pen
    result = {"recording": True, **switches.to_wire()}
    invocation.console.result(result, [pen.done(f"recording and telling are on for {where}")])
    return EXIT_OK
