"""The verbs that read the history: search, recent, history, sessions, trace, timeline, show, inject."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from nudge import context, limits, paths
from nudge import switches as switch
from nudge.cli import completion, history_lines, note_lines, output, params, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_NOT_FOUND, EXIT_OK, Usage
from nudge.cli.params import ID, WHOLE, option, project_options, project_params, resolve_project
from nudge.cli.plain import Invocation
from nudge.clock import iso
from nudge.errors import NotFound, RemoteError
from nudge.ipc.client import Client
from nudge.text import escape
from nudge.usecases.visibility import visible_here

MAX_IDS = 50  # observations in one request

_type_option = option(
    "--type",
    "obs_type",
    metavar="TYPE",
    help="Only this type, such as command_error, file_edit or git_commit.",
    shell_complete=completion.observation_types,
)


# Which project, which session


def caller_params(project: str | None) -> dict[str, Any]:
    """The same for what has an id: from elsewhere, a private project must be named too."""
    return {name: value for name, value in project_params(project).items() if value is not None}


def _private_note() -> str | None:
    """What a question about all projects leaves out."""
    private = visible_here().hidden_from(context.resolve().project)
    return f"private projects were left out; name one with --project: {', '.join(sorted(private))}" if private else None


def find_session(client: Client, word: str, project: str | None = None) -> str:
    """Return the id of `last` (of this project, and not empty), of a whole id, or of a unique beginning."""
    is_last = word == "last"
    which = {"nonempty": True, "limit": 1} if is_last else {"session": word, "limit": 20}
    named = project_params(resolve_project(project, False) if is_last else project)
    sessions = client.call("nudge.sessions", {**named, **which})
    ids = [str(session["session_id"]) for session in sessions]
    if word in ids or (word and len(ids) == 1):
        return word if word in ids else ids[0]
    if not ids and is_last:
        raise NotFound("nothing was done in this project yet; list all sessions with: nudge sessions")
    if not ids:
        raise NotFound(f"session not found: {word}; list them with: nudge sessions")
    raise Usage(f"several sessions begin with {word!a}", f"one is {ids[0]}; list them with: nudge sessions")


def _fetch(client: Client, ids: Sequence[int], project: str | None = None) -> list[dict[str, Any]]:
    """Fetch whole observations, in the order of the ids."""
    portions = (ids[start : start + MAX_IDS] for start in range(0, len(ids), MAX_IDS))
    named = caller_params(project)
    return [
        row for portion in portions for row in client.call("nudge.get_observations", {**named, "ids": list(portion)})
    ]


def _call_page(
    client: Client, operation: str, fields: dict[str, Any], default: int, most: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Ask for one row more than the limit. Return the rows up to it, and what to say when there are more."""
    limit = min(fields.get("limit", default), most)
    rows = client.call(operation, {**fields, "limit": min(limit + 1, most)})
    is_cut = len(rows) > limit or len(rows) == most
    return rows[:limit], output.more_note(limit, most) if is_cut else None


# search


@verb(
    "search",
    "nudge search 'auth error'",
    "nudge search 'docker AND compose' --type command_error --after 7d",
    "nudge search stale --ids | xargs nudge show",
    "nudge search deploy --project api --order-by blended",
    "nudge search 'auth error' --explain",
)
@click.argument("query", metavar="QUERY", help='Words, "phrases", prefix*, AND, OR, NOT.')
@option("--project", metavar="NAME", help="Only in this project.", shell_complete=completion.projects)
@_type_option
@params.limit_option(limits.DEFAULT_SEARCH_LIMIT)
@option("--full", is_flag=True, help="Show each observation in full, not a preview.")
@option("--ids", is_flag=True, help="Print the ids only, one per line.")
@option("--explain", is_flag=True, help="Show the parts of each score, and the words that matched.")
@option("--order-by", type=click.Choice(["relevance", "blended"]), help="The best match first, or blended with age.")
@params.window_options("what happened")
def search(
    invocation: Invocation, query: str, project: str | None, full: bool, ids: bool, explain: bool, **filters: Any
) -> int:
    """All projects are searched, unless one is named."""
    if ids and (full or invocation.as_json):
        raise Usage("--ids excludes --full and --json", "leave one out")
    if explain and (ids or full):
        raise Usage("--explain excludes --ids and --full", "leave one out")
    console, client = invocation.console, invocation.client()
    fields = {"query": query, **project_params(project), **params.drop_none(**filters)}
    if explain:
        result = client.call("nudge.search_explain", fields)
        console.result(result, note_lines.explain_lines(console, result, in_history=True))
        console.note(f'nudge: {output.count(len(result["items"]), "result")} for "{escape(query)}"')
        return EXIT_OK
    rows, more = _call_page(client, "nudge.search", fields, limits.DEFAULT_SEARCH_LIMIT, limits.MAX_SEARCH_LIMIT)
    if full:
        rows = _fetch(client, [row["id"] for row in rows], project)
    if ids:
        console.show(str(row["id"]) for row in rows)
    else:
        lines = (
            (line for row in rows for line in history_lines.full_lines(console.pen, row))
            if full
            else history_lines.table(console.pen, rows)
        )
        console.result(rows, lines)
    suffix = f"; {more}" if more else ""
    some = " with some of the words" if rows and rows[0].get("partial") else ""
    console.note(f'nudge: {output.count(len(rows), "result")}{some} for "{escape(query)}"{suffix}')
    if project is None and console.is_terminal and (note := _private_note()):
        console.note(escape(note))
    return EXIT_OK


