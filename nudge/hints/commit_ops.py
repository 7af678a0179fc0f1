"""Changes of hints: one at a time, appended to the change log, then applied in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Set
from contextlib import contextmanager
from itertools import chain
from typing import Any

from nudge.core import limits
from nudge.core.call import Call
from nudge.core.errors import NudgeError, StorageFailed
from nudge.core.loop_turns import with_loop_turns
from nudge.hints.lifetime import HintLifetime, PreviousLifetime
from nudge.hints.model import Decision, Hint, Identity, hide_secrets
from nudge.storage.changelog import ChangeLog, LogGone

_log = logging.getLogger(__name__)


class HintChanges:
    """Commits the changes of one lifetime of hints; `confirm_role` raises HandingOver when this process is no longer
    PRIMARY."""

    def __init__(self, lifetime: HintLifetime, confirm_role: Callable[[], None]) -> None:
        self._lifetime = lifetime
        self.confirm_role = confirm_role
        self.last_error: str | None = None
        """Why the change log could not be written the last time; None when it could."""
        self._previous = PreviousLifetime(lifetime.directory)
        self.writing = asyncio.Lock()
        """Held by each change."""
        self._compacting: asyncio.Task[None] | None = None

    async def serialize(self, call: Call, change: Callable[[], Awaitable[Any]]) -> Any:
        """Make one change at a time; a call that was answered before gets the same answer and changes nothing."""
        async with self.writing:
            if call.request_id is not None and call.request_id in self._lifetime.answers:
                return self._lifetime.answers.get(call.request_id, call.fingerprint)
            call.refuse_late()
            return await change()

    def commit(self, decision: Decision, call: Call, *, is_outgoing: bool = True) -> Any:
        """Append the change to the log, then apply it in memory: an acknowledged change survives the process, and one
        that fails has changed nothing. One that is not outgoing came from the team, and is not sent back to it."""
        if decision.change or call.request_id:
            record, outbox = _record_of(decision, call, self._lifetime.clock.now()), self._lifetime.outbox
            record = outbox.number(record) if is_outgoing else record
            self._append(record)
            outbox.replay(record)
        self._lifetime.store.apply(decision.change)
        return self._acknowledged(decision, call)

    async def commit_large(self, decision: Decision, call: Call, *, is_outgoing: bool = True) -> Any:
        """`commit` for a change of possibly thousands of hints. A whole new log is written on a worker thread and
        renamed into place, which commits the change; then the store switches to the new state in one step. Call it
        within `serialize`."""
        if len(decision.change) <= limits.APPENDED_HINTS:
            return self.commit(decision, call, is_outgoing=is_outgoing)
        log = self._log_to_write()
        index = await asyncio.to_thread(self._lifetime.store.prepare, decision.change)
        before, outbox = self._lifetime.outbox, self._lifetime.outbox.copy()
        if is_outgoing:
            outbox.replay(outbox.number(_record_of(decision, Call(), self._lifetime.clock.now())))
        self._lifetime.outbox = outbox  # the new log is to have its changes
        if log is not None:
            try:
                with self._track_failure():
                    await self._replace_log(log, list(index), decision, call)
            except BaseException:
                self._lifetime.outbox = before
                raise
        replaced = self._lifetime.store.swap(index)
        result = self._acknowledged(decision, call)
        await asyncio.to_thread(replaced.free)
        return result

    async def _replace_log(self, log: ChangeLog, hints: list[Hint], decision: Decision, call: Call) -> None:
        def records() -> Iterator[dict[str, Any]]:
            answer = [_answer_of(decision, call, self._lifetime.clock.now())] if call.request_id else []
            return chain(self._lifetime.records_of(hints), answer)

        rewrite = log.begin_rewrite(self._lifetime.header())
        try:
            await asyncio.to_thread(rewrite.write, with_loop_turns(records()))
            self.confirm_role()
            log.finish_rewrite(rewrite)
        except LogGone:
            log.close()
            self._lifetime.log = await asyncio.to_thread(
                ChangeLog.create, log.path, self._lifetime.header(), with_loop_turns(records())
            )
        except BaseException:
            log.abandon_rewrite(rewrite)
            raise

    def _acknowledged(self, decision: Decision, call: Call) -> Any:
        if call.request_id:
            self._lifetime.answers.remember(
                self._lifetime.clock.now(), call.request_id, decision.result, call.fingerprint
            )
        self._compact_when_due()
        return decision.result

    def send_hints(self, log: str) -> None:
        """Number the changes of hints in the log from now on, under a name for the log; with an empty one, no longer.
        Call it within `serialize`."""
        if log != self._lifetime.outbox.log:
            record = {"n": [log, 1]}
            self._append(record)
            self._lifetime.outbox.replay(record)

    def write_log(self) -> bool:
        """Write the change log that there was no room for; return whether that succeeded now."""
        is_written = self._lifetime.log is None and self._lifetime.write_log()
        if is_written:
            self._previous = PreviousLifetime(self._lifetime.directory)
        return is_written

    async def previous_note(self) -> str | None:
        """The sentence for a caller that finds nothing: how many hints of the previous session can be imported. None
        when there are none."""
        identities = await asyncio.to_thread(self._previous.identities)
        missing = self._lifetime.store.count_missing(self._lifetime.clock.now(), identities)
        if not missing:
            return None
        hints = "1 hint of the previous session is" if missing == 1 else f"{missing} hints of the previous session are"
        return f"{hints} kept; bring back with: nudge import --previous"

    async def note_import(self, identities: Set[Identity]) -> None:
        """Offer the hints of the previous session no longer if an import had all of them."""
        await asyncio.to_thread(self._previous.mark_imported, identities)

    def sweep(self) -> None:
        """Write a heartbeat to the log, and drop what has expired. Call it within `serialize`."""
        now = self._lifetime.clock.now()
        self._lifetime.answers.forget_old(now)
        change = self._lifetime.store.decide_sweep(now)
        try:
            self._append({**change.without_secrets().to_record(), "t": now})
        except NudgeError as error:
            _log.warning("heartbeat not written: %s", error.message)
            return
        self._lifetime.store.apply(change)

    def _append(self, record: dict[str, Any]) -> None:
        log = self._log_to_write()
        if log is None:
            return
        with self._track_failure():
            try:
                log.append(record)
            except LogGone:
                self.rewrite_log(log).append(record)

    def _log_to_write(self) -> ChangeLog | None:
        """None: changes are kept in memory only."""
        self.confirm_role()
        if self._lifetime.read_only:
            raise StorageFailed(self._lifetime.read_only)
        return self._lifetime.log

    @contextmanager
    def _track_failure(self) -> Iterator[None]:
        try:
            yield
            self.last_error = None
        except StorageFailed as error:
            self.last_error = error.message
            raise

    def rewrite_log(self, log: ChangeLog) -> ChangeLog:
        """Write a log whose file is gone or was replaced anew from memory, which holds every acknowledged change."""
        log.close()
        self._lifetime.log = ChangeLog.create(log.path, self._lifetime.header(), self._lifetime.records())
        return self._lifetime.log

    def _compact_when_due(self) -> None:
        log = self._lifetime.log
        if log is None or self._compacting is not None or not log.compaction_due:
            return
        self._compacting = asyncio.ensure_future(self._compact(log))

    async def _compact(self, log: ChangeLog) -> None:
        rewrite = log.begin_rewrite(self._lifetime.header())
        try:
            # Without turns of the loop a log of 16 MiB holds it for 14 ms, at worst 74; with them for 7, at worst 18.
            await asyncio.to_thread(rewrite.write, with_loop_turns(self._lifetime.records()))
            async with self.writing:
                if self._lifetime.log is log and not rewrite.abandoned:
                    log.finish_rewrite(rewrite)
        except StorageFailed as error:
            log.abandon_rewrite(rewrite)
            _log.warning("compaction failed: %s", error.message)
        finally:
            self._compacting = None


def _record_of(decision: Decision, call: Call, now: float) -> dict[str, Any]:
    change = decision.change.without_secrets().to_record()
    return {**change, "t": now, **(_answer_of(decision, call, now) if call.request_id else {})}


def _answer_of(decision: Decision, call: Call, now: float) -> dict[str, Any]:
    return {"t": now, "id": call.request_id, "request": call.fingerprint, "result": hide_secrets(decision.result)}
