"""Fetching a model: what the hub says is checked, and nothing half-written stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.meaning.download import DownloadFailed, RemoteModel, fetch, find_model, is_name
from nudge.meaning.embedder import open_embedder
from tests.unit.meaning.hub import COMMIT, NAME, Hub, serving


@pytest.fixture
def hub(model: Path) -> Iterator[Hub]:
    with serving(model) as served:
        yield served


def find(hub: Hub) -> RemoteModel:
    return find_model(NAME, {"HF_ENDPOINT": hub.address})


def test_a_model_is_fetched(hub: Hub, model: Path, tmp_path: Path) -> None:
    """One commit of it, with its size before, its parts as they come, and the hash of its weights."""
    remote = find(hub)
    sizes: list[int] = []
    fetch(remote, str(tmp_path / "got"), sizes.append, {"HF_ENDPOINT": hub.address})
    assert (remote.revision, len(remote.sha256)) == (COMMIT, 64)
    assert sum(sizes) == remote.size == sum(path.stat().st_size for path in model.iterdir())
    fetched, given = open_embedder(str(tmp_path / "got")), open_embedder(str(model))
    assert fetched.fingerprint == given.fingerprint
    assert all("main" not in path for path in hub.asked[1:])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({"wrong": True}, "hash differs"),
        ({"cut": True}, "another size|the connection broke"),
        ({"away": "http://example.org/model"}, "is not an https address"),
        ({"away": "ftp://127.0.0.1/model"}, "is not an https address"),
    ],
)
def test_a_download_that_fails_leaves_nothing(hub: Hub, tmp_path: Path, spoil: dict[str, Any], said: str) -> None:
    """Neither a directory nor a part of one, and what was there before stays."""
    for name, value in spoil.items():
        setattr(hub, name, value)
    (tmp_path / "got").mkdir()
    (tmp_path / "got" / "kept").write_text("old")
    remote = find(hub)
    with pytest.raises(DownloadFailed, match=said):
        fetch(remote, str(tmp_path / "got"), lambda _: None, {"HF_ENDPOINT": hub.address})
    assert (tmp_path / "got" / "kept").read_text() == "old"
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")] == []


def _without(name: str) -> Any:
    def change(listing: dict[str, Any]) -> Any:
        return {**listing, "siblings": [one for one in listing["siblings"] if one["rfilename"] != name]}

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without("tokenizer.json"), "has no tokenizer.json"),
        (lambda listing: {**listing, "library_name": "transformers", "tags": []}, "has no model.onnx"),
        (lambda listing: {**listing, "sha": "../../etc"}, "cannot be understood"),
        (lambda listing: {**listing, "siblings": 7}, "cannot be understood"),
        (lambda _: ["no"], "cannot be understood"),
        (
            lambda listing: {
                **listing,
                "siblings": [{**one, "lfs": None, "size": 0} for one in listing["siblings"]],
            },
            "how large",
        ),
        (
            lambda listing: {**listing, "siblings": [{**one, "lfs": {"size": 1 << 40}} for one in listing["siblings"]]},
            "larger than",
        ),
    ],
)
def test_a_listing_that_is_none(hub: Hub, change: Any, said: str) -> None:
    """A hub may say anything: nothing is fetched then."""
    hub.listing = change(hub.listing)
    with pytest.raises(DownloadFailed, match=said):
        find(hub)
    assert len(hub.asked) == 1


def test_there_is_no_such_model(hub: Hub) -> None:
    with pytest.raises(DownloadFailed, match="no such model"):
        find_model("acme/other", {"HF_ENDPOINT": hub.address})
    with pytest.raises(DownloadFailed, match="cannot be reached"):
        find_model(NAME, {"HF_ENDPOINT": "http://127.0.0.1:9"})
    with pytest.raises(DownloadFailed, match="https"):
        find_model(NAME, {"HF_ENDPOINT": "http://192.0.2.1"})


@pytest.mark.parametrize("name", ["", "model", "../etc/passwd", "a/b/c", "a/..", "-a/b", "a/b?c", "a /b", "/a/b"])
def test_what_is_no_name(name: str) -> None:
    """A name cannot lead to another address, or out of the directory of models."""
    assert not is_name(name)
    assert is_name(NAME)
