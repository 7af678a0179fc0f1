"""What connecting and disconnecting would change, the change itself, and the difference as a person reads it."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nudge.clients import files, ledger
from nudge.clients.ledger import Ledger, Mark
from nudge.clients.malformed import Malformed
from nudge.clients.place import Place
from nudge.clients.targets import Target, is_blank
from nudge.errors import Invalid, NudgeError, StorageFailed
from nudge.limits import CLIENT_COMMAND_TIMEOUT
from nudge.security.secrets import redact

Command = tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One file from `before` to `after`; None is no file."""

    target: Target
    before: str | None
    after: str | None
    mark: Mark | None = None  # how to undo it
    directories: list[str] = field(default_factory=list)  # that go with the file
    commands: Sequence[Command] = ()  # the client's own way to the same text

    @property
    def path(self) -> str:
        return self.target.path


def connecting(targets: Sequence[Target], records: Ledger, place: Place) -> list[Step]:
    """The files that lack something; empty when the client is connected."""
    steps = (_connecting(target, files.read(target.path), records, place) for target in targets)
    return [step for step in steps if step is not None]


def disconnecting(targets: Sequence[Target], records: Ledger) -> list[Step]:
    """The files that have something of ours."""
    steps = (_disconnecting(target, files.read(target.path), records) for target in targets)
    return [step for step in steps if step is not None]


def found(targets: Sequence[Target]) -> set[str]:
    """The parts that are wired now."""
    return {
        part for target in targets if (text := files.read(target.path)) is not None for part in _guarded(target, text)
    }


def difference(step: Step) -> Iterator[str]:
    """A unified diff. Lines around the change are another's, and may hold a key."""
    before, after = ((text or "").splitlines() for text in (step.before, step.after))
    name = files.shown(step.path)
    old, new = ("/dev/null" if text is None else name for text in (step.before, step.after))
    for line in difflib.unified_diff(before, after, old, new, lineterm=""):
        yield redact(line) if line.startswith(" ") else line


def apply(steps: Sequence[Step], records: Ledger) -> None:
    """All or, when a file is no longer what the plan was made for, nothing."""
    for step in steps:
        if files.read(step.path) != step.before:
            raise StorageFailed(
                f"{files.shown(step.path)} has just been changed by somebody else; nothing was changed, try again"
            )
    for step in steps:
        _apply(step, records)


def forget(targets: Sequence[Target], records: Ledger) -> None:
    """Files that lost their entries to somebody else, or went, are ours no more either."""
    for target in targets:
        if records.mark(target.path) is not None:
            records.note(target.path, None)


def _connecting(target: Target, text: str | None, records: Ledger, place: Place) -> Step | None:
    try:
        if text is not None and target.is_wired(text):
            return None
        base, mark = _base(target, text, records)
        draft = target.wired(base or "", text or "")
    except Malformed as error:
        raise _refused(target, error) from None
    directories = mark.directories if mark is not None else files.missing_directories(target.path)
    made = Mark(
        ledger.digest(draft.text), draft.undo(), created=base is None, directories=directories, place=place.to_wire()
    )
    return Step(target, text, draft.text, made)


def _base(target: Target, text: str | None, records: Ledger) -> tuple[str | None, Mark | None]:
    """The file without anything of ours, and the mark that still tells how it came to be."""
    if text is None:
        return None, None
    mark = records.mark(target.path)
    if mark is not None and mark.fits(text):
        return mark.restored(text), mark
    return target.cleaned(text), None


def _disconnecting(target: Target, text: str | None, records: Ledger) -> Step | None:
    if text is None:
        return None
    mark = records.mark(target.path)
    after = mark.restored(text) if mark is not None and mark.fits(text) else _cleaned(target, text, mark)
    return (
        Step(target, text, after, directories=mark.directories if mark is not None else []) if after != text else None
    )


def _cleaned(target: Target, text: str, mark: Mark | None) -> str | None:
    """What we made goes when nothing is left in it."""
    try:
        after = target.cleaned(text) if target.found(text) else text
    except Malformed as error:
        raise _refused(target, error) from None
    emptied = after is not None and after != text and is_blank(after)
    return None if emptied and mark is not None and mark.created else after


def _guarded(target: Target, text: str) -> set[str]:
    """A file that we cannot read has nothing that we could claim."""
    try:
        return target.found(text)
    except Malformed:
        return set()


def _refused(target: Target, error: Malformed) -> Invalid:
    line = f", line {error.line}" if error.line is not None else ""
    return Invalid(
        f"{files.shown(target.path)}{line}: {error.what}; nothing was changed; mend it, then run nudge again"
    )


def _apply(step: Step, records: Ledger) -> None:
    if step.after is None:
        files.remove(step.path, step.directories)
    elif step.commands:
        for command in step.commands:
            _run(command)
    else:
        records.note(step.path, step.mark)  # first: a mark that fits no file does no harm
        files.write(step.path, step.after)
    if step.after is None or files.read(step.path) != step.after:
        records.note(step.path, None)
    elif step.commands:
        records.note(step.path, step.mark)


def _run(command: Command) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=CLIENT_COMMAND_TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NudgeError(f"{' '.join(command)}: {error}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise NudgeError(f"{' '.join(command)}: {said[-1]}")
