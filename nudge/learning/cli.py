"""The verb about facts: what failed, and what worked instead."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from nudge.cli import completion, output, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, Styler, Usage
from nudge.cli.params import option, project_options, project_params, resolve_project
from nudge.cli.plain import Invocation
from nudge.cli.render import empty_note
from nudge.cli.verbs import TELLING
from nudge.core.text import escape


@verb(
    "facts",
    "nudge facts",
    "nudge facts --all-repos",
    "nudge facts --forget 'python3 -m pytest'",
    group=TELLING,
    summary="list what failed here and what worked instead",
    operations=(
        "nudge.learned",
        "nudge.forget_learned",
    ),
    unlisted=("learned",),
)
@project_options
@option(
    "--forget",
    metavar="SUBJECT",
    help="Forget the facts about this command, path or option.",
    shell_complete=completion.facts,
)
def facts(invocation: Invocation, project: str | None, all_projects: bool, forget: str | None) -> int:
    """Prints each command, path or option that failed because something is missing, and what worked in its place. An
    agent that fails in the same way is told."""
    console, chosen = invocation.console, resolve_project(project, all_projects)
    if forget is not None:
        if chosen is None:
            raise Usage("--forget needs a repo", "name one with --repo")
        result = invocation.client().call("nudge.forget_learned", {"project": chosen, "subject": forget})
        console.result(result, [console.styler.done(f"forgot the facts about {escape(forget)}")])
        return EXIT_OK
    result = invocation.client().call("nudge.learned", project_params(chosen), context=plain.context_params())
    console.result(result, _fact_lines(console.styler, result["facts"]))
    if not result["facts"]:
        nothing = "no fact is known here yet; Nudge learns one when a command fails and another one works in its place"
        console.note(empty_note(invocation.client(), project, nothing))
    return EXIT_OK


def _support(fact: dict[str, Any]) -> str:
    """Return what a fact rests on: `2 sessions, last 3h ago; exit code 127, then 0; #12, #15`."""
    rests_on = output.support_text(
        fact["sessions"], time.time() - fact["last"], fact.get("exit_codes"), fact.get("ids", [fact["id"]])
    )
    reported = {name: number for name, number in fact.get("credit", {}).items() if number}
    counts = (f"{name} {output.count(number, 'time')}" for name, number in reported.items())
    return f"{rests_on}; reported since: {', '.join(counts)}" if reported else rests_on


def _fact_lines(styler: Styler, facts: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield two lines for each fact: what fails and why; what works, and why a session is not told at its start."""
    several = len({fact["project"] for fact in facts}) > 1
    for fact in facts:
        project = f"  [{escape(fact['project'])}]" if several else ""
        yield f"{escape(fact['subject'])}  {styler.paint('dim', escape(fact['error'].splitlines()[0]) + project)}"
        support = _support(fact)
        if reason := fact.get("not_at_start"):
            support += f"; not told at a start: {escape(reason)}"
        answer = "no answer is known" if fact["answer"] is None else f"-> {escape(fact['answer'])}"
        yield f"  {answer}  {styler.paint('dim', support)}"
