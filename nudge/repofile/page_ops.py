"""The repositories' files on the page: how many hints of each are trusted and waiting; to a person who signed in from a
terminal also what they say, and the click that trusts them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, Params, Result, Text
from nudge.core.errors import Conflict, NotFound, StorageFailed, Unauthorized
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.history import projects
from nudge.repofile import FILE
from nudge.repofile.hints_ops import trust_store
from nudge.repofile.trust import DENIED, TRUSTED, Decision, TrustStore

if TYPE_CHECKING:
    from nudge.repofile.review import Review

_ONLY_A_PERSON = (
    "only a person may trust a hint: run nudge trust in a terminal, or click on the page that nudge open opened there"
)
_Digests = Annotated[list[str], Field(default_factory=list, max_length=limits.MAX_REPO_HINTS)]


class RepoFiles(Params):
    """The files of the clones in which agents worked; with `root` of one clone."""

    root: Annotated[Text | None, Field(max_length=limits.MAX_PATH_CHARS)] = None


class RepoFilesResult(Result):
    """`may_decide`: the caller is a person, who is also shown the hints."""

    files: list[dict[str, Any]]
    may_decide: bool


@operation(
    "nudge.repo_files",
    tool="repo_files",
    group="hints",
    effect="read",
    route="GET /api/v1/repo-files",
    result=RepoFilesResult,
    listed=False,
    summary="Hints: how many hints of each repository's .nudge.toml are trusted and waiting.",
)
async def repo_files(app: App, params: RepoFiles, call: Call) -> Any:
    """List the files. Untrusted is told to nobody: only a person who signed in sees what a file says."""
    roots = [params.root] if params.root is not None else await _roots(app, call)
    store = trust_store(app)
    if store is None:
        return {"files": [], "may_decide": False}
    rows = await asyncio.to_thread(lambda: list(_rows(store, roots, is_person=call.is_person)))
    return {"files": rows, "may_decide": call.is_person}


async def _roots(app: App, call: Call) -> list[str]:
    """The clones that the history knows, without those of private projects."""
    if app.database is None:
        return []
    visible = visible_to(app, call)

    def read(connection: sqlite3.Connection) -> list[str]:
        hidden = projects.find_hidden(connection, visible)
        rows = connection.execute("SELECT project, root FROM clones ORDER BY root LIMIT ?", (limits.MAX_CLONES_LISTED,))
        return [root for project, root in rows if project not in hidden]

    return await app.read(read)


def _rows(store: TrustStore, roots: Iterable[str], *, is_person: bool) -> Iterable[dict[str, Any]]:
    for root in roots:
        if os.path.lexists(os.path.join(root, FILE)) and (reviewed := _review(store, root)) is not None:
            yield _row(reviewed, is_person=is_person)


def _review(store: TrustStore, root: str) -> Review | None:
    from nudge.repofile import clone as clones  # late: tomllib, only where there is a file
    from nudge.repofile.review import review

    clone = clones.find_clone(root)
    document = None if clone is None else clones.read_now(clone)[0]
    if clone is None or document is None:
        return None
    return review(clone, document, store.of(clone.repo, clone.git_dir))


def _row(reviewed: Review, *, is_person: bool) -> dict[str, Any]:
    clone = reviewed.clone
    row: dict[str, Any] = {
        "root": clone.root,
        "repo": clone.repo,
        "branch": clone.branch,
        "problems": [str(problem) for problem in reviewed.problems],
        **{state: len(reviewed.in_state(state)) for state in (TRUSTED, "waiting", DENIED)},
    }
    if is_person:
        row["hints"] = [
            {
                "name": one.hint.name,
                "state": one.state,
                "digest": one.hint.digest,
                "line": one.hint.line,
                "changed": one.before is not None,
                "diff": list(one.diff()),
            }
            for one in reviewed.hints
        ]
        row["gone"] = sorted({hint.name for hint in reviewed.gone})
    return row


class DecideRepoFile(Params):
    """Hints are named by the digest that was shown with them: what is in the file by now does not count."""

    root: Annotated[Text, Field(max_length=limits.MAX_PATH_CHARS)]
    trust: _Digests
    deny: _Digests
    revoke: _Digests


class DecideRepoFileResult(Result):
    file: dict[str, Any]


@operation(
    "nudge.decide_repo_file",
    tool="decide_repo_file",
    group="hints",
    effect="write",
    route="POST /api/v1/repo-files/decisions",
    result=DecideRepoFileResult,
    listed=False,
    summary="Hints: trust or deny hints of a repository's file; only a person's click on the page may.",
)
async def decide_repo_file(app: App, params: DecideRepoFile, call: Call) -> Any:
    """Trust, deny or forget what a person saw on the page. Nobody else may, through whatever interface."""
    if not call.is_person:
        raise Unauthorized(_ONLY_A_PERSON)
    store, now = _store(app), app.now()
    app.confirm_role()
    return {"file": await asyncio.to_thread(_decide, store, params, now)}


def _decide(store: TrustStore, params: DecideRepoFile, now: float) -> dict[str, Any]:
    reviewed = _review(store, params.root)
    if reviewed is None:
        raise NotFound(f"there is no {FILE} in {params.root}")
    clone, shown = reviewed.clone, {one.hint.digest: one for one in reviewed.hints}
    if not {*params.trust, *params.deny} <= shown.keys():
        raise Conflict(f"{FILE} changed since it was shown; nothing was decided; look at it again")
    wanted = [*((TRUSTED, digest) for digest in params.trust), *((DENIED, digest) for digest in params.deny)]
    decisions = [shown[digest].decided(clone, state, now) for state, digest in wanted]
    if decisions:
        store.record(decisions)
    if revoked := frozenset(params.revoke):

        def is_revoked(one: Decision) -> bool:
            return one.is_of(clone.repo, clone.git_dir) and one.digest in revoked

        store.remove(is_revoked)
    again = _review(store, params.root)
    if again is None:
        raise NotFound(f"{FILE} was removed meanwhile")
    return _row(again, is_person=True)


def _store(app: App) -> TrustStore:
    store = trust_store(app)
    if store is None:
        raise StorageFailed("no file can be written in the runtime directory; see: nudge status")
    return store
