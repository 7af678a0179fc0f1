"""The wording of the digest's lines: one function for each kind of line, from stored values to one line of text.

Stored text is untrusted: every piece of it is quoted (`nudge.core.text`) or reduced to a name.
"""

from __future__ import annotations

import os
import re

from nudge.core import limits
from nudge.core.clock import ago, last_time
from nudge.core.scoring import half_life
from nudge.core.text import cut_at_sentence, quote, quote_lines, quote_name, quote_titled, single_line
from nudge.history.event import client_label
from nudge.learning.cure import PATH
from nudge.repofile import SAYS, SOURCE
from nudge.telling.hint_selection import GUESSED, SCANNED
from nudge.telling.ledger import Line
from nudge.telling.use import COMMAND, FILE, IDENTITY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from nudge.history.sessions import Place, SessionRow
    from nudge.learning.broken_tests import BrokenTest
    from nudge.learning.fact import Fact
    from nudge.telling.use import Uses

_SOURCE_LINE = re.compile(r"[\w.@+~/-]+:\d+")  # what scan sets as a reason: `Makefile:3`


class DigestLine:
    """One line of the digest. `item` describes it in the injection's record, `entry` is the line for the ledger, where
    it is known by `name`; `uses` say what shows that it was used. `tests` are the ids of the tests that it is about."""

    __slots__ = ("entry", "item", "tests", "text")

    def __init__(
        self,
        text: str,
        identity: int | str,
        kind: str,
        score: float,
        reason: str,
        *,
        name: str | None = None,
        uses: Uses = (),
        tests: frozenset[str] = frozenset(),
    ) -> None:
        self.text = f"- {text}"
        self.item = {"id": identity, "kind": kind, "score": round(score, 4), "reason": reason}
        self.tests = tests
        self.entry = Line(name or f"{kind} {identity}", kind, text, reason, uses)


# Facts, hints and notes


def tests_line(tests: Sequence[BrokenTest], text: str, now: float) -> DigestLine:
    timestamp, failure_id = max(test.latest for test in tests)
    uses = ((IDENTITY, f"#{failure_id}"),)
    reason = "failed in one session after the other"
    name, ids = test_name(tests[0]), frozenset(test.id for test in tests)
    score = half_life(now - timestamp)
    return DigestLine(text, failure_id, "test", score, reason, name=name, uses=uses, tests=ids)


def test_name(test: BrokenTest) -> str:
    return f"test {test.id}"


def fact_line(fact: Fact, now: float) -> DigestLine:
    sessions = len(fact.support)
    text = fact.start_text(now) or f"{quote(fact.cure.error, limits.MAX_TOLD_ERROR)}: see nudge facts"
    reason = f"learned from {sessions} session{'s' * (sessions != 1)}"
    return DigestLine(
        text,
        fact.latest.success_id,
        "fact",
        half_life(now - fact.timestamp),
        reason,
        name=fact.name,
        uses=(*fact.uses, *([(FILE, fact.answer)] if fact.cure.kind == PATH else [])),
    )


def fact_name(subject: str) -> str:
    return f"fact {subject}"


def hint_line(hint: dict[str, Any]) -> DigestLine:
    name, value, instead = hint["name"], hint["value"], hint.get("instead") or ""
    value_text = hint_value_text(name, value)
    if instead and not _is_long(value):
        value_text = f"{quote(instead, limits.MAX_TOLD_COMMAND)} worked here where {value_text} failed"
    told_reason = reason_text(hint["reason"], hint.get("origin"))
    parts = (hint.get("stale"), told_reason, hint.get("last_run"), hint.get("outcome"))
    reason = "; ".join(filter(None, parts))
    text = f"{short_name(name)}: {value_text}" + (f" ({reason})" if reason else "")
    uses = ((COMMAND, instead or value or ""), (IDENTITY, name))
    return DigestLine(text, name, "hint", hint["score"], "; ".join(hint["reasons"]), name=name, uses=uses)


