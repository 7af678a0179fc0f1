"""The verb `trust`: look at the hints of the repo's file, and decide about each. Only a person at a terminal is asked,
and no operation of the server does it for a command."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from nudge.cli import output
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, EXIT_REFUSED, Console, Styler, Usage
from nudge.cli.params import option
from nudge.cli.plain import Invocation
from nudge.cli.verbs import HINTS
from nudge.core import paths
from nudge.core.context import working_directory
from nudge.core.errors import Invalid, NotFound, Unauthorized
from nudge.core.text import escape
from nudge.repofile import FILE
from nudge.repofile import clone as clones
from nudge.repofile.clone import Clone
from nudge.repofile.review import WAITING, Review, ReviewedHint, review
from nudge.repofile.trust import DENIED, TRUSTED, Decision, TrustStore

if TYPE_CHECKING:
    from nudge.repofile.terminal import Terminal

_YES, _NO, _QUIT, _ALL = ("y", "yes"), ("n", "no"), ("q", "quit"), ("all",)
_MARKS = {"+": "green", "-": "red"}


@verb(
    "trust",
    "nudge trust",
    "nudge trust --list",
    "nudge trust --deny",
    "nudge trust --revoke api/test",
    group=HINTS,
    summary="look at the hints in the repo's .nudge.toml, and trust them",
)
@click.argument(
    "names", metavar="[NAME]...", nargs=-1, help="Only these hints (default: all that nobody decided about)."
)
@option("--deny", is_flag=True, help="Deny them: status no longer counts them as waiting.")
@option("--revoke", is_flag=True, help="Forget what was decided in this clone.")
@option("--everywhere", is_flag=True, help="With --revoke: in all clones.")
@option("--list", "list_all", is_flag=True, help="List what was decided, in all clones.")
def trust(
    invocation: Invocation, names: tuple[str, ...], deny: bool, revoke: bool, everywhere: bool, list_all: bool
) -> int:
    """Shows each hint as a diff against what was trusted before, and asks. Nobody is told a hint before. It needs a
    person at a terminal: an agent, a pipe and a script are refused. A hint that changes is asked about again."""
    if deny + revoke + list_all > 1:
        raise Usage("--deny, --revoke and --list exclude each other", "leave the others out")
    if everywhere and (not revoke or names):
        raise Usage("--everywhere goes with --revoke alone", "try: nudge trust --revoke --everywhere")
    store = TrustStore(paths.runtime_dir())
    if list_all:
        return _list(invocation.console, store)
    if revoke:
        return _revoke(invocation.console, store, None if everywhere else this_clone(), names)
    reviewed = _review(store)
    if deny:
        return _deny(invocation.console, store, reviewed, names)
    return _ask(invocation.console, store, reviewed, names)


def this_clone() -> Clone:
    here = working_directory()
    clone = clones.find_clone(here)
    if clone is None:
        raise NotFound(
            "this is no clone whose file counts: it is in no git work tree, or in a submodule or a clone inside another"
        )
    return clone


def _review(store: TrustStore) -> Review:
    clone = this_clone()
    document, _ = clones.read_now(clone)
    if document is None:
        raise NotFound(f"there is no {FILE} at the top of this clone ({clone.root})")
    if document.problems:
        lines = "; ".join(map(str, document.problems))
        raise Invalid(f"{FILE} is refused, and nothing in it is told: {lines}")
    return review(clone, document, store.of(clone.repo, clone.git_dir))


def _chosen(reviewed: Review, names: Sequence[str], states: Sequence[str]) -> list[ReviewedHint]:
    """The hints with these names, else all in these states."""
    unknown = set(names) - {one.hint.name for one in reviewed.hints}
    if unknown:
        raise NotFound(f"{FILE} has no hint {min(unknown)}")
    return [one for one in reviewed.hints if (one.hint.name in names if names else one.state in states)]


# Trust


def _ask(console: Console, store: TrustStore, reviewed: Review, names: Sequence[str]) -> int:
    from nudge.repofile import person
    from nudge.repofile.terminal import Terminal

    chosen = [one for one in _chosen(reviewed, names, (WAITING,)) if one.state != TRUSTED]
    if reason := person.why_nobody():
        advice = "run it in a terminal of your own, or click on the page (nudge open)"
        raise Unauthorized(f"only a person may trust a hint, at a terminal: {reason}; {advice}")
    if console.as_json:
        raise Usage("--json cannot ask, and only an answer is trust", "leave it out")
    if not chosen:
        console.show([console.styler.done("every hint of the file is decided about"), *_counts(reviewed)])
        return EXIT_OK
    console.show(_shown(console.styler, reviewed, chosen))
    with Terminal() as terminal:
        decided = _decide(terminal, chosen, lambda one, state: _record(store, reviewed.clone, one, state))
    if not decided:
        console.note("nothing was changed")
        return EXIT_REFUSED
    console.show([console.styler.done(_summary(decided))])
    _note_change(console, reviewed)
    return EXIT_OK


def _record(store: TrustStore, clone: Clone, one: ReviewedHint, state: str) -> Decision:
    """Store the decision about what was shown, whatever the file says by now."""
    decision = one.decided(clone, state, time.time())
    store.record([decision])
    return decision


def _decide(
    terminal: Terminal, chosen: Sequence[ReviewedHint], record: Callable[[ReviewedHint, str], Decision]
) -> list[Decision]:
    """Ask about one after the other. Enter decides nothing; all that are left are trusted only by the word for it."""
    decided: list[Decision] = []
    for number, one in enumerate(chosen):
        left = len(chosen) - number
        answer = terminal.ask(_question(one, left), (*_YES, *_NO, *_QUIT, *(_ALL if left > 1 else ()), ""))
        if answer in _ALL:
            return [*decided, *(record(other, TRUSTED) for other in chosen[number:])]
        if answer in _YES:
            decided.append(record(one, TRUSTED))
        elif answer in _NO:
            decided.append(record(one, DENIED))
        elif answer in _QUIT:
            break
    return decided


def _question(one: ReviewedHint, left: int) -> str:
    every = f", all: trust these {left}" if left > 1 else ""
    return f"Trust {escape(one.hint.name)}? [y: trust, n: deny{every}, q: stop, Enter: not now]"


def _shown(styler: Styler, reviewed: Review, chosen: Sequence[ReviewedHint]) -> Iterator[str]:
    clone = reviewed.clone
    yield f"{styler.paint('bold', escape(clone.file))} of {escape(clone.repo)}"
    yield f"branch {escape(clone.branch or 'unknown')}; trust is for all work trees of {escape(clone.git_dir)}"
    for one in chosen:
        yield ""
        was = "changed since it was trusted" if one.before is not None else "new"
        denied = "; denied before" if one.state == DENIED else ""
        yield styler.paint("bold", f"{escape(one.hint.name)} ({was}{denied}, line {one.hint.line})")
        for line in one.diff():
            yield styler.paint(_MARKS.get(line[0], "dim"), f"  {escape(line)}")
        if one.hint.evidence and not one.evidence:
            yield f"  {escape(one.hint.evidence)} is not here"
    if reviewed.gone:
        names = ", ".join(sorted({hint.name for hint in reviewed.gone}))
        yield ""
        yield f"no longer in the file, and no longer told: {escape(names)}"
    yield ""


def _summary(decided: Sequence[Decision]) -> str:
    trusted = sum(one.state == TRUSTED for one in decided)
    parts = [f"{verb} {output.count(number, 'hint')}" for verb, number in _numbers(trusted, len(decided)) if number]
    return ", ".join(parts)


def _numbers(trusted: int, total: int) -> Sequence[tuple[str, int]]:
    return ("trusted", trusted), ("denied", total - trusted)


def _note_change(console: Console, reviewed: Review) -> None:
    """Say so when the file is another one by now. What was not shown is not trusted in any case."""
    document, _ = clones.read_now(reviewed.clone)
    if document is None or [one.hint for one in reviewed.hints] != list(document.hints):
        console.note(f"{FILE} changed while you looked; only what you saw is trusted; look again with: nudge trust")


def _counts(reviewed: Review) -> Iterator[str]:
    for state in (TRUSTED, DENIED):
        if found := reviewed.in_state(state):
            yield f"  {state}: {escape(', '.join(one.hint.name for one in found))}"


# Deny, revoke, list


def _deny(console: Console, store: TrustStore, reviewed: Review, names: Sequence[str]) -> int:
    chosen = _chosen(reviewed, names, (WAITING,))
    now = time.time()
    store.record([one.decided(reviewed.clone, DENIED, now) for one in chosen])
    console.result({"denied": len(chosen)}, [console.styler.done(f"denied {output.count(len(chosen), 'hint')}")])
    return EXIT_OK


def _revoke(console: Console, store: TrustStore, clone: Clone | None, names: Sequence[str]) -> int:
    def is_revoked(one: Decision) -> bool:
        return clone is None or (one.is_of(clone.repo, clone.git_dir) and (not names or one.name in names))

    if not any(map(is_revoked, store.all())):
        raise NotFound("nothing like that was decided; see: nudge trust --list")
    number = store.remove(is_revoked)
    console.result({"revoked": number}, [console.styler.done(f"forgot {output.count(number, 'decision')}")])
    return EXIT_OK


def _list(console: Console, store: TrustStore) -> int:
    decisions = store.all()
    rows = [
        {
            "state": one.state,
            "name": one.name,
            "repo": one.repo,
            "clone": one.git_dir,
            "at": int(one.at),
            **({"hint": one.hint} if one.state == TRUSTED else {}),
        }
        for one in decisions
    ]
    cells = [
        tuple(map(escape, (one.state, one.name, time.strftime("%Y-%m-%d", time.gmtime(one.at)), one.repo, one.git_dir)))
        for one in decisions
    ]
    console.result({"decisions": rows}, map("  ".join, output.align(cells)))
    if not rows and not console.as_json:
        console.note("nothing was decided yet")
    return EXIT_OK


# What `nudge status` says


def status_here() -> dict[str, Any] | None:
    """How many hints of the file here are trusted, waiting and denied, or what is wrong with it; None without a file.
    Nothing of what it says: nobody may have looked at it yet."""
    clone = clones.find_clone(working_directory())
    document = None if clone is None else clones.read_now(clone)[0]
    if clone is None or document is None:
        return None
    answer: dict[str, Any] = {"path": clone.file}
    if document.problems:
        return {**answer, "problems": [str(problem) for problem in document.problems]}
    reviewed = review(clone, document, TrustStore(paths.runtime_dir(os.environ)).of(clone.repo, clone.git_dir))
    return {**answer, **{state: len(reviewed.in_state(state)) for state in (TRUSTED, WAITING, DENIED)}}


def status_text(answer: dict[str, Any]) -> str:
    if problems := answer.get("problems"):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return f"{FILE} is refused: {escape(problems[0])}{more}"
    counts = ", ".join(f"{answer[state]} {state}" for state in (TRUSTED, WAITING, DENIED) if answer[state])
    advice = "; look at what is waiting, which nobody is told: nudge trust" if answer[WAITING] else ""
    return f"{FILE}: {counts or 'no hints'}{advice}"
