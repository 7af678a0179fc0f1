"""How the words of a note and its meaning are put together to one score.

Words: 0.7 of the score of the whole note, 0.3 of that of its best passage, each in relation to the best match. Meaning:
the cosine of the query and the closest piece of the note. It is neither a rank nor spread over a range: where a note
means clearly the same as the query, the vectors decide, and where none does, the words. A long note has many pieces, of
which one is close by chance; the closer the more there are. `make meaning` measures it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from nudge.meaning.store import SqlConnection

    class Closeness(Protocol):
        """How close the notes are to one question."""

        def of(self, ids: Iterable[int]) -> dict[int, float]:
            """Return the closeness of those of the notes that have vectors."""

        def nearest(self, most: int) -> list[int]:
            """Return at most so many notes that are close, the closest first."""

        def cosines(self) -> dict[int, float]:
            """Return the cosine of the closest piece of each note."""

        def agreements(self) -> dict[int, float]:
            """Return the mean cosine of the two closest pieces of each note."""

    class Question(Protocol):
        """A question whose vector is known."""

        @property
        def everyday(self) -> float:
            """How close it is to what is asked of any repository."""

        def reworded(self, text: str) -> Question:
            """The same question in other words."""

        def closeness(self, connection: SqlConnection) -> Closeness | None:
            """Compare it with the vectors that are stored; None when there are none."""


WHOLE, PASSAGE = 0.7, 0.3
VECTOR = 4.0
"""What a cosine weighs in relation to the words."""
CHANCE = 0.05
"""Times the square root of twice the logarithm of the number of pieces: how much closer one of many is by chance."""
LEAST = 0.08
"""How close a note must be to be found by its meaning alone."""
ALIKE = 0.6
"""The cosine of two notes that say nearly the same: one may repeat or contradict the other. Of 27 notes that replace
another one, three sets, MiniLM finds 63 of 100, a static model 22, and nothing else for 199 of 200 others."""
HINT = 0.4
"""The cosine of a question and a hint that is offered where no hint has its words."""
NEAR = 64
"""Notes that are looked at for their meaning alone."""


def text_score(whole: float, passage: float) -> float:
    """The score of a note's words, of the scores of the whole note and of its best passage in relation to the best."""
    return WHOLE * whole + PASSAGE * passage


def boosts(closeness: Mapping[int, float], matching: Collection[int]) -> dict[int, float]:
    """What its meaning adds to the score of each note, or takes away. Nothing is what the notes that have words of the
    query have on average: a note without a vector yet is then neither better nor worse than these."""
    known = [closeness[note_id] for note_id in matching if note_id in closeness]
    usual = sum(known) / len(known) if known else LEAST
    return {note_id: VECTOR * (value - usual) for note_id, value in closeness.items()}
