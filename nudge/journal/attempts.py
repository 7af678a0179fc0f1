"""Attempts: an agent's hypothesis, what it did about it, what it predicted, and the outcome.

An attempt is a note of the kind `attempt`. Its goal is the title; everything else is in the metadata, and again as text
in the content, for recall. It is open while the metadata have a `session_id`, its owner, and no `outcome`. This module
has its rules, `fields` its fields; `store` stores attempts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.text import single_line
from nudge.journal.fields import (
    ABANDONED,
    DOMAINS,
    FALSIFIED,
    FIELDS,
    OPEN_STATUS,
    OPTIONAL_TEXTS,
    RESOLUTION,
    ROOT_CAUSES,
    TEXTS,
)
from nudge.notes.fields import (
    ATTEMPT,
    LONG,
    Draft,
    check_metadata,
    check_text,
    parse_changes,
    parse_time,
    rfc3339,
)
from nudge.notes.note import Note

GOLD, SILVER, BRONZE = "gold", "silver", "bronze"
LESSON = "lesson"
NOT_GIVEN = "not given"
"""What an answer says for a field of an attempt that has no value. It is not stored."""

RANKED_AS = {GOLD: 1.0, SILVER: 0.8, BRONZE: 0.5, ABANDONED: 0.3}
"""The confidence of the note, by tier: how much recall trusts it."""
_LABELS = {
    **{name: name.capitalize() for name in (*TEXTS, "result", "surprise")},
    "root_cause": "Root cause",
    LESSON: "Lesson",
}
_WORD = re.compile(r"\w+")
_HISTORY_ROOM = limits.MAX_METADATA_BYTES - limits.KIB
_LESSON_TITLE_CHARS = 120


@dataclass(frozen=True, slots=True)
class Plan:
    """The validated fields of an attempt that is to be started. `confidence` is how sure the agent is, from 0 to 1."""

    goal: str
    prediction: str
    hypothesis: str | None = None
    action: str | None = None
    domain: str = DOMAINS[-1]
    strategy: str | None = None
    confidence: float | None = None

    def to_metadata(self) -> dict[str, Any]:
        """All but the goal, which is the title."""
        return without_none(**{one.name: getattr(self, one.name) for one in FIELDS if one.name != "goal"})


@dataclass(frozen=True, slots=True)
class Resolution:
    """How an attempt ended. `is_captured`: whether the outcome was observed rather than reported."""

    status: str
    result: str | None = None
    surprise: str | None = None
    root_cause: Mapping[str, str] | None = None
    lesson: Mapping[str, str] | None = None
    is_captured: bool = False

    def to_metadata(self) -> dict[str, Any]:
        reported = {one.name: getattr(self, one.name) for one in RESOLUTION if one.name != "status"}
        return without_none(outcome=self.status, **reported, captured=True if self.is_captured else None)


@dataclass(frozen=True, slots=True)
class ObservedOutcome:
    """What the exit code of a command says about an attempt, and whether its agent was told. The command is only named
    by the id of its observation, so that a purge of the observation leaves no copy of it."""

    status: str
    observation: int
    exit_code: int
    is_told: bool

    def to_metadata(self, at: str | None) -> dict[str, Any]:
        facts = {"outcome": self.status, "observation": self.observation, "exit_code": self.exit_code, "at": at}
        return {**facts, "told": True} if self.is_told else facts


@dataclass(frozen=True, slots=True)
class Attempt:
    """A note of the kind `attempt`, with the fields of the journal."""

    note: Note

    @property
    def id(self) -> int:
        return self.note.id

    @property
    def session(self) -> str:
        return str(self.note.draft.metadata.get("session_id") or "")

    @property
    def status(self) -> str:
        return str(self.note.draft.metadata.get("outcome") or OPEN_STATUS)

    @property
    def is_open(self) -> bool:
        return self.status == OPEN_STATUS

    @property
    def hypothesis(self) -> str:
        """Empty when none was given."""
        return str(self.note.draft.metadata.get("hypothesis") or "")

    @property
    def prediction(self) -> str:
        return str(self.note.draft.metadata.get("prediction") or "")

    @property
    def observed(self) -> str | None:
        """The outcome that a command showed, which the agent need not have confirmed."""
        observed = self.note.draft.metadata.get("observed")
        return str(observed.get("outcome")) if isinstance(observed, Mapping) else None

    def was_told(self, observed: ObservedOutcome) -> bool:
        """Whether the agent was told this outcome before."""
        before = self.note.draft.metadata.get("observed")
        return self.observed == observed.status and bool(before and before.get("told"))

    @property
    def awaits_lesson(self) -> bool:
        """Whether an exit code resolved it, and it has no lesson yet."""
        return bool(self.note.draft.metadata.get("captured")) and LESSON not in self.note.draft.metadata

    @property
    def adopted_at(self) -> str | None:
        """When its owner took it over from another session."""
        adoptions = [one for one in self.note.draft.metadata.get("iterations", ()) if "adopted_by" in one]
        return str(adoptions[-1]["at"]) if adoptions else None

    @property
    def last_update(self) -> float:
        """When an agent started, updated or adopted it last. An outcome that a command showed is no update."""
        iterations = self.note.draft.metadata.get("iterations")
        return parse_time(iterations[-1]["at"], "at") if iterations else self.note.created_at

    def to_json(self) -> dict[str, Any]:
        """All its fields, without the older iterations and without fields that have no value, except the hypothesis and
        the action, of which it says that they were not given."""
        metadata = {name: value for name, value in self.note.draft.metadata.items() if name != "outcome"}
        if "iterations" in metadata:
            metadata["iterations"] = metadata["iterations"][-limits.ITERATIONS_SHOWN :]
        return {**self.to_summary(), **dict.fromkeys(OPTIONAL_TEXTS, NOT_GIVEN), **metadata}

    def to_summary(self) -> dict[str, Any]:
        """Its fields in a list."""
        metadata = self.note.draft.metadata
        return {
            "id": self.note.id,
            "status": self.status,
            **without_none(
                session_id=metadata.get("session_id"),
                domain=metadata.get("domain"),
                confidence_tier=metadata.get("confidence_tier"),
            ),
            "namespace": self.note.draft.namespace,
            "goal": self.note.draft.title,
            "created_at": rfc3339(self.note.created_at),
            "updated_at": rfc3339(self.note.updated_at),
        }


# Validation


def parse_plan(fields: Mapping[str, Any]) -> Plan:
    """Validate the fields of a new attempt. The goal and the prediction are enough."""
    given = (one for one in FIELDS if one.is_required or fields.get(one.name) is not None)
    return Plan(**{one.name: one.check(fields.get(one.name)) for one in given})


def parse_update(fields: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Validate what an update names: the fields that change, and its note."""
    changes = parse_changes(fields, now=0.0, table=FIELDS)
    note = fields.get("note")
    note = None if note is None else check_text(note, "note", limits.MAX_ATTEMPT_TEXT_BYTES)
    if not changes and note is None:
        raise Invalid("name what changed: hypothesis, action, prediction, strategy, confidence or note")
    return changes, note


