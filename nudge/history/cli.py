"""The verbs that read the history: search, recent, history, sessions, trace, timeline and show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import click

from nudge.cli import completion, output, params, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_NOT_FOUND, EXIT_OK, Console, Styler, Usage
from nudge.cli.params import ID, WHOLE, option, project_options, project_params, resolve_project
from nudge.cli.plain import Invocation
from nudge.cli.render import MINUTES, clock_format, empty_note, explanation, local_time, table
from nudge.cli.verbs import HISTORY
from nudge.core import context, limits
from nudge.core.clock import iso
from nudge.core.errors import NotFound, RemoteError
from nudge.core.text import escape, format_span
from nudge.core.visibility import visible_here
from nudge.history import render
from nudge.process.client import Client

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
    private = visible_here(context.resolve()).hidden_names
    return f"private repos were left out; name one with --repo: {', '.join(private)}" if private else None


def find_session(client: Client, word: str, project: str | None) -> str:
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
        note = "no session of this repo is recorded yet; list all sessions with: nudge sessions"
        raise NotFound(empty_note(client, project, note))
    if not ids:
        raise NotFound(f"session not found: {word}; list them with: nudge sessions")
    raise Usage(f"several sessions begin with {word!a}", f"one is {ids[0]}; list them with: nudge sessions")


def _fetch(client: Client, ids: Sequence[int], project: str | None) -> list[dict[str, Any]]:
    """Return whole observations, in the order of the ids."""
    most = limits.MAX_OBSERVATION_IDS
    portions = (ids[start : start + most] for start in range(0, len(ids), most))
    named = caller_params(project)
    return [
        row for portion in portions for row in client.call("nudge.get_observations", {**named, "ids": list(portion)})
    ]


def _call_page(
    client: Client, operation: str, fields: dict[str, Any], default: int, most: int, noun: str = "observations"
) -> tuple[list[dict[str, Any]], str | None]:
    """Ask for one row more than the limit. Return the rows up to it, and what to say when there are more."""
    limit = fields.get("limit", default)
    rows = client.call(operation, {**fields, "limit": min(limit + 1, most)})
    is_cut = len(rows) > limit or len(rows) == most
    return rows[:limit], output.more_note(limit, most, noun, has_words="query" in fields) if is_cut else None


# search


@verb(
    "search",
    "nudge search auth error",
    "nudge search 'docker AND compose' --type command_error --after 7d",
    "nudge search stale --ids | xargs nudge show",
    "nudge search deploy --repo api --order-by blended",
    "nudge search 'auth error' --explain",
    group=HISTORY,
    summary="search the history of what agents did",
    operations=(
        "nudge.search",
        "nudge.search_explain",
    ),
)
@click.argument("words", metavar="QUERY...", nargs=-1, required=True, help='Words, "a phrase", prefix*, AND, OR, NOT.')
@params.project_option("Only observations of this repo (default: all repos).")
@_type_option
@params.limit_option(limits.DEFAULT_SEARCH_LIMIT, most=limits.MAX_SEARCH_LIMIT)
@option("--full", is_flag=True, help="Print each observation in full, not one line of it.")
@option("--ids", is_flag=True, help="Print only the ids, one per line; with --json, as an array.")
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
    """Prints one line for each observation: id, age, type and text. All repos are searched, unless --repo names one."""
    _refuse_together(ids=ids, full=full, explain=explain)
    console, client, query = invocation.console, invocation.client(), " ".join(words)
    fields = {"query": query, **project_params(project), **params.drop_none(**filters)}
    if explain:
        return _explain_search(console, client.call("nudge.search_explain", fields), query)
    rows, more = _call_page(client, "nudge.search", fields, limits.DEFAULT_SEARCH_LIMIT, limits.MAX_SEARCH_LIMIT)
    if full:
        rows = _fetch(client, [row["id"] for row in rows], project)
    if ids:
        console.result([row["id"] for row in rows], (str(row["id"]) for row in rows))
    elif full:
        console.result(rows, chain.from_iterable(render.full_observation_lines(console.styler, row) for row in rows))
    else:
        console.result(rows, _found_lines(console.styler, rows))
    suffix = f"; {more}" if more else ""
    some = " with some of the words" if rows and rows[0].get("partial") else ""
    console.note(f'nudge: {output.count(len(rows), "result")}{some} for "{escape(query)}"{suffix}')
    _note_left_out(console, client, project, is_empty=not rows)
    return EXIT_OK


def _note_left_out(console: Console, client: Client, project: str | None, *, is_empty: bool) -> None:
    if project is None and console.is_terminal and (note := _private_note()):
        console.note(escape(note))
    if is_empty and not console.as_json and (note := empty_note(client, project)):
        console.note(note)


def _refuse_together(*, ids: bool, full: bool, explain: bool) -> None:
    if ids and full:
        raise Usage("--ids and --full exclude each other", "leave one out")
    if explain and (ids or full):
        raise Usage("--explain excludes --ids and --full", "leave one out")


def _explain_search(console: Console, result: Mapping[str, Any], query: str) -> int:
    console.result(result, explanation(console, result, in_history=True))
    console.note(f'nudge: {output.count(len(result["items"]), "result")} for "{escape(query)}"')
    return EXIT_OK


def _found_lines(styler: Styler, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each row; below it the text that was found, where the words are not in the line."""
    for row, line in zip(rows, render.observation_table(styler, rows), strict=True):
        yield line
        if text := row.get("found_text"):
            yield styler.paint("dim", f"      {styler.clip(escape(' '.join(str(text).split())), 6)}")


