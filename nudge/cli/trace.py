"""`nudge trace`: one session, prompt by prompt, with what each led to and what the agent was told."""

from __future__ import annotations

from nudge.cli import exits, history_view, render
from nudge.cli.connection import connect
from nudge.cli.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge trace last", "nudge trace d4f8a2b1", "nudge trace last --project api --full")


def configure(parser: Parser) -> None:
    parser.add_argument("session", metavar="SESSION", help="last (of all projects), an id, or the beginning of one")
    parser.add_argument("--project", metavar="NAME", help="look for the session in this project only")
    parser.add_argument("--full", action="store_true", help="with the whole text that the agent was told at its start")
    history_view.add_window(parser, "what happened")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    client = connect(arguments)
    session_id = history_view.find_session(client, arguments.session, arguments.project)
    window = history_view.given(arguments, before="before", after="after")
    result = client.call("nudge.session_trace", {"session_id": session_id, **window})
    console.result(result, _lines(console.pen, result, full=arguments.full))
    return exits.DONE


def _lines(pen: render.Pen, trace: dict[str, Any], *, full: bool) -> Iterator[str]:
    yield from _head(pen, trace)
    injections, prompts = trace.get("injections") or (), trace["prompts"]
    clock = history_view.clock_of(
        [trace["started_at"], *(entry["timestamp"] for entry in (*injections, *prompts, *_actions(prompts)))]
    )
    told = [(entry["timestamp"], 0, _told(pen, entry, clock, full=full)) for entry in injections]
    asked = [(entry["timestamp"], 1, _prompt(pen, entry, clock)) for entry in prompts]
    for _, _, lines in sorted([*told, *asked], key=lambda entry: entry[:2]):
        yield from lines


def _actions(prompts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (one for prompt in prompts for one in prompt["observations"])


def _head(pen: render.Pen, trace: dict[str, Any]) -> Iterator[str]:
    began, ended = trace["started_at"], trace.get("ended_at")
    yield f"{pen.paint('bold', render.visible(trace['session_id']))}  {render.visible(str(trace.get('project') or '-'))}"
    since = history_view.local(began)
    yield (
        f"{since} to {history_view.local(ended, history_view.clock_of([began, ended]))}"
        if ended
        else f"since {since}, still open"
    )
    summary = trace.get("summary") or {}
    if summary.get("intent"):
        yield f"intent: {history_view.quoted(summary['intent'])}"
    for failed in summary.get("failed") or ():
        outcome = f"passed in #{failed['passed']}" if failed.get("passed") else "did not pass since"
        yield f"failed: {history_view.quoted(failed['command'])} #{failed['id']}, {outcome}"
    if summary.get("counts"):
        yield pen.paint("dim", history_view.counts(summary["counts"]))


def _prompt(pen: render.Pen, prompt: dict[str, Any], clock: str) -> Iterator[str]:
    """What happened without a prompt stands under no words of anybody."""
    when = history_view.local(prompt["timestamp"], clock)
    kept = history_view.quoted(prompt["content"]) if prompt["content"] else "(a prompt that is kept no more)"
    said = "(no prompt)" if prompt["prompt_id"] is None else pen.clip(kept, len(when) + 16)
    yield f"{pen.paint('cyan', when)} {said} {pen.paint('dim', '-> ' + render.counted(prompt['observation_count'], 'observation'))}"
    yield from history_view.table(pen, prompt["observations"], clock=clock, indent="  ")


def _told(pen: render.Pen, injection: dict[str, Any], clock: str, *, full: bool) -> Iterator[str]:
    when = history_view.local(injection["timestamp"], clock)
    named = ", ".join(_item(item) for item in injection["items"])
    yield f"{pen.paint('cyan', when)} (told at the start) {pen.clip(named, len(when) + 20) if not full else ''}".rstrip()
    if full:
        yield from (pen.paint("dim", f"  {render.visible(line)}") for line in str(injection["text"]).splitlines())


def _item(item: Any) -> str:
    identity = item.get("id") if isinstance(item, dict) else item
    return f"#{identity}" if isinstance(identity, int) else render.visible(str(identity))
