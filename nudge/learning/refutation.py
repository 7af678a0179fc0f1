"""Which facts an outcome refutes: what they call broken works, or their answer does not."""

from __future__ import annotations

import os
import re

from nudge.learning.comparison import is_misspelling
from nudge.learning.cure import DIRECTORY, FLAG, LAUNCHER, MISSING, PATH, RUNNER, STEP, VARIABLE
from nudge.learning.fact import INVOCATIONS, Fact, Key
from nudge.learning.failures import CHANCE, SURROUNDINGS, UNKNOWN, likeness
from nudge.learning.families import family_of
from nudge.learning.moved_paths import is_path
from nudge.learning.trail import OpenFailure, Trail, about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nudge.learning.cure import Cure
    from nudge.learning.failures import Failure
    from nudge.learning.index import FactIndex
    from nudge.learning.outcome import Call, Outcome

_SAME_ERROR = 0.7
_NO_PLACE = re.compile(
    r"(?i)\b(?:service|container|pod|machine|vm)\b[^\n]{0,40}\bnot running|no such (?:service|container)"
)
"""What a launcher says of the container or machine in which it starts programs; a program's own error says nothing
against its launcher."""


def refuted_facts(index: FactIndex, trail: Trail, outcome: Outcome) -> list[Fact]:
    """Return the facts of a project that an outcome of a session refutes."""
    failure = outcome.failure
    if outcome.succeeded:
        return _refuted_by_success(index, trail, outcome)
    if failure is None or failure.nature == CHANCE:
        return []
    facts = index.of_tools(outcome.calls)
    refuted = [fact for fact in facts if _fails_itself(fact, outcome, failure)]
    for entry in trail.open if not outcome.ran_tests else ():
        refuted += [fact for fact in facts if _did_not_help(fact, entry, outcome)]
    for entry, _ in trail.repeats(outcome):
        steps = {step.call.words: step.call for step in entry.steps}
        helpers = index.of_tools(steps.values())
        refuted += [fact for fact in helpers if fact.cure.kind == STEP and fact.cure.added in steps]
    return refuted


def _refuted_by_success(index: FactIndex, trail: Trail, outcome: Outcome) -> list[Fact]:
    """Those about what works again, unless another thing helped now; and those about a name that was a slip."""
    met = [entry.failure for entry in trail.open if not _is_mere_repetition(entry, outcome)]
    working = (fact for fact in index.of_tools(outcome.calls) if _works_again(fact, outcome, trail))
    refuted = [fact for fact in working if not any(likeness(fact.cure.failure, one) >= _SAME_ERROR for one in met)]
    return [*refuted, *filter(None, map(index.facts.get, _misspelled(trail.open, outcome)))]


def _is_mere_repetition(entry: OpenFailure, outcome: Outcome) -> bool:
    """Whether the call that failed works now as it was typed."""
    return any(
        one.words == call.words and one.variables == call.variables for one in outcome.calls for call in entry.calls
    )


def _works_again(fact: Fact, outcome: Outcome, trail: Trail) -> bool:
    """Whether a success shows that what the fact calls broken works without its answer."""
    cure = fact.cure
    if cure.kind == STEP:
        return False  # the surroundings may be as the step left them
    if cure.kind == PATH:
        is_there = not is_path(cure.subject) or _exists(cure.subject, outcome.cwd)
        return is_there and any(cure.subject in call.words for call in outcome.worked)
    if trail.is_activated and cure.family in ("tool", "module", "version"):
        return False  # in another environment
    return any(_is_plain_run(fact, call, trail, outcome) for call in outcome.worked)


def _misspelled(open_failures: list[OpenFailure], outcome: Outcome) -> Iterator[Key]:
    """The facts about programs that a session misspelled, as the one shows that it runs now."""
    for entry in open_failures:
        if entry.failure.family == "tool" and any(
            is_misspelling(entry.failure.detail, one.tool) for one in outcome.calls
        ):
            yield MISSING, entry.failure.detail, ""


def _is_plain_run(fact: Fact, call: Call, trail: Trail, outcome: Outcome) -> bool:
    """Whether a call is what the fact says fails, and not its answer."""
    cure, answer = fact.cure, fact.answer_words
    subject = tuple(cure.subject.removeprefix("./").split())
    if cure.kind in (LAUNCHER, RUNNER, MISSING):
        return call.words[: len(subject)] == subject and not (answer and call.words[: len(answer)] == answer)
    if call.tool != cure.tool or call.subcommand != cure.subcommand:
        return False
    if cure.kind == VARIABLE:
        names = {word.partition("=")[0] for word in cure.added}
        return names.isdisjoint(call.variables) and names.isdisjoint(trail.exported)
    if cure.kind == DIRECTORY:
        return outcome.place == cure.place and not call.directory
    return not set(cure.added) & set(call.words) and outcome.place == cure.place


def _fails_itself(fact: Fact, outcome: Outcome, failure: Failure) -> bool:
    """Whether a failure of surroundings shows that the answer does not work."""
    cure = fact.cure
    if not cure.answer or outcome.place != cure.place or failure.nature != SURROUNDINGS:
        return False
    is_alike = likeness(cure.failure, failure) >= _SAME_ERROR
    is_broken = is_alike or family_of(failure.family).is_breaking
    if cure.kind in (VARIABLE, FLAG):
        return is_alike and any(_has_added(cure, call) for call in about(outcome, failure))
    if cure.kind not in (*INVOCATIONS, STEP) or not is_broken:
        return False
    words = fact.answer_words
    return bool(words) and any(call.words[: len(words)] == words for call in about(outcome, failure))


def _has_added(cure: Cure, call: Call) -> bool:
    """Whether a call of the same program has the variables or the options that the cure adds."""
    has = {f"{name}={value}" for name, value in call.variables.items()} if cure.kind == VARIABLE else set(call.words)
    return call.tool == cure.tool and set(cure.added) <= has


def _did_not_help(fact: Fact, entry: OpenFailure, outcome: Outcome) -> bool:
    """Whether the answer was tried after the failure that it is for, and failed as well."""
    cure = fact.cure
    if cure.kind in (PATH, MISSING) or likeness(cure.failure, entry.failure) < _SAME_ERROR:
        return False
    if cure.kind not in (VARIABLE, FLAG):
        words = fact.answer_words
        failure = outcome.failure
        # Where the launcher starts a program is gone; once it is back, that is learned again.
        is_gone = cure.kind == LAUNCHER and failure is not None and _NO_PLACE.search(failure.line) is not None
        is_other = is_gone or (
            failure is not None and (failure.nature == UNKNOWN or family_of(failure.family).is_breaking)
        )
        return is_other and bool(words) and any(call.words[: len(words)] == words for call in outcome.calls)
    calls = [call for call in outcome.calls if call.tool == cure.tool]
    if cure.kind == FLAG:
        return any(set(cure.added) <= set(call.words) for call in calls)
    return any(set(cure.added) <= {f"{name}={value}" for name, value in call.variables.items()} for call in calls)


def _exists(path: str, cwd: str | None) -> bool:
    return cwd is not None and os.path.exists(os.path.join(cwd, path))
