"""Which fact answers for a job: what to run here for the tests, the build or whatever else failed and then worked.

`get_hint` and `query` answer with it where nobody set a hint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nudge.core import limits
from nudge.core.text import quote_command
from nudge.learning.availability import names_clone
from nudge.learning.command import CUT_OFF
from nudge.learning.cure import DIRECTORY, FLAG, STEP, VARIABLE
from nudge.learning.fact import INVOCATIONS, FailingCommands, is_usable, job_of_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nudge.learning.fact import Fact

_DO_THE_JOB = (*INVOCATIONS, VARIABLE, FLAG, DIRECTORY)
"""Kinds of facts whose answer does the job that failed. A step only prepares it, and a path is no command."""
_NOT_HERE = "the answer does not run here, or what failed works here now"
_CONTRADICTED = "a later fact says that it fails"
_REFUTED = "it failed as often as it worked"


@dataclass(frozen=True, slots=True)
class JobAnswer:
    job: str
    command: str
    """A span of a line that ran."""
    fact: Fact
    """A copy, which does not change."""
    refusal: str = ""
    """Why it is not the answer here; empty for the answer."""

    @property
    def is_step(self) -> bool:
        """Whether the command prepares the job, and does not do it."""
        return self.fact.cure.kind == STEP


def answers_for_jobs(
    facts: Sequence[Fact],
    cwd: str | None,
    branch: str | None,
    now: float,
    is_banned: Callable[[Fact], bool],
    as_usual: Callable[[Fact], Fact] = lambda fact: fact,
) -> list[JobAnswer]:
    """Return what was learned for each job: the answer first, if there is one, then what is better supported and does
    not count here, with the reason, and the steps that helped. Among several the one that worked most often is the
    answer, then the latest.
    `as_usual` returns a fact with the invocation that most sessions run."""
    candidates = [replace(fact, support=dict(fact.support)) for fact in facts if _does_a_job(fact)]
    candidates.sort(key=lambda fact: (fact.successes - fact.failures, fact.timestamp), reverse=True)
    failing, answers, answered = FailingCommands(candidates), [], set()
    for fact in candidates:
        if (job := job_of_answer(fact)) in answered:
            continue
        usual = as_usual(fact)
        refusal = _refusal(usual, failing, cwd, branch, now, is_banned)
        answers.append(JobAnswer(job, usual.answer.removesuffix(CUT_OFF), fact, refusal))
        if not refusal:
            answered.add(job)
    return [*sorted(answers, key=lambda answer: bool(answer.refusal)), *_steps(facts, branch, is_banned)]


def _steps(facts: Sequence[Fact], branch: str | None, is_banned: Callable[[Fact], bool]) -> Iterator[JobAnswer]:
    """Yield what helped when it ran before a job that failed: that is no answer, but worth knowing where there is
    none."""
    for fact in facts:
        if fact.cure.kind != STEP or not fact.cure.job or not fact.is_confirmed:
            continue
        if (shown := quote_command(fact.answer)) and fact.is_of_branch(branch) and not is_banned(fact):
            command = fact.answer.removesuffix(CUT_OFF)
            copy = replace(fact, support=dict(fact.support))
            yield JobAnswer(fact.cure.job, command, copy, f"what helped runs before it: {shown}")


def _does_a_job(fact: Fact) -> bool:
    is_told_whole = len(fact.answer) <= limits.MAX_TOLD_COMMAND and bool(quote_command(fact.answer))
    return fact.cure.kind in _DO_THE_JOB and bool(fact.cure.sessions) and is_told_whole and bool(job_of_answer(fact))


def _refusal(
    fact: Fact,
    failing: FailingCommands,
    cwd: str | None,
    branch: str | None,
    now: float,
    is_banned: Callable[[Fact], bool],
) -> str:
    if is_banned(fact):
        return f"it is never told here; to lift that: nudge told --allow '{fact.name}'"
    if not fact.is_confirmed:
        return f"needs {fact.cure.sessions} sessions"
    if fact.failures >= fact.successes:
        return _REFUTED
    if not fact.is_of_branch(branch):
        return f"known only from the branch {fact.latest.branch}"
    if not is_usable(fact, cwd, now) or (cwd is None and names_clone(fact.answer)):
        return _NOT_HERE
    is_contradicted = any(other.timestamp >= fact.timestamp for other in failing.contradicting(fact.answer))
    return _CONTRADICTED if is_contradicted else ""