# recent, history


@verb(
    "recent",
    "nudge recent",
    "nudge recent --limit 50",
    "nudge recent --all-repos --json",
    group=HISTORY,
    summary="list recent commits, failures, edits and prompts",
    operations=("nudge.recent_context",),
)
@params.project_option("Only observations of this repo (default: the one you are in).")
@params.all_projects_option("Observations of all repos.")
@params.limit_option(limits.DEFAULT_RECENT_LIMIT, most=limits.MAX_RECENT_LIMIT)
def recent(invocation: Invocation, project: str | None, all_projects: bool, limit: int | None) -> int:
    """Prints one line for each commit, failure, edit and prompt, the newest first: id, age, type and text. A file that
    was edited several times is listed once. `nudge search` finds everything else."""
    chosen, client = resolve_project(project, all_projects), invocation.client()
    fields = {**project_params(chosen), "work": True, **params.drop_none(limit=limit)}
    rows, more = _call_page(
        client, "nudge.recent_context", fields, limits.DEFAULT_RECENT_LIMIT, limits.MAX_RECENT_LIMIT
    )
    console = invocation.console
    console.result(rows, render.observation_table(console.styler, rows, project=chosen, show_projects=True))
    if more:
        console.note(more)
    if not console.as_json and not any(render.is_of_project(row, chosen) for row in rows):
        nothing = (
            "no commit, failure, edit or prompt is recorded here yet; connect an agent with: nudge connect, or use "
            "--all-repos"
        )
        if note := empty_note(client, project, "" if rows else nothing):
            console.note(note)
    return EXIT_OK


_RECENT_ROWS = 100  # recent observations in which `nudge history` looks for files
_FILES_LISTED = 20
_FILE_FIELDS = ("timestamp", "obs_type", "id", "session_id", "project")


@verb(
    "history",
    "nudge history",
    "nudge history src/auth.py",
    "nudge history src/auth.py --after 30d --limit 50",
    group=HISTORY,
    summary="show which sessions touched a file, and why",
    operations=("nudge.file_history",),
)
@click.argument(
    "file",
    metavar="[FILE]",
    required=False,
    type=click.Path(),
    help="The file; without it, list files that were touched recently.",
)
@option(
    "--limit",
    type=params.clamped_count(_RECENT_ROWS),
    metavar="N",
    help="Maximum number of touches (default: 10), or of files (default: 20).",
)
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
        if render.is_of_project(row, chosen) and (after or 0) < row["timestamp"] < (before or float("inf"))
    ]
    touched = _recent_files(rows)[: limit or _FILES_LISTED]
    console.result(touched, render.observation_table(console.styler, touched, project=chosen, show_projects=True))
    if not touched and not console.as_json:
        console.note("no file was touched here yet; look in all repos with --all-repos")
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
    console.result(result, _file_history_lines(console.styler, result))
    if not result["sessions"] and not console.as_json:
        path = escape(result["file_path"])
        console.note(f"no session touched {path}; list files that were touched with: nudge history")
    if result.get("more"):
        console.note(
            output.more_note(window.get("limit", limits.DEFAULT_HISTORY_LIMIT), limits.MAX_HISTORY_LIMIT, "touches")
        )
    return EXIT_OK


def _file_history_lines(styler: Styler, result: dict[str, Any]) -> Iterator[str]:
    for session in result["sessions"]:
        name = styler.paint("bold", render.short_id(session["session_id"]))
        intent = render.quote_line(session["summary_intent"]) if session.get("summary_intent") else ""
        project = escape(str(session.get("project") or "-"))
        began = local_time(session["started_at"], MINUTES)
        yield f"{name}  {began}  {project}  {styler.clip(intent, 40)}".rstrip()
        # The path is the same in every line; what else a touch has is not.
        rows = [
            {**touch, "content": "" if touch["content_preview"] == result["file_path"] else touch["content_preview"]}
            for touch in session["touches"]
        ]
        for row, line in zip(rows, render.observation_table(styler, rows, clock=MINUTES, indent="  "), strict=True):
            yield line
            if row.get("prompt_content"):
                yield styler.paint("dim", f"      {styler.clip(render.quote_line(row['prompt_content']), 6)}")


