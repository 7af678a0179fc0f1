"""Drafts of notes: what stands in for the fields that the caller left out, and the refusal of secrets."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nudge.clients.registry import note_source
from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, agent_session
from nudge.core.errors import SecretRejected
from nudge.core.note_files import FILES, changed_files, relative_to, with_files
from nudge.core.repos import is_absolute, read_repo
from nudge.core.visibility import Visibility
from nudge.history import queries
from nudge.notes import namespaces
from nudge.notes import store as notes
from nudge.notes.fields import GLOBAL, PASSING_KINDS, Draft, parse_draft
from nudge.notes.models import StoreMemory
from nudge.notes.note import find_secret_in

_CHECKED_AT_ONCE = 4 * limits.KIB  # characters searched for secrets on the event loop; more goes to a thread
_SOURCES = {"cli": "cli", "hook": "hook", "http": "api"}


class Origin:
    """Where notes come from: what stands in for the fields that the caller left out. An error does not suggest what is
    not `visible`."""

    def __init__(self, app: App, call: Call, visible: Visibility) -> None:
        self._here, self._branch, self._call, self._visible = call.context.project, call.context.branch, call, visible
        self._session = agent_session(app.clients, call)
        self._now = app.now()

    def draft(self, params: StoreMemory, now: float) -> Draft:
        fields = params.model_dump(exclude={"context"}, exclude_none=True)
        top = top_for(fields, self._call)
        return parse_draft(fields, now=now, namespace=self._here or GLOBAL, source=self._source(), top=top)

    def complete(self, connection: sqlite3.Connection, draft: Draft) -> Draft:
        """With its namespace in full, and client, session, prompt, repo and branch as far as they are known."""
        namespace = namespaces.find(connection, draft.namespace, self._visible)
        prompt = queries.latest_prompt(connection, self._session) if self._session else None
        agent = {"client": self._call.client, "session": self._session, "prompt": prompt}
        fields = {**agent, "repo": self._here, "branch": self._branch}
        origin = {name: value for name, value in fields.items() if value}
        return self._with_changed_files(connection, replace(draft, namespace=namespace, origin=origin))

    def _with_changed_files(self, connection: sqlite3.Connection, draft: Draft) -> Draft:
        """A new note for which no files were given is about those that its session changed shortly before, in the repo
        where it is kept."""
        is_asked = FILES in draft.defaulted and draft.kind not in PASSING_KINDS
        if not is_asked or not self._session or notes.find_by_title(connection, draft.title, draft.namespace):
            return draft
        since = int(self._now) - limits.CHANGED_SECONDS
        changed = queries.changed_files(connection, self._session, draft.namespace, since)
        paths = [
            path for path in (relative_to(file, clone or self._call.context.cwd) for file, clone in changed) if path
        ]
        files = changed_files(paths, f"{draft.title}\n{draft.content}")
        return replace(draft, metadata=with_files(draft.metadata, files)) if files else draft

    def _source(self) -> str:
        return _SOURCES.get(self._call.interface) or note_source(self._call.client)


def top_for(fields: Mapping[str, Any], call: Call) -> str | None:
    """The top of the caller's clone, or its directory outside of one, where the files of a note are given with their
    whole paths."""
    cwd = call.context.cwd
    if cwd is None or not any(isinstance(path, str) and is_absolute(path) for path in fields.get(FILES, ())):
        return None
    return read_repo(cwd)[2] or cwd


async def checked(app: App, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """The drafts, unless one holds a secret. Long texts are searched on a thread: 64 KiB take 50 ms."""
    if app.lifetime.settings.secret_guard:
        if sum(len(draft.content) for draft in drafts) <= _CHECKED_AT_ONCE:
            refuse_secrets(drafts)
        else:
            await asyncio.to_thread(refuse_secrets, drafts)
    return drafts


def refuse_secrets(drafts: Iterable[Draft]) -> None:
    for draft in drafts:
        if (secret := find_secret_in(draft)) is not None:
            field, kind = secret
            raise SecretRejected(f"looks like a secret ({kind}); notes must not contain one", field=field, kind=kind)
