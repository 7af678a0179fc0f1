"""The notes that a prompt is about, as a hook tells them: mostly none, and never one that another has replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nudge.core import limits
from nudge.core.branches import holds_on
from nudge.core.clock import ago
from nudge.core.note_files import given_files
from nudge.core.text import quote, quote_name, quote_titled
from nudge.core.words import content_words, split_words, stem
from nudge.journal.attempts import LESSON
from nudge.journal.fields import DOMAINS
from nudge.notes import ranking
from nudge.notes.fields import ATTEMPT, GLOBAL
from nudge.notes.note import Note
from nudge.notes.store import NoteFilter, SqlConnection, find_ids, find_winners, get_many
from nudge.telling.closest import LEAST, Signs, is_meant, without_words_of
from nudge.telling.ledger import HEADER, Line
from nudge.telling.prompt import Part, Text, is_chore, parse_prompt, relevance, search_words, without_paths
from nudge.telling.use import IDENTITY
from nudge.telling.wording import short_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.meaning.fusion import Question

TOLD_KINDS = ("decision", "lesson", ATTEMPT, "note", "bugfix", "feature", "refactor", "discovery", "change")
_SETTLED_KINDS = frozenset(("decision", LESSON, ATTEMPT, "bugfix", "discovery"))
_RECALLED = 12  # best notes by their words, of which a prompt may be about some
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_FOLLOWING = 0.9  # of the best note's score: what a note must have to be told after it


@dataclass(frozen=True, slots=True)
class RelevantNote:
    """A note that a prompt is about; `words` are those of the prompt that it has, or that the note which it supersedes
    has."""

    note: Note
    score: float
    words: tuple[str, ...]
    supersedes: Note | None = None


def lines_about(
    connection: SqlConnection, prompt: str, namespace: str | None, branch: str | None, now: float
) -> list[Line]:
    """The few notes that a prompt is about, of the namespace and global ones. Of attempts, only those that were
    resolved. `branch` is where the session is."""
    relevant = _without_attempts_of_lessons(relevant_notes(connection, prompt, _told_here(namespace), branch, now))
    best = [one for one in relevant if one.score >= _FOLLOWING * relevant[0].score][: limits.PROMPT_LINES]
    return [
        note_line(one, now, namespace, limits.INJECTED_NOTE_CHARS if at else limits.PROMPT_NOTE_CHARS)
        for at, one in enumerate(best)
    ]


def as_whole_as_fits(lines_of: Callable[[int], list[Line]]) -> list[Line]:
    """The lines with as much of each note as leaves room for all; `lines_of` makes them with at most so many characters
    of a note."""
    sizes = (limits.PROMPT_NOTE_CHARS, 2 * limits.INJECTED_NOTE_CHARS, limits.INJECTED_NOTE_CHARS)
    return next(
        (lines for lines in map(lines_of, sizes) if len(fitting_lines(lines)) == len(lines)), lines_of(sizes[-1])
    )


def lines_by_meaning(
    connection: SqlConnection,
    prompt: str,
    namespace: str | None,
    branch: str | None,
    now: float,
    question: Question,
    least: float = LEAST,
) -> list[Line]:
    """The one note that a prompt means although no word says so; mostly none. For a prompt without `lines_about`, and
    `question` is the prompt without its paths."""
    closeness = question.closeness(connection)
    if closeness is None or not content_words(prompt) or is_chore(prompt):
        return []
    close = closeness.agreements()
    told = {one: close[one] for one in find_ids(connection, _told_here(namespace), now) if one in close}
    notes = _closest(connection, told, branch, prompt, now)
    if not notes:
        return []
    note, values = notes[0], [told[one.id] for one in notes]
    signs = Signs(values[0], values[min(1, len(values) - 1)], values[0], question.everyday)
    # What has to be embedded for it is embedded only where it decides.
    if not is_meant(signs, least) or not is_meant(_without_shared(connection, signs, prompt, note, question), least):
        return []
    reason = f"the prompt says nearly the same in other words (cosine {signs.closest:.2f})"
    return as_whole_as_fits(lambda most: [note_text_line(note, now, namespace, most, reason)])


def _without_shared(connection: SqlConnection, signs: Signs, prompt: str, note: Note, question: Question) -> Signs:
    left = without_words_of(without_paths(prompt), f"{note.draft.title}\n{note.draft.content}")
    closeness = question.reworded(left).closeness(connection)
    alone = 0.0 if closeness is None else closeness.agreements().get(note.id, 0.0)
    return replace(signs, without_shared=alone)


def _told_here(namespace: str | None) -> NoteFilter:
    names = tuple(dict.fromkeys((namespace or GLOBAL, GLOBAL)))
    return NoteFilter(namespaces=names, kinds=TOLD_KINDS, without_open_attempts=True)


def _closest(
    connection: SqlConnection, close: Mapping[int, float], branch: str | None, prompt: str, now: float
) -> list[Note]:
    """The closest notes that hold here, and that no other has replaced."""
    nearest = sorted(close, key=lambda note_id: -close[note_id])[:_RECALLED]
    notes, losers = get_many(connection, nearest, now), find_winners(connection, nearest, now)
    held = (notes[note_id] for note_id in nearest if note_id in notes and note_id not in losers)
    return [note for note in held if note.damage is None and is_of_branch(note, branch, prompt)]


def fitting_lines(lines: Sequence[Line]) -> list[Line]:
    """The lines that fit into the answer to a hook. A line is never cut."""
    fitting: list[Line] = []
    size = len(HEADER)
    for line in lines[: limits.PROMPT_LINES]:
        size += len(line.text) + 1
        if size <= limits.PROMPT_CHARS:
            fitting.append(line)
    return fitting


def relevant_notes(
    connection: SqlConnection, prompt: str, where: NoteFilter, branch: str | None, now: float
) -> list[RelevantNote]:
    """The notes that a prompt, or a sentence of it, is about, best first. A note that was resolved in favor of another
    is not among them: the other one takes its place, since the prompt may be about to repeat it. Nor is one that was
    made on a branch of its own, unless the session is there or the prompt names the branch."""
    parts = parse_prompt(prompt)
    words = search_words(parts, prompt)
    if not words:
        return []
    found = [match.note for match in _readable(ranking.recall(connection, words, where, _RECALLED, now))]
    best = {one.note.id: one for one in _about(parts, found, prompt) if is_of_branch(one.note, branch, prompt)}
    return sorted(
        _without_losers(connection, best, where, now), key=lambda candidate: (-candidate.score, -candidate.note.id)
    )


def best_notes(
    connection: SqlConnection, text: str, where: NoteFilter, limit: int, now: float, question: Question | None = None
) -> list[RelevantNote]:
    """The notes that recall finds for the text of a question, in its order. A note that was resolved in favor of
    another is replaced by that one."""
    if not content_words(text):
        return []
    matches = _readable(ranking.recall(connection, text, where, limit, now, question))
    words = ranking.matched_words(connection, text, [match.note for match in matches])
    found = {
        match.note.id: RelevantNote(match.note, match.score.total, tuple(words[match.note.id])) for match in matches
    }
    return sorted(_without_losers(connection, found, where, now), key=lambda candidate: -candidate.score)


def _readable(matches: Iterable[ranking.Match]) -> list[ranking.Match]:
    """Those whose rows are not damaged: what a list shows as damaged says nothing to rely on."""
    return [match for match in matches if match.note.damage is None]


def _without_losers(
    connection: SqlConnection, found: dict[int, RelevantNote], where: NoteFilter, now: float
) -> list[RelevantNote]:
    """The notes, without those that were resolved in favor of another one, which takes their place."""
    for note_id, winner in find_winners(connection, found, now).items():
        loser = found.pop(note_id)
        if winner is not None and (where.namespaces is None or winner.draft.namespace in where.namespaces):
            found.setdefault(winner.id, replace(loser, note=winner, supersedes=loser.note))
    return list(found.values())


def _about(parts: Sequence[Part], notes: Iterable[Note], prompt: str) -> Iterable[RelevantNote]:
    spelled = {stem(word): word for word in split_words(prompt)}
    for note in notes:
        draft = note.draft
        is_record = draft.kind not in _SETTLED_KINDS
        text = Text(draft.title, draft.content, given_files(draft.metadata), is_record)
        if found := relevance(parts, text):
            shared = *(spelled.get(word, word) for word in found.words), *sorted(found.names)
            yield RelevantNote(note, found.score, shared)


def is_of_branch(note: Note, branch: str | None, prompt: str = "") -> bool:
    """Whether a note is told on a branch: not where it was made on another one, unless the prompt names that."""
    made_on = note.draft.origin.get("branch")
    return holds_on(made_on, branch) or str(made_on) in prompt


def _without_attempts_of_lessons(relevant: Sequence[RelevantNote]) -> list[RelevantNote]:
    """Leave out the attempts whose lesson is among the notes: it tells their outcome."""
    attempts = {one.note.draft.metadata.get("attempt") for one in relevant if one.note.draft.kind == LESSON}
    return [one for one in relevant if one.note.draft.kind != ATTEMPT or one.note.id not in attempts]


def note_line(relevant: RelevantNote, now: float, here: str | None, most: int) -> Line:
    """A note as it is told, with at most `most` characters of its text; `here` is the namespace of who is told, and
    another one is named."""
    note, loser = relevant.note, relevant.supersedes
    whose = "its" if loser is None else f"m{loser.id}'s"
    reason = f"the prompt has {whose} words {', '.join(relevant.words[: limits.TOLD_WORDS])}"
    return note_text_line(note, now, here, most, reason, loser)


def note_text_line(
    note: Note, now: float, here: str | None, most: int, reason: str, supersedes: Note | None = None
) -> Line:
    """A note as it is told for a reason; `supersedes` is the note in whose place it is told."""
    draft, name = note.draft, f"m{note.id}"
    kind = _attempt_kind(draft.metadata) if draft.kind == ATTEMPT else draft.kind
    body = quote_titled(draft.title, deciding_text(draft.content, most), limits.MAX_TOLD_COMMAND, most)
    in_place = ""
    if supersedes is not None:
        in_place = f", in place of {quote(supersedes.draft.title, limits.MAX_TOLD_SUPERSEDED)}"
    is_elsewhere = draft.namespace not in (here, GLOBAL)
    place = f", {quote_name(draft.namespace, limits.INJECTED_NAME_CHARS)}" if is_elsewhere else ""
    text = f"{name} {kind}{place}, {ago(now - note.updated_at)}{in_place}: {body}"
    return Line(name, "note", text, reason, ((IDENTITY, name),))


def _attempt_kind(metadata: Mapping[str, Any]) -> str:
    """`debugging attempt, confirmed`: its domain, unless none was given, and its outcome."""
    domain = str(metadata.get("domain") or DOMAINS[-1])
    named = "" if domain == DOMAINS[-1] else f"{short_name(domain)} "
    return f"{named}{ATTEMPT}, {short_name(str(metadata.get('outcome')))}"


def deciding_text(content: str, most: int) -> str:
    """The part of a text that is told: all of it where it fits. A short note states its decision first, so its first
    sentence is told and of the others the last ones; what was decided in a long text, a conversation or a commit,
    stands at its end. The part begins with a sentence where that leaves enough of it."""
    text = " ".join(content.split())
    if len(text) <= most:
        return text
    first, *others = _SENTENCE_END.split(text)
    if len(text) <= limits.PROMPT_NOTE_CHARS:
        head = first if len(first) <= most - 2 else first[: most - 2].rpartition(" ")[0]
        return f"{head} … {_last_sentences(others, most - len(head) - 3)}".rstrip()
    last = _last_sentences(others, most - 2)
    return f"… {last}" if len(last) >= most // 2 else f"… {text[-(most - 2) :].partition(' ')[2]}"


def _last_sentences(sentences: Sequence[str], most: int) -> str:
    """The last sentences that fit into `most` characters."""
    told = ""
    for sentence in reversed(sentences):
        if len(told) + len(sentence) + 1 > most:
            break
        told = f"{sentence} {told}".rstrip()
    return told