def reason_text(reason: str, origin: str | None) -> str:
    """The stored reason of a hint, quoted, whatever it says: anybody can write what looks like evidence. Only the line
    of a manifest, where scan found it, is told as it is. A hint of the repo's file says whose word it is."""
    line = single_line(reason, limits.INJECTED_REASON_CHARS)
    if origin == SOURCE:
        return f"{SAYS}: {quote(reason, limits.INJECTED_REASON_CHARS)}" if line else SAYS
    if not line or (origin in (SCANNED, GUESSED) and _SOURCE_LINE.fullmatch(line)):
        return line
    return quote(reason, limits.INJECTED_REASON_CHARS)


def hint_value_text(name: str, value: str | None) -> str:
    """The value of a hint as a whole and on one line; the command that prints it when it is long, or None: a secret."""
    component, _, key = name.partition("/")
    command = f"nudge get {short_name(component)} {short_name(key)}"
    if value is None:
        return f"a secret; read it with: {command} --value-only"
    if _is_long(value):
        return f"long; read it with: {command}"
    return quote_lines(value) if "\n" in value.strip() else quote(value, limits.INJECTED_VALUE_CHARS)


def _is_long(value: str) -> bool:
    return len(value) > limits.INJECTED_VALUE_CHARS


def note_line(note: dict[str, Any], now: float) -> DigestLine:
    name, kind, age = f"m{note['id']}", note["kind"], now - note["updated_at"]
    body = quote_titled(note["title"], note["content"], limits.MAX_TOLD_COMMAND, limits.PROMPT_NOTE_CHARS)
    text = f"{name} {kind}, {ago(age)}: {body}"
    return DigestLine(text, name, "note", half_life(age), f"a {kind} of this repo", name=name, uses=((IDENTITY, name),))


# Attempts

RESOLVE_OR_ABANDON = "when you know: resolve_ghap; to give it up: resolve_ghap with status abandoned"


def expectation_text(hypothesis: str | None, prediction: str | None, most: int) -> str:
    """What an attempt believes, if that was given, and predicts, each cut to `most` characters."""
    believes = f"believes {quote(hypothesis, most)} and " if hypothesis else ""
    return f"it {believes}predicts {quote(prediction or '', most)}"


def attempt_line(row: dict[str, Any], now: float) -> DigestLine:
    name, age = f"m{row['id']}", now - row["updated_at"]
    goal = quote(row["goal"], limits.INJECTED_INTENT_CHARS)
    expectation = expectation_text(row["hypothesis"], row["prediction"], limits.INJECTED_NOTE_CHARS)
    if row["is_own"]:
        todo, reason = RESOLVE_OR_ABANDON, "an open attempt of this session"
    else:
        todo = (
            f"its session is gone; take it over: nudge journal adopt {name}; or give it up: "
            f"nudge journal resolve {name} --outcome abandoned --result TEXT"
        )
        reason = "an open attempt of this repo"
    others = f" ({row['others']} more: nudge journal)" if row["others"] else ""
    text = f"{name}, {ago(age)}: {goal}; {expectation}; {todo}{others}"
    return DigestLine(text, name, "attempt", half_life(age), reason, name=name, uses=((IDENTITY, name),))


# Sessions


def own_lines(own: SessionRow, now: float) -> Iterator[DigestLine]:
    for intent in own.intents[-limits.INJECTED_INTENTS :]:
        text = f"asked {ago(now - intent.timestamp)}: {quote(intent.content, limits.INJECTED_INTENT_CHARS)}"
        yield DigestLine(text, own.id, "own", 1.0, "a prompt of this session")
    if own.files:
        names = " ".join(quote_name(own.relative(path), limits.INJECTED_TEXT_CHARS) for path in own.files)
        yield DigestLine(f"changed: {names}", own.id, "own", 1.0, "files that this session changed")
    for part in _outcome(own):
        yield DigestLine(part, own.id, "own", 1.0, "what this session did")


def live_line(row: SessionRow, now: float, place: Place) -> DigestLine:
    clone = "" if row.is_in_clone(place) else _clone_name(row, place)
    text = f"{client_label(row.client)}{_where(row, place, clone)}, {last_time(now - row.last, 'last active')}"
    text += live_text(row)
    reason = "a session that is live in this repo"
    return DigestLine(text, row.id, "live", half_life(now - row.last), reason, uses=_uses(row))


