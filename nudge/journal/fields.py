"""The fields of an attempt that an agent writes, in two tables, of its plan and of its end: what each may hold, and how
schemas offer it. Checks, models, schemas and options are made from them.

A new field is a row in `FIELDS` and an attribute of `nudge.journal.attempts.Plan`, or a row in `RESOLUTION` and an
attribute of `Resolution`.
"""

from __future__ import annotations

from nudge.core import limits
from nudge.notes.fields import Field, Form

DOMAINS = ("debugging", "refactoring", "feature", "optimization", "testing", "documentation", "other")
STRATEGIES = (
    *("systematic-elimination", "trial-and-error", "research-first", "divide-and-conquer", "root-cause-analysis"),
    *("copy-from-similar", "check-assumptions", "read-the-error", "ask-user"),
)
CONFIRMED, FALSIFIED, ABANDONED = "confirmed", "falsified", "abandoned"
OUTCOMES = (CONFIRMED, FALSIFIED, ABANDONED)
OPEN_STATUS = "open"
ROOT_CAUSES = ("incomplete_information", "wrong_assumption", "unexpected_behavior", "environment_issue", "other")

_TEXT = limits.MAX_ATTEMPT_TEXT_BYTES

FIELDS = (
    Field("goal", Form.TEXT, limits.MAX_TITLE_BYTES, is_required=True, is_changeable=False),  # the title of the note
    Field("hypothesis", Form.TEXT, _TEXT, help="What you believe", metavar="TEXT"),
    Field("action", Form.TEXT, _TEXT, help="What you do to test it", metavar="TEXT"),
    Field(
        "prediction",
        Form.TEXT,
        _TEXT,
        is_required=True,
        about="observable: a command and how it ends",
        help="What you will see if you are right, such as a command that passes",
        metavar="TEXT",
        options=("--predict", "--prediction"),
    ),
    Field(
        "domain",
        Form.CHOICE,
        accepted=DOMAINS,
        offered=DOMAINS,
        is_changeable=False,
        help="Kind of work",
        default=DOMAINS[-1],
    ),
    Field(
        "strategy",
        Form.CHOICE,
        accepted=STRATEGIES,
        about_change=f"{', '.join(STRATEGIES[:-1])} or {STRATEGIES[-1]}",
        help="How you proceed, such as read-the-error or root-cause-analysis",
        metavar="NAME",
    ),
    Field("confidence", Form.FRACTION, about="0 to 1", help="How sure you are, 0.0 to 1.0", metavar="X"),
)
RESOLUTION = (
    Field(
        "status",
        Form.CHOICE,
        accepted=OUTCOMES,
        offered=OUTCOMES,
        is_required=True,
        help="Whether the prediction came true",
        options=("--outcome",),
    ),
    Field("result", Form.TEXT, limits.MAX_RESULT_BYTES, help="What happened", metavar="TEXT"),
    Field(
        "lesson",
        Form.PARTS,
        parts=(Field("what_worked", Form.TEXT, _TEXT), Field("takeaway", Form.TEXT, _TEXT)),
        about="{what_worked, takeaway}, for the next agent",
        help="What the next agent should know; it becomes a note. - reads it from stdin",
        metavar="TEXT",
    ),
    Field("surprise", Form.TEXT, limits.MAX_RESULT_BYTES, help="What was unexpected", metavar="TEXT"),
    Field(
        "root_cause",
        Form.PARTS,
        parts=(
            Field("category", Form.CHOICE, accepted=ROOT_CAUSES, offered=ROOT_CAUSES),
            Field("description", Form.TEXT, _TEXT, is_required=True),
        ),
        help="Why the hypothesis was wrong",
        metavar="TEXT",
    ),
)
BY_NAME = {one.name: one for one in FIELDS}
OPTIONAL_TEXTS = tuple(one.name for one in FIELDS if one.form is Form.TEXT and not one.is_required)
TEXTS = tuple(one.name for one in FIELDS if one.form is Form.TEXT and one.is_changeable)
