"""The verbs that read the history: search, recent, history, sessions, trace, timeline, show; and what agents are told:
inject, learned, told, stats."""

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
from nudge.cli.params import COUNT, ID, WHOLE, option, project_options, project_params, resolve_project
from nudge.cli.plain import Invocation
from nudge.clock import iso
from nudge.errors import NotFound, RemoteError
from nudge.ipc.client import Client
from nudge.text import escape
from nudge.usecases.visibility import visible_here

_NOTHING_TOLD = "no agent was told anything here yet"
MAX_IDS = 50  # observations in one request

_type_option = option(
    "--type",
    "obs_type",
    metavar="TYPE",
    help="Only observations of this type, such as command_error, file_edit or git_commit.",
    shell_complete=completion.observation_types,
)


# Which project, which session


def caller_params(project: str | None) -> dict[str, Any]:
    """Return the parameters for rows that are found by id: no project is needed, unless it is private and not the
    current one."""
    return {name: value for name, value in project_params(project).items() if value is not None}


def _private_note() -> str | None:
    """Return a remark that names the private projects that a search of all projects leaves out; None when there are
    none."""
    private = visible_here().hidden_from(context.resolve().project)
    return f"private projects were left out; name one with --project: {', '.join(sorted(private))}" if private else None


def _empty_note(client: Client, project: str | None, note: str = "") -> str:
    """Return what to say about an empty result: that no project has the name that --project gives, else `note`."""
    if project is None or client.call("nudge.sessions", {"project": project.casefold(), "limit": 1}):
        return note
    return escape(f"no project is called {project} here; list them with: nudge sessions")


def find_session(client: Client, word: str, project: str | None = None) -> str:
    """Return the id of a session. `word` is `last` (the last one of this project that is not empty), an id, or a unique
    beginning of one."""
    is_last = word == "last"
    which = {"nonempty": True, "limit": 1} if is_last else {"session": word, "limit": 20}
    named = project_params(resolve_project(project, False) if is_last else project)
    sessions = client.call("nudge.sessions", {**named, **which})
    ids = [str(session["session_id"]) for session in sessions]
    if word in ids or (word and len(ids) == 1):
        return word if word in ids else ids[0]
    if not ids and is_last:
        note = "no session of this project is recorded yet; list all sessions with: nudge sessions"
        raise NotFound(_empty_note(client, project, note))
    if not ids:
        raise NotFound(f"session not found: {word}; list them with: nudge sessions")
    raise Usage(f"several sessions begin with {word!a}", f"one is {ids[0]}; list them with: nudge sessions")


def _fetch(client: Client, ids: Sequence[int], project: str | None = None) -> list[dict[str, Any]]:
    """Return whole observations, in the order of the ids."""
    portions = (ids[start : start + MAX_IDS] for start in range(0, len(ids), MAX_IDS))
    named = caller_params(project)
    return [
        row for portion in portions for row in client.call("nudge.get_observations", {**named, "ids": list(portion)})
    ]


def _call_page(
    client: Client, operation: str, fields: dict[str, Any], default: int, most: int, noun: str = "observations"
) -> tuple[list[dict[str, Any]], str | None]:
    """Ask for one row more than the limit. Return the rows up to it, and what to say when there are more."""
    limit = min(fields.get("limit", default), most)
    rows = client.call(operation, {**fields, "limit": min(limit + 1, most)})
    is_cut = len(rows) > limit or len(rows) == most
    return rows[:limit], output.more_note(limit, most, noun, has_words="query" in fields) if is_cut else None


# search