def live_text(row: SessionRow) -> str:
    """Its last prompt that says something, and the files that it changed."""
    intent = f": {quote(row.latest_intent, limits.INJECTED_LIVE_CHARS)}" if row.latest_intent else ""
    return f"{intent}; changed {_file_names(row)}" if row.files else intent


def ended_text(row: SessionRow) -> str:
    """Its prompt, the files that it changed, and its outcome."""
    intent = [quote(row.intent, limits.INJECTED_INTENT_CHARS)] if row.intent else []
    files = [f"changed {_files(row, row.files)}"] if row.files and row.commit is None else []
    return "; ".join([*intent, *files, *_outcome(row)])


def ended_line(row: SessionRow, now: float, place: Place) -> DigestLine:
    clone = "" if row.is_in_clone(place) else row.clone or ""
    text = f"{ago(now - row.last)}, {client_label(row.client)}{_where(row, place, clone)}: {ended_text(row)}"
    reason = "how an earlier session here ended"
    return DigestLine(text, row.id, "session", half_life(now - row.last), reason, uses=_uses(row))


def _uses(row: SessionRow) -> Uses:
    """The files that the line names, and the ids of its commit, its failure and the session."""
    entries = [entry for entry in (row.commit, row.failing) if entry is not None]
    files = row.files[-limits.NAMED_FILES :]
    return (*((FILE, path) for path in files), *((IDENTITY, f"#{entry.id}") for entry in entries), (IDENTITY, row.id))


def _outcome(row: SessionRow) -> Iterator[str]:
    """What a session left: its last commit, what was failing at its end, and its last words."""
    if row.commit is not None:
        yield f"committed {quote(row.commit.content, limits.INJECTED_SUBJECT_CHARS)} #{row.commit.id}"
        if row.uncommitted:
            yield f"changed after it: {_files(row, row.uncommitted)}"
    if row.failing is not None:
        command = row.failing.content
        is_short = len(command) <= limits.MAX_TOLD_COMMAND and "\n" not in command
        command_text = f"{quote(command, limits.MAX_TOLD_COMMAND)} " if is_short else ""
        is_bare = not row.failing.error or row.failing.error.startswith("Exit code")
        error = "" if is_bare else f"({quote(row.failing.error, limits.INJECTED_ERROR_CHARS)}) "
        yield f"left failing: {command_text}{error}#{row.failing.id}"
    if row.last_words:
        most = limits.INJECTED_UNFINISHED_CHARS if row.is_unfinished else limits.INJECTED_NOTE_CHARS
        yield f"last words: {quote(cut_at_sentence(row.last_words, most), most)}"


def _files(row: SessionRow, files: Sequence[str]) -> str:
    """The last of these files."""
    names = [quote_name(row.relative(path), limits.INJECTED_TEXT_CHARS) for path in files[-limits.NAMED_FILES :]]
    return " ".join(names)


def _file_names(row: SessionRow) -> str:
    """The files that it changed last; only the base name of a file outside its clone."""
    names = (row.relative(path) for path in row.files[-limits.NAMED_FILES :])
    short = (os.path.basename(name) if os.path.isabs(name) else name for name in names)
    return " ".join(quote_name(name, limits.INJECTED_TEXT_CHARS) for name in short)


def _clone_name(row: SessionRow, place: Place) -> str:
    """The name of its directory, or "another clone" when the place is in a directory of that name."""
    name = os.path.basename((row.clone or "").rstrip("/"))
    return "another clone" if f"/{name}/" in f"{place.cwd}/" else name


def _where(row: SessionRow, place: Place, clone: str) -> str:
    """The branch, if it is not that of the place, and the clone, if given."""
    parts = []
    if row.branch and row.branch != place.branch:
        parts.append(f"branch {short_name(row.branch)}")
    if clone:
        parts.append(f"in {short_name(clone)}")
    return f" ({', '.join(parts)})" if parts else ""


def short_name(name: str) -> str:
    """A name as it is told, cut to INJECTED_NAME_CHARS."""
    return quote_name(name, limits.INJECTED_NAME_CHARS)