def parse_resolution(fields: Mapping[str, Any]) -> Resolution:
    given = (one for one in RESOLUTION if one.is_required or fields.get(one.name) is not None)
    values = {one.name: one.check(fields.get(one.name)) for one in given}
    if "root_cause" in values:
        values["root_cause"] = {"category": ROOT_CAUSES[-1], **values["root_cause"]}
    return Resolution(**values)


def without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# As notes


def plan_draft(plan: Plan, draft: Draft) -> Draft:
    """The note of an attempt that is about to start."""
    metadata = plan.to_metadata()
    return replace(draft, title=plan.goal, content=content_of(metadata), kind=ATTEMPT, tier=LONG, metadata=metadata)


def lesson_draft(attempt: Attempt, resolution: Resolution) -> Draft:
    """The note of a lesson, for the next agent: the takeaway, and the attempt that taught it."""
    draft, lesson = attempt.note.draft, resolution.lesson or {}
    first = lesson.get("takeaway") or lesson["what_worked"]
    worked = [f"(what worked: {lesson['what_worked']})"] if {"takeaway", "what_worked"} <= lesson.keys() else []
    learned = f"(from attempt m{attempt.id}, {resolution.status}: {draft.title})"
    return replace(
        draft,
        title=cut_title(single_line(first, _LESSON_TITLE_CHARS), limits.MAX_TITLE_BYTES),
        content="\n".join([first, *worked, learned]),
        kind=LESSON,
        tier=LONG,
        tags=(str(draft.metadata.get("domain") or DOMAINS[-1]),),
        confidence=1.0,
        metadata={"attempt": attempt.id, "outcome": resolution.status},
    )


def content_of(metadata: Mapping[str, Any]) -> str:
    """The attempt as text, for recall and search."""
    lines = []
    for name, label in _LABELS.items():
        value = metadata.get(name)
        if isinstance(value, Mapping):
            category = f" ({value['category']})" if "category" in value else ""
            label += category
            value = " ".join(str(text) for part, text in value.items() if part != "category")
        if value:
            lines.append(f"{label}: {value}")
    return "\n".join(lines)


def tier_of(metadata: Mapping[str, Any], resolution: Resolution) -> str:
    """Gold: the outcome was observed. Silver: it was reported. Bronze: it was reported for an attempt that teaches
    little, since its prediction only repeats its hypothesis, or the cause of its failure is unknown."""
    if resolution.status == ABANDONED:
        return ABANDONED
    if resolution.is_captured:
        return GOLD
    repeats = _words(metadata.get("prediction")) <= _words(metadata.get("hypothesis"))
    is_unexplained = resolution.status == FALSIFIED and not (resolution.root_cause or resolution.surprise)
    return BRONZE if repeats or is_unexplained else SILVER


def _words(text: object) -> set[str]:
    return set(_WORD.findall(str(text or "").casefold()))


def fitting_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Drop the oldest iterations until the metadata fits into a note."""
    iterations = list(metadata.get("iterations", ()))
    while iterations and len(json.dumps(metadata, ensure_ascii=False).encode()) > _HISTORY_ROOM:
        del iterations[0]
        metadata = {**metadata, "iterations": iterations}
    return check_metadata(metadata)


def cut_title(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")
