"""The hints of a clone's file beside what was decided about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import ndiff

from nudge.repofile import evidence
from nudge.repofile.clone import Clone
from nudge.repofile.document import Document, Problem, RepoHint
from nudge.repofile.trust import TRUSTED, Decision

WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class ReviewedHint:
    """A hint of the file. `before` is what was trusted last in its place, if that was something else; `decision` the
    one about exactly this content."""

    hint: RepoHint
    decision: Decision | None
    before: RepoHint | None
    evidence: str
    """The digest of what it rests on, as it is now."""

    @property
    def state(self) -> str:
        return WAITING if self.decision is None else self.decision.state

    def decided(self, clone: Clone, state: str, now: float) -> Decision:
        hint = self.hint
        return Decision(clone.repo, clone.git_dir, state, hint.digest, now, hint.to_json(), self.evidence)

    def diff(self) -> Iterator[str]:
        """Yield the lines of the hint, each with a mark: `+` new, `-` no longer there, a blank for the same."""
        before = [] if self.before is None else self.before.toml_lines()
        for line in ndiff(before, self.hint.toml_lines()):
            if not line.startswith("?"):
                yield line


@dataclass(frozen=True, slots=True)
class Review:
    clone: Clone
    problems: Sequence[Problem]
    hints: Sequence[ReviewedHint]
    gone: Sequence[RepoHint]
    """Hints that were trusted and are not in the file now."""

    def in_state(self, state: str) -> list[ReviewedHint]:
        return [one for one in self.hints if one.state == state]


def review(clone: Clone, document: Document, decisions: Sequence[Decision]) -> Review:
    by_digest = {one.digest: one for one in decisions}
    latest = {one.variant: one for one in decisions if one.state == TRUSTED}
    in_file = {hint.variant for hint in document.hints}
    rows = []
    for hint in document.hints:
        before = latest.get(hint.variant)
        is_other = before is not None and before.digest != hint.digest
        shown = RepoHint.from_json(before.hint) if before is not None and is_other else None
        known = evidence.digest(clone.root, hint.evidence) if hint.evidence else ""
        rows.append(ReviewedHint(hint, by_digest.get(hint.digest), shown, known))
    gone = [RepoHint.from_json(one.hint) for variant, one in latest.items() if variant not in in_file]
    return Review(clone, document.problems, rows, gone)