# sessions, trace


@verb(
    "sessions",
    "nudge sessions",
    "nudge sessions --repo api --limit 50",
    group=HISTORY,
    summary="list the sessions of agents",
    operations=("nudge.sessions",),
)
@params.project_option("Only sessions of this repo (default: all repos).")
@params.limit_option(limits.DEFAULT_SESSIONS_LIMIT, "sessions", limits.MAX_SESSIONS_LIMIT)
def sessions(invocation: Invocation, project: str | None, limit: int | None) -> int:
    """Prints one line for each session, the newest first: id, start, duration, repo, client, number of observations and
    intent."""
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
    console.result(rows, table(console.styler, map(_session_cells, rows), paint={0: console.styler.bold}))
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


def _session_cells(session: dict[str, Any]) -> list[str]:
    """Return the cells of a row; the intent comes last, since it may be long."""
    intent = (session.get("summary") or {}).get("intent")
    ended = session.get("ended_at")
    return [
        render.short_id(session["session_id"]),
        local_time(session["started_at"], MINUTES),
        "open" if ended is None else format_span(ended - session["started_at"]),
        escape(str(session.get("project") or "-")),
        escape(str(session.get("client") or "-")),
        f"{session['observation_count']} obs",
        render.quote_line(intent) if intent else "",
    ]


@verb(
    "trace",
    "nudge trace last",
    "nudge trace d4f8a2b1",
    "nudge trace last --repo api --full",
    group=HISTORY,
    summary="show a session: each prompt and what it led to",
    operations=("nudge.session_trace",),
)
@click.argument(
    "session",
    metavar="SESSION",
    help="last (the last one of this repo), an id, or the beginning of an id.",
    shell_complete=completion.sessions,
)
@params.project_option("Only sessions of this repo.")
@option("--full", is_flag=True, help="Also print the whole text that the agent was told at its start.")
@params.window_options("what happened")
@params.limit_option(limits.DEFAULT_TRACE_LIMIT, "prompts and observations", limits.MAX_TRACE_LIMIT)
def trace(invocation: Invocation, session: str, project: str | None, full: bool, **window: int | None) -> int:
    """Prints what the agent was told at its start, then each prompt with the observations that followed it."""
    client, console = invocation.client(), invocation.console
    fields = {"session_id": find_session(client, session, project), **params.drop_none(**window)}
    result = client.call("nudge.session_trace", {**caller_params(project), **fields})
    console.result(result, render.trace_lines(console.styler, result, full=full))
    if result.get("more"):
        latest = render.latest_in_trace(result)
        console.note(f"there is more: nudge trace {escape(result['session_id'])} --after {iso(latest)}")
    return EXIT_OK


# timeline, show


_private_option = params.project_option(
    "Repo of the observation; needed if it is a private one, and not the one you are in."
)


@verb(
    "timeline",
    "nudge timeline 42",
    "nudge timeline 42 --before 20 --after 0",
    group=HISTORY,
    summary="show what happened around an observation",
    operations=("nudge.timeline",),
)
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
    invocation.console.result(result, _timeline_lines(invocation.console.styler, result))
    return EXIT_OK


def _timeline_lines(styler: Styler, result: dict[str, Any]) -> Iterator[str]:
    anchor = result["anchor"]
    project, day = escape(str(anchor.get("project") or "-")), local_time(anchor["timestamp"], "%Y-%m-%d")
    yield styler.paint("dim", f"session {escape(anchor['session_id'])}, {project}, {day}")
    rows = [*result["before"], anchor, *result["after"]]
    clock = clock_format(row["timestamp"] for row in rows)
    for position, line in enumerate(render.observation_table(styler, rows, clock=clock)):
        yield f"{styler.paint('bold', '>') if position == len(result['before']) else ' '} {line}"


@verb(
    "show",
    "nudge show 42",
    "nudge show 42 43 --json",
    "nudge search stale --ids | xargs nudge show",
    group=HISTORY,
    summary="show observations in full",
    operations=("nudge.get_observations",),
)
@click.argument(
    "ids", metavar="ID...", nargs=-1, required=True, type=ID, help="Ids of observations, such as 42 or #42."
)
@_private_option
def show(invocation: Invocation, ids: tuple[int, ...], project: str | None) -> int:
    """Prints the whole text of each observation, its session, repo, file and other fields."""
    console = invocation.console
    rows = _fetch(invocation.client(), ids, project)
    console.result(rows, (line for row in rows for line in render.full_observation_lines(console.styler, row)))
    row_ids = {row["id"] for row in rows}
    if missing := [f"#{number}" for number in dict.fromkeys(ids) if number not in row_ids]:
        console.note(f"not found: {', '.join(missing)}")
    return EXIT_OK if rows else EXIT_NOT_FOUND
