"""What a person decided is kept for one content in one clone of one repository."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits, paths
from nudge.core.errors import QuotaExceeded, StorageFailed
from nudge.repofile.document import RepoHint
from nudge.repofile.trust import DENIED, TRUSTED, Decision, TrustStore

REPO, GIT_DIR = "git:example.com/org/api", "/home/me/api/.git"


def decision(
    value: str, *, repo: str = REPO, git_dir: str = GIT_DIR, state: str = TRUSTED, key: str = "test"
) -> Decision:
    hint = RepoHint("api", key, "command", value, {})
    return Decision(repo, git_dir, state, hint.digest, 1.0, hint.to_json(), "")


def values(store: TrustStore, git_dir: str = GIT_DIR) -> list[str]:
    return [f"{one.state} {one.hint['value']}" for one in store.of(REPO, git_dir)]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "run")


def test_trust_is_bound_to_repo_clone_and_content(folder: str) -> None:
    """Another process sees it at once; another repo at the same path, or another clone of it, has nothing."""
    store, other = TrustStore(folder), TrustStore(folder)
    assert not other.may_trust(REPO)
    store.record([decision("make test")])
    assert values(other) == ["trusted make test"]
    assert other.may_trust(REPO) and not other.may_trust("git:example.com/org/web")
    assert other.of(REPO, "/home/me/copy/.git") == other.of("git:example.com/org/web", GIT_DIR) == []


def test_a_later_decision_about_the_same_content_replaces_the_first(folder: str) -> None:
    store = TrustStore(folder)
    store.record([decision("a"), decision("b")])
    store.record([decision("a", state=DENIED)])
    assert values(store) == ["trusted b", "denied a"]
    assert store.remove(lambda one: one.state == DENIED) == 1
    assert values(store) == ["trusted b"]


def test_old_versions_of_a_hint_are_dropped_first(folder: str) -> None:
    store = TrustStore(folder)
    for number in range(limits.MAX_VERSIONS_TRUSTED + 2):
        store.record([decision(f"v{number}"), decision("same", key="other")])
    assert len(values(store)) == limits.MAX_VERSIONS_TRUSTED + 1
    assert "trusted v1" not in values(store) and "trusted v2" in values(store)


def test_there_is_a_limit(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_DECISIONS", 1)
    store = TrustStore(folder)
    store.record([decision("a")])
    with pytest.raises(QuotaExceeded):
        store.record([decision("b", key="other")])
    assert values(store) == ["trusted a"]


def test_only_its_owner_can_read_or_write_it(folder: str) -> None:
    """A file that others could write is trusted by nobody, and is not written over."""
    store = TrustStore(folder)
    store.record([decision("a")])
    path = os.path.join(folder, paths.TRUST)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    os.chmod(path, 0o666)  # noqa: S103 - what is tested
    assert TrustStore(folder).all() == []
    with pytest.raises(StorageFailed):
        store.record([decision("b")])
    os.chmod(path, 0o600)
    assert values(TrustStore(folder)) == ["trusted a"]


@pytest.mark.parametrize("content", ["", "x", "[]", '{"version": 2, "decisions": []}', '{"version": 1}'])
def test_a_file_that_is_not_ours_is_trusted_by_nobody(folder: str, content: str) -> None:
    """And what it says is not lost."""
    os.mkdir(folder, 0o700)
    path = Path(folder, paths.TRUST)
    path.write_text(content)
    path.chmod(0o600)
    assert TrustStore(folder).all() == []
    with pytest.raises(StorageFailed):
        TrustStore(folder).record([decision("b")])
    assert path.read_text() == content


@pytest.mark.parametrize("change", [{"state": "maybe"}, {"digest": 7}, {"hint": {}}, {"more": 1}])
def test_one_damaged_decision_is_no_decision(folder: str, change: dict[str, Any]) -> None:
    TrustStore(folder).record([decision("a")])
    path = Path(folder, paths.TRUST)
    content = json.loads(path.read_text())
    content["decisions"][0].update(change)
    path.write_text(json.dumps(content))
    assert TrustStore(folder).all() == []


def _record_until_killed(folder: str, acknowledged: Any) -> None:
    store = TrustStore(folder)
    for number in range(10_000):
        store.record([decision("x", key=f"k{number}")])
        acknowledged.send(number)


def test_what_was_acknowledged_survives_a_kill(folder: str) -> None:
    """kill -9 between any two steps: everything that was acknowledged is there, and the lock is free."""
    context = multiprocessing.get_context("fork")
    done = 0
    for _ in range(5):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_record_until_killed, args=(folder, theirs))
        process.start()
        last, until = -1, time.monotonic() + 60
        while last < 3 and time.monotonic() < until:
            last = ours.recv()
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        while ours.poll():
            last = ours.recv()
        names = {one.name for one in TrustStore(folder).all()}
        assert {f"api/k{number}" for number in range(last + 1)} <= names
        TrustStore(folder).record([decision("after", key=f"after{done}")])
        done += 1
    assert done == 5


def test_several_writers_lose_nothing(folder: str) -> None:
    context = multiprocessing.get_context("fork")

    def write(writer: int) -> None:
        for number in range(10):
            TrustStore(folder).record([decision("x", key=f"{writer}-{number}")])

    writers = [context.Process(target=write, args=(number,)) for number in range(4)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    assert len(TrustStore(folder).all()) == 40