@verb(
    "search",
    "nudge search auth error",
    "nudge search 'docker AND compose' --type command_error --after 7d",
    "nudge search stale --ids | xargs nudge show",
    "nudge search deploy --project api --order-by blended",
    "nudge search 'auth error' --explain",
)
@click.argument("words", metavar="QUERY...", nargs=-1, required=True, help='Words, "a phrase", prefix*, AND, OR, NOT.')
@params.project_option("Only observations of this project (default: all projects).")
@_type_option
@params.limit_option(limits.DEFAULT_SEARCH_LIMIT)
@option("--full", is_flag=True, help="Print each observation in full, not one line of it.")
@option("--ids", is_flag=True, help="Print only the ids, one per line.")
@option("--explain", is_flag=True, help="Print the parts of each score, and the words that matched.")
@option(
    "--order-by",
    type=click.Choice(["relevance", "blended"]),
    help="Order by the match alone, or by match and age together (default: relevance).",
)
@params.window_options("what happened")
def search(
    invocation: Invocation,
    words: tuple[str, ...],
    project: str | None,
    full: bool,
    ids: bool,
    explain: bool,
    **filters: Any,
) -> int:
    """Prints one line for each observation: id, age, type and text. All projects are searched, unless --project names
    one."""
    if ids and (full or invocation.as_json):
        raise Usage("--ids excludes --full and --json", "leave one out")
    if explain and (ids or full):
        raise Usage("--explain excludes --ids and --full", "leave one out")
    console, client, query = invocation.console, invocation.client(), " ".join(words)
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
    if not rows and not console.as_json and (note := _empty_note(client, project)):
        console.note(note)
    return EXIT_OK


# recent, history


@verb("recent", "nudge recent", "nudge recent --limit 50", "nudge recent --all-projects --json")
@params.project_option("Rank observations of this project first (default: the current one).")
@option("--all-projects", is_flag=True, help="Rank all projects alike.")
@params.limit_option(limits.DEFAULT_RECENT_LIMIT)
def recent(invocation: Invocation, project: str | None, all_projects: bool, limit: int | None) -> int:
    """Prints one line for each observation: id, age, type and text. Edits rank above commands, and commands above
    everything else; new above old; this project above the others."""
    chosen, client = resolve_project(project, all_projects), invocation.client()
    fields = {**project_params(chosen), **params.drop_none(limit=limit)}
    rows, more = _call_page(
        client, "nudge.recent_context", fields, limits.DEFAULT_RECENT_LIMIT, limits.MAX_RECENT_LIMIT
    )
    console = invocation.console
    console.result(rows, history_lines.table(console.pen, rows, project=chosen, show_projects=True))
    if more:
        console.note(more)
    if not console.as_json and not any(history_lines.is_of(row, chosen) for row in rows):
        nothing = "nothing is recorded here yet; connect an agent with: nudge connect, or use --all-projects"
        if note := _empty_note(client, project, "" if rows else nothing):
            console.note(note)
    return EXIT_OK


_RECENT_ROWS = 100  # recent observations in which `nudge history` looks for files
_FILE_FIELDS = ("timestamp", "obs_type", "id", "session_id", "project")


@verb("history", "nudge history", "nudge history src/auth.py", "nudge history src/auth.py --after 30d --limit 50")
@click.argument(
    "file",
    metavar="[FILE]",
    required=False,
    type=click.Path(),
    help="The file; without it, list files that were touched recently.",
)
@option("--limit", type=COUNT, metavar="N", help="Maximum number of touches (default: 10), or of files (default: 20).")
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
    """Prints each session with its intent, and below it when and how it touched the file. Without FILE, prints the
    files that were touched recently."""
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
        console.note("no file was touched here yet; look in all projects with --all-projects")
    return EXIT_OK


