"""A command line means the same through the thin front and through click."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nudge import __main__ as front
from nudge.cli import app
from nudge.core.errors import RemoteError, Unavailable

HINT = {
    "value": {"type": "command", "cmd": "make\ttest", "shell": "bash"},
    "meta": {"tags": ["a"], "scope": {"os": ["linux"]}, "source": "user"},
    "version": 2,
    "created_at": "2026-11-16T08:00:00.000000Z",
    "updated_at": "2026-11-16T08:30:00.000000Z",
}
EXPLAIN = {"matched": True, "score": 0.5, "components": {"frecency": 0.1}, "reasons": ["os=linux allowed"]}
MISSING = {"code": 40401, "message": "api has no key x", "data": {"reason": "E_NOT_FOUND", "known_keys": ["test"]}}
REFUSED = {"code": 40001, "message": "meta.ttl: must be a duration", "data": {"reason": "E_INVALID"}}
ANSWERS: list[Any] = [
    {"hint": HINT, "match_explain": EXPLAIN},
    {"hint": {**HINT, "value": "x\ny"}, "match_explain": EXPLAIN, "note": "nothing to lower"},
    RemoteError(MISSING),
    RemoteError(REFUSED),
    Unavailable("no Nudge server is running"),
    KeyboardInterrupt(),
]

LISTED = [
    ["--json"],
    ["--explain"],
    ["--value-only"],
    ["--global"],
    ["--type", "command"],
    ["--type", "json"],
    ["--type", "template"],
    ["--reason", "because"],
    ["--tags", "a,b"],
    ["--ttl", "PT2H"],
    ["--delta", "3"],
    ["--delta", "-1"],
]
ODD = [
    ["--tags", "--json"],
    ["--tags", ""],
    ["--tags"],
    ["--type", "yaml"],
    ["--type=command"],
    ["--delta", "many"],
    ["--delta", " 1_0 "],
    ["--delta=2"],
    ["--os", "linux"],
    ["--branch", "dev"],
    ["--scope-os", "linux"],
    ["--scope-os", "beos"],
    ["--priority", "3"],
    ["--shell", "bash"],
    ["-p", "9000"],
    ["-p9000"],
    ["-h"],
    ["--help"],
    ["-V"],
    ["--"],
    ["-"],
    ["-1"],
    ["-x"],
    ["--valueonly"],
    ["--tag"],
    [""],
    ["-p"],
    ["--json=1"],
]
words = st.text(max_size=6) | st.sampled_from(["api", "test", "make all", "[1]", '{"a": 1}', "~/x", "/srv", "b"])
groups = words.map(lambda word: [word]) | st.sampled_from(LISTED) | st.sampled_from(ODD)
plain_groups = words.filter(lambda word: not word.startswith("-")).map(lambda word: [word]) | st.sampled_from(LISTED)
lines = st.builds(
    lambda verb, parts: [verb, *(word for part in parts for word in part)],
    st.sampled_from(["get", "set", "bump"]),
    st.lists(groups, min_size=1, max_size=6) | st.lists(plain_groups, min_size=2, max_size=5),
)


class Recorder:
    """A client that gives one answer and keeps what was sent."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.sent: list[Any] = []

    def __call__(self, **made_with: Any) -> Recorder:
        self.sent.append(made_with)
        return self

    def call(self, *request: Any, **options: Any) -> Any:
        self.sent.append((request, options))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@contextmanager
def quiet_place(folder: Path) -> Iterator[None]:
    """A directory outside any repository, and none of this machine's settings."""
    environ = {"NUDGE_RUNTIME_DIR": str(folder / "run"), "NUDGE_CONFIG": str(folder / "none.toml"), "HOME": str(folder)}
    here = os.getcwd()
    os.chdir(folder)
    try:
        with mock.patch.dict(os.environ, environ, clear=True):
            yield
    finally:
        os.chdir(here)


def run(main: Callable[[Sequence[str]], int], line: Sequence[str], answer: Any) -> tuple[int, str, str, list[Any]]:
    """Exit code, stdout, stderr, and what was sent to the server."""
    out, err, client = io.StringIO(), io.StringIO(), Recorder(answer)
    stdin = io.TextIOWrapper(io.BytesIO(b"piped\n"))
    with (
        mock.patch("nudge.process.client.Client", client),
        mock.patch.object(sys, "stdin", stdin),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(line)
    return code, out.getvalue(), err.getvalue(), client.sent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("place")


@given(line=lines, answer=st.sampled_from(ANSWERS))
@example(line=["get", "api", "test", "--value-only", "--json"], answer=ANSWERS[0])
@example(line=["set", "a", "b", "-"], answer=ANSWERS[0])
@example(line=["set", "a", "b", "{", "--type", "json"], answer=ANSWERS[0])
@example(line=["set", "a", "b", "c", "--tags", "x", "--tags", "y"], answer=ANSWERS[0])
def test_both_ways_agree(folder: Path, line: list[str], answer: Any) -> None:
    """Exit code, stdout, stderr and the request are the same, whoever parses the line."""
    with quiet_place(folder):
        assert run(front.main, line, answer) == run(app.main, line, answer)


@given(
    verb=st.sampled_from(["get", "set", "bump"]),
    names=st.lists(words.filter(lambda word: not word.startswith("-")), min_size=3, max_size=3),
)
def test_plain_lines_stay_thin(verb: str, names: list[str]) -> None:
    """Words alone never need click: the comparison above is about something."""
    count = 3 if verb == "set" else 2
    assert front.parse_plain([verb, *names[:count]]) is not None
    assert front.parse_plain([verb, *names[:count], "--"]) is None
    assert front.parse_plain([verb, *names[:count], "--unlisted"]) is None


SERVE = [["--detach"], ["--daemon"], ["--no-auth"], ["--http-only"], ["--http"], ["--successor", "g1"]]
SERVE += [["--port", "9000"], ["-p", "9001"]]
SERVE_ODD = [["--port", "0"], ["--max-hints", "5"], ["--json"], ["--"], ["x"], ["--no-secret-guard"], ["--port"]]


@given(parts=st.lists(st.sampled_from(SERVE) | st.sampled_from(SERVE_ODD), max_size=4))
def test_both_ways_serve_alike(folder: Path, parts: list[list[str]]) -> None:
    """`nudge serve` gets the same options, and the same refusals."""
    line = ["serve", *(word for part in parts for word in part)]
    outcomes = []
    for main in (front.main, app.main):
        options: list[dict[str, Any]] = []

        def serve(given: Any, options: list[dict[str, Any]] = options) -> int:
            options.append({name: value for name, value in vars(given).items() if value})
            return 0

        with quiet_place(folder), mock.patch("nudge.process.role.serve", serve):
            outcomes.append((*run(main, line, None), options))
    assert outcomes[0] == outcomes[1]