# recent, history


@verb("recent", "nudge recent", "nudge recent --limit 50", "nudge recent --all-projects --json")
@option(
    "--project",
    metavar="NAME",
    help="Rank what happened in this project above the others (the current one).",
    shell_complete=completion.projects,
)
@option("--all-projects", is_flag=True, help="Rank every project alike.")
@params.limit_option(limits.DEFAULT_RECENT_LIMIT)
def recent(invocation: Invocation, project: str | None, all_projects: bool, limit: int | None) -> int:
    """Edits rank above commands, those above everything else, new above old, and this project above the others."""
    chosen = resolve_project(project, all_projects)
    fields = {**project_params(chosen), **params.drop_none(limit=limit)}
    rows, more = _call_page(
        invocation.client(), "nudge.recent_context", fields, limits.DEFAULT_RECENT_LIMIT, limits.MAX_RECENT_LIMIT
    )
    console = invocation.console
    console.result(rows, history_lines.table(console.pen, rows, project=chosen, show_projects=True))
    if more:
        console.note(more)
    if not rows and not console.as_json:
        console.note("nothing is recorded here yet; connect an agent with: nudge connect, or use --all-projects")
    return EXIT_OK


_RECENT_ROWS = 100  # recent observations in which files are looked for
_FILE_FIELDS = ("timestamp", "obs_type", "id", "session_id", "project")


@verb("history", "nudge history", "nudge history src/auth.py", "nudge history src/auth.py --after 30d --limit 50")
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(), help="The file; without it, recent files.")
@params.limit_option(10, "touches; of files (20)")
@project_options
@params.window_options("touches")
def history(
    invocation: Invocation,
    file: str | None,
    limit: int | None,
    project: str | None,
    all_projects: bool,
    before: int | None,
    after: int | None,
) -> int:
    """Without a file, list the files that were touched recently."""
    if file is not None:
        window = params.drop_none(before=before, after=after, limit=limit)
        return _file_history(invocation, file, {**caller_params(project), **window})
    console = invocation.console
    chosen = resolve_project(project, all_projects)
    rows = invocation.client().call("nudge.recent_context", {**project_params(chosen), "limit": _RECENT_ROWS})
    # Recent context ranks other projects lower, but includes them.
    rows = [
        row
        for row in rows
        if history_lines.is_of(row, chosen) and (after or 0) < row["timestamp"] < (before or float("inf"))
    ]
    touched = _recent_files(rows)[: max(limit or 20, 1)]
    console.result(touched, history_lines.table(console.pen, touched, project=chosen, show_projects=True))
    if not touched and not console.as_json:
        console.note("no file was touched here yet; look in every project with --all-projects")
    return EXIT_OK