def _recent_files(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each file once, the one touched last first. One observation may touch several files."""
    latest: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (-row["timestamp"], -row["id"])):
        names = (row.get("metadata") or {}).get("files") if str(row["obs_type"]).startswith("file_") else None
        for path in (row.get("file_path"), *(names if isinstance(names, list) else ())):
            if path:
                latest.setdefault(path, {"file_path": path, **{name: row.get(name) for name in _FILE_FIELDS}})
    return list(latest.values())


def _file_history(invocation: Invocation, file: str, window: dict[str, Any]) -> int:
    """Print the history of a path, which is the same in whatever project the command runs."""
    fields = {"file_path": plain.absolute_path(file), **window}
    result = invocation.client().call("nudge.file_history", fields)
    console = invocation.console
    console.result(result, history_lines.file_history_lines(console.pen, result))
    if not result["sessions"] and not console.as_json:
        path = escape(result["file_path"])
        console.note(f"no session touched {path}; list files that were touched with: nudge history")
    if result.get("more"):
        console.note(
            output.more_note(window.get("limit", limits.DEFAULT_HISTORY_LIMIT), limits.MAX_HISTORY_LIMIT, "touches")
        )
    return EXIT_OK


# sessions, trace


@verb("sessions", "nudge sessions", "nudge sessions --project api --limit 50")
@params.project_option("Only sessions of this project (default: all projects).")
@params.limit_option(limits.DEFAULT_SESSIONS_LIMIT)
def sessions(invocation: Invocation, project: str | None, limit: int | None) -> int:
    """Prints one line for each session, the newest first: id, start, duration, project, client, number of observations
    and intent."""
    fields = {**project_params(project), **params.drop_none(limit=limit)}
    rows, more = _call_page(
        invocation.client(),
        "nudge.sessions",
        fields,
        limits.DEFAULT_SESSIONS_LIMIT,
        limits.MAX_SESSIONS_LIMIT,
        "sessions",
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
    help="last (the last one of this project), an id, or the beginning of an id.",
    shell_complete=completion.sessions,
)
@option("--project", metavar="NAME", help="Only sessions of this project.", shell_complete=completion.projects)
@option("--full", is_flag=True, help="Also print the whole text that the agent was told at its start.")
@params.window_options("what happened")
@params.limit_option(limits.DEFAULT_TRACE_LIMIT, "prompts and observations")
def trace(invocation: Invocation, session: str, project: str | None, full: bool, **window: int | None) -> int:
    """Prints what the agent was told at its start, then each prompt with the observations that followed it."""
    client, console = invocation.client(), invocation.console
    fields = {"session_id": find_session(client, session, project), **params.drop_none(**window)}
    result = client.call("nudge.session_trace", {**caller_params(project), **fields})
    console.result(result, history_lines.trace_lines(console.pen, result, full=full))
    if result.get("more"):
        latest = history_lines.latest_in_trace(result)
        console.note(f"there is more: nudge trace {escape(result['session_id'])} --after {iso(latest)}")
    return EXIT_OK


# timeline, show


_private_option = params.project_option(
    "Project of the observation; needed for a private project that is not the current one."
)


@verb("timeline", "nudge timeline 42", "nudge timeline 42 --before 20 --after 0")
@click.argument("anchor", metavar="ID", type=ID, help="The observation in the middle, such as 42 or #42.")
@option("--before", type=WHOLE, metavar="N", help="Number of observations before it (default: 5).")
@option("--after", type=WHOLE, metavar="N", help="Number of observations after it (default: 5).")
@_private_option
def timeline(invocation: Invocation, anchor: int, before: int | None, after: int | None, project: str | None) -> int:
    """Prints the observations of the same session before and after it; > marks the one that was asked for."""
    try:
        fields = {"anchor": anchor, **caller_params(project), **params.drop_none(before=before, after=after)}
        result = invocation.client().call("nudge.timeline", fields)
    except RemoteError as error:
        if error.reason == NotFound.reason and not invocation.as_json:
            raise NotFound(f"there is no observation #{anchor}; find one with: nudge search") from None
        raise
    invocation.console.result(result, history_lines.timeline_lines(invocation.console.pen, result))
    return EXIT_OK


@verb("show", "nudge show 42", "nudge show 42 43 --json", "nudge search stale --ids | xargs nudge show")
@click.argument(
    "ids", metavar="ID...", nargs=-1, required=True, type=ID, help="Ids of observations, such as 42 or #42."
)
@_private_option
def show(invocation: Invocation, ids: tuple[int, ...], project: str | None) -> int:
    """Prints the whole text of each observation, its session, project, file and other fields."""
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
    help="How the session starts (default: startup).",
)
@option("--explain", is_flag=True, help="Also print the parts of the score of each line, and why it is there.")
@option("--prompt", metavar="TEXT", help="Print what an agent is told about this prompt instead.")
@params.context_options
def inject(
    invocation: Invocation,
    source: str,
    explain: bool,
    prompt: str | None,
    env: tuple[tuple[str, str], ...],
    **where: str | None,
) -> int:
    """Prints the text as the agent gets it. Nothing is recorded as told."""
    console = invocation.console
    off = switch.why_off(os.environ, paths.runtime_dir(), context.resolve(where["cwd"]))
    if off is not None:
        console.result({"text": "", "items": []}, [])
        console.note(escape(f"recording and telling are off {off.where}; turn them on with: {off.fix}"))
        return EXIT_OK
    if prompt is not None:
        about = {"query": prompt, "context": plain.context_params(**where)}
        result = invocation.client(env).call("nudge.assemble_context", about)
        console.result(result, (escape(line) for line in result["markdown"].splitlines()))
        if not result["markdown"] and not console.as_json:
            console.note("nothing is known here about this prompt, so an agent is told nothing")
        return EXIT_OK
    fields = {"source": source, "explain": explain, "context": plain.context_params(**where)}
    result = invocation.client(env).call("nudge.inject", fields)
    console.result(result, history_lines.inject_lines(console, result))
    if not result["text"] and not console.as_json:
        console.note("there are no hints or observations for this directory yet, so an agent is told nothing")
    return EXIT_OK


# learned


@verb("learned", "nudge learned", "nudge learned --all-projects", "nudge learned --forget 'python3 -m pytest'")
@project_options
@option(
    "--forget",
    metavar="SUBJECT",
    help="Forget what was learned about this command, path or option.",
    shell_complete=completion.learned,
)
def learned(invocation: Invocation, project: str | None, all_projects: bool, forget: str | None) -> int:
    """Prints each command, path or option that failed because something is missing, and what worked in its place. An
    agent that fails in the same way is told."""
    console, chosen = invocation.console, resolve_project(project, all_projects)
    if forget is not None:
        if chosen is None:
            raise Usage("--forget needs a project", "name one with --project")
        result = invocation.client().call("nudge.forget_learned", {"project": chosen, "subject": forget})
        console.result(result, [console.pen.done(f"forgot what was learned about {escape(forget)}")])
        return EXIT_OK
    result = invocation.client().call("nudge.learned", project_params(chosen), context=plain.context_params())
    console.result(result, history_lines.learned_lines(console.pen, result["facts"]))
    if not result["facts"]:
        nothing = "nothing was learned here yet; Nudge learns when a command fails and another one works in its place"
        console.note(_empty_note(invocation.client(), project, nothing))
    return EXIT_OK


# told, stats


@verb("told", "nudge told", "nudge told --all-projects --limit 100", "nudge told --never m12", "nudge told --allow m12")
@project_options
@params.limit_option(limits.DEFAULT_TOLD_LISTED)
@option(
    "--never",
    metavar="LINE",
    help="Never tell this line again in this project; LINE is its number or name.",
    shell_complete=completion.told,
)
@option("--allow", metavar="LINE", help="Allow this line to be told again.", shell_complete=completion.banned)
def list_told_lines(
    invocation: Invocation,
    project: str | None,
    all_projects: bool,
    limit: int | None,
    never: str | None,
    allow: str | None,
) -> int:
    """Prints each line that an agent was told, why, and whether the agent used it afterwards: ran its command, fetched
    its id or opened its file."""
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
        console.note(_empty_note(invocation.client(), project, _NOTHING_TOLD))
    if len(result["lines"]) == (limit or limits.DEFAULT_TOLD_LISTED) and not console.as_json:
        console.note("there may be older ones; show more with: nudge told --limit N")
    if result["never"] and not console.as_json:
        console.note(escape(f"never told: {', '.join(result['never'])}"))
    return EXIT_OK


@verb("stats", "nudge stats", "nudge stats --all-projects", "nudge stats --json")
@project_options
def stats(invocation: Invocation, project: str | None, all_projects: bool) -> int:
    """Prints for each week the lines that were told and used, the known failures that were repeated, and the failures
    that a line at the start spared. With NUDGE_TELL=shadow:20%, also compares sessions that were told with sessions
    that were not."""
    console = invocation.console
    result = invocation.client().call("nudge.stats", project_params(resolve_project(project, all_projects)))
    console.result(result, history_lines.stats_lines(console.pen, result))
    if not result["weeks"] and not console.as_json:
        console.note(_empty_note(invocation.client(), project, _NOTHING_TOLD))
    return EXIT_OK