def _recent_files(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each file once, the one touched last first. One change may touch several files."""
    latest: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (-row["timestamp"], -row["id"])):
        names = (row.get("metadata") or {}).get("files") if str(row["obs_type"]).startswith("file_") else None
        for path in (row.get("file_path"), *(names if isinstance(names, list) else ())):
            if path:
                latest.setdefault(path, {"file_path": path, **{name: row.get(name) for name in _FILE_FIELDS}})
    return list(latest.values())


def _file_history(invocation: Invocation, file: str, window: dict[str, Any]) -> int:
    """A path has one history, whatever project the command runs in."""
    fields = {"file_path": plain.absolute_path(file), **window}
    result = invocation.client().call("nudge.file_history", fields)
    console = invocation.console
    console.result(result, history_lines.file_history_lines(console.pen, result))
    if not result["sessions"] and not console.as_json:
        path = escape(result["file_path"])
        console.note(f"no session touched {path}; list files that were touched with: nudge history")
    if result.get("more"):
        console.note(output.more_note(window.get("limit", limits.DEFAULT_HISTORY_LIMIT), limits.MAX_HISTORY_LIMIT))
    return EXIT_OK


# sessions, trace


@verb("sessions", "nudge sessions", "nudge sessions --project api --limit 50")
@option("--project", metavar="NAME", help="Only of this project.", shell_complete=completion.projects)
@params.limit_option(limits.DEFAULT_SESSIONS_LIMIT)
def sessions(invocation: Invocation, project: str | None, limit: int | None) -> int:
    """Sessions of every project, unless one is named; the newest first."""
    fields = {**project_params(project), **params.drop_none(limit=limit)}
    rows, more = _call_page(
        invocation.client(), "nudge.sessions", fields, limits.DEFAULT_SESSIONS_LIMIT, limits.MAX_SESSIONS_LIMIT
    )
    console = invocation.console
    console.result(rows, history_lines.session_lines(console.pen, rows))
    if more:
        console.note(more)
    if console.as_json:
        return EXIT_OK
    if not rows and project is not None:
        console.note(escape(f"no session of {project} is recorded; list all sessions with: nudge sessions"))
    elif not rows:
        console.note("no session is recorded yet; connect an agent with: nudge connect")
    if project is None and (note := _private_note()):
        console.note(escape(note))
    return EXIT_OK


@verb("trace", "nudge trace last", "nudge trace d4f8a2b1", "nudge trace last --project api --full")
@click.argument(
    "session",
    metavar="SESSION",
    help="last (of this project), an id, or the beginning of one.",
    shell_complete=completion.sessions,
)
@option("--project", metavar="NAME", help="Only sessions of this project.", shell_complete=completion.projects)
@option("--full", is_flag=True, help="Include the whole text that the agent received at its start.")
@params.window_options("what happened")
@params.limit_option(limits.DEFAULT_TRACE_LIMIT, "prompts and observations")
def trace(invocation: Invocation, session: str, project: str | None, full: bool, **window: int | None) -> int:
    client, console = invocation.client(), invocation.console
    fields = {"session_id": find_session(client, session, project), **params.drop_none(**window)}
    result = client.call("nudge.session_trace", {**caller_params(project), **fields})
    console.result(result, history_lines.trace_lines(console.pen, result, full=full))
    if result.get("more"):
        latest = history_lines.latest_in_trace(result)
        console.note(f"there is more: nudge trace {escape(result['session_id'])} --after {iso(latest)}")
    return EXIT_OK


# timeline, show


_private_option = option(
    "--project",
    metavar="NAME",
    help="Of this project, if it is private and not this one.",
    shell_complete=completion.projects,
)


@verb("timeline", "nudge timeline 42", "nudge timeline 42 --before 20 --after 0")
@click.argument("anchor", metavar="ID", type=ID, help="The observation in the middle.")
@option("--before", type=WHOLE, metavar="N", help="Observations before it (5).")
@option("--after", type=WHOLE, metavar="N", help="Observations after it (5).")
@_private_option
def timeline(invocation: Invocation, anchor: int, before: int | None, after: int | None, project: str | None) -> int:
    """Only observations of the same session are shown."""
    try:
        fields = {"anchor": anchor, **caller_params(project), **params.drop_none(before=before, after=after)}
        result = invocation.client().call("nudge.timeline", fields)
    except RemoteError as error:
        if error.reason == NotFound.reason:
            raise NotFound(f"{error.message}; find one with: nudge search") from None
        raise
    invocation.console.result(result, history_lines.timeline_lines(invocation.console.pen, result))
    return EXIT_OK


@verb("show", "nudge show 42", "nudge show 42 43 --json", "nudge search stale --ids | xargs nudge show")
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=ID, help="Observations, by their number.")
@_private_option
def show(invocation: Invocation, ids: tuple[int, ...], project: str | None) -> int:
    console = invocation.console
    rows = _fetch(invocation.client(), ids, project)
    console.result(rows, (line for row in rows for line in history_lines.full_lines(console.pen, row)))
    row_ids = {row["id"] for row in rows}
    if missing := [f"#{number}" for number in dict.fromkeys(ids) if number not in row_ids]:
        console.note(f"not found: {', '.join(missing)}")
    return EXIT_OK if rows else EXIT_NOT_FOUND


# inject


@verb(
    "inject",
    "nudge inject",
    "nudge inject --explain",
    "nudge inject --prompt 'move the sessions into postgres'",
    "nudge inject --source compact --cwd ~/code/api",
)
@option(
    "--source",
    type=click.Choice(["startup", "resume", "clear", "compact"]),
    default="startup",
    help="How the session starts (startup).",
)
@option("--explain", is_flag=True, help="Show the parts of the score of each line, and why it is there.")
@option("--prompt", metavar="TEXT", help="What is known about this prompt, in place of what the start is told.")
@params.context_options
def inject(
    invocation: Invocation,
    source: str,
    explain: bool,
    prompt: str | None,
    env: tuple[tuple[str, str], ...],
    **where: str | None,
) -> int:
    """No session is named, so nothing is stored."""
    console = invocation.console
    off = switch.why_off(os.environ, paths.runtime_dir(), context.resolve(where["cwd"]))
    if off is not None:
        console.result({"text": "", "items": []}, [])
        console.note(escape(f"recording and injection are off here because {off.reason}; turn them on with: {off.fix}"))
        return EXIT_OK
    if prompt is not None:
        about = {"query": prompt, "context": plain.context_params(**where)}
        result = invocation.client(env).call("nudge.assemble_context", about)
        console.result(result, (escape(line) for line in result["markdown"].splitlines()))
        if not result["markdown"] and not console.as_json:
            console.note("nothing that is known here is about this prompt, so an agent is told nothing")
        return EXIT_OK
    fields = {"source": source, "explain": explain, "context": plain.context_params(**where)}
    result = invocation.client(env).call("nudge.inject", fields)
    console.result(result, history_lines.inject_lines(console, result))
    if not result["text"] and not console.as_json:
        console.note("there are no hints or observations for here yet, so an agent is told nothing")
    return EXIT_OK


# learned


@verb("learned", "nudge learned", "nudge learned --all-projects", "nudge learned --forget 'python3 -m pytest'")
@project_options
@option("--forget", metavar="SUBJECT", help="Forget what was learned about this command, path or option.")
def learned(invocation: Invocation, project: str | None, all_projects: bool, forget: str | None) -> int:
    """What failed here because something is missing, and what worked in its place: agents that fail alike read it."""
    console, chosen = invocation.console, resolve_project(project, all_projects)
    if forget is not None:
        if chosen is None:
            raise Usage("--forget needs a project", "name one with --project")
        result = invocation.client().call("nudge.forget_learned", {"project": chosen, "subject": forget})
        console.result(result, [console.pen.done(f"forgot what was learned about {escape(forget)}")])
        return EXIT_OK
    result = invocation.client().call("nudge.learned", project_params(chosen))
    console.result(result, history_lines.learned_lines(console.pen, result["facts"]))
    if not result["facts"]:
        console.note("nothing was learned here yet: a command must fail and another work in its place")
    return EXIT_OK


# told, stats


@verb("told", "nudge told", "nudge told --all-projects --limit 100", "nudge told --never m12", "nudge told --allow m12")
@project_options
@params.limit_option(limits.DEFAULT_TOLD_LISTED)
@option("--never", metavar="LINE", help="Never tell this line again in this project; its number or name.")
@option("--allow", metavar="LINE", help="Let it be told again.")
def list_told_lines(
    invocation: Invocation,
    project: str | None,
    all_projects: bool,
    limit: int | None,
    never: str | None,
    allow: str | None,
) -> int:
    """Every line that an agent was told, why, and whether it was used afterwards: its command run, its id fetched, its
    file opened."""
    console = invocation.console
    if (line := never or allow) is not None:
        where = project_params(resolve_project(project, all_projects))
        result = invocation.client().call("nudge.never_tell", {"line": line, "never": never is not None, **where})
        done = "is never told again" if result["never"] else "may be told again"
        console.result(result, [console.pen.done(f"{escape(result['line'])} {done}")])
        return EXIT_OK
    fields = {**project_params(resolve_project(project, all_projects)), **params.drop_none(limit=limit)}
    result = invocation.client().call("nudge.told", fields)
    console.result(result, history_lines.told_lines(console.pen, result["lines"]))
    if not result["lines"] and not console.as_json:
        console.note("no agent was told anything here yet")
    if len(result["lines"]) == (limit or limits.DEFAULT_TOLD_LISTED) and not console.as_json:
        console.note("there may be older ones; show more with: nudge told --limit N")
    if result["never"] and not console.as_json:
        console.note(escape(f"never told: {', '.join(result['never'])}"))
    return EXIT_OK


@verb("stats", "nudge stats", "nudge stats --all-projects", "nudge stats --json")
@project_options
def stats(invocation: Invocation, project: str | None, all_projects: bool) -> int:
    """By week: lines told and used, known failures that were met again, and failures that a line at the start spared.
    With NUDGE_TELL=shadow:20%, also failures and commands of sessions that were told and of those that were not."""
    console = invocation.console
    result = invocation.client().call("nudge.stats", project_params(resolve_project(project, all_projects)))
    console.result(result, history_lines.stats_lines(result))
    if not result["weeks"] and not console.as_json:
        console.note("no agent was told anything here yet")
    return EXIT_OK
