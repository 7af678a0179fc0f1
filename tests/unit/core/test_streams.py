"""What is printed to a stderr that cannot be written."""

from __future__ import annotations

import io
import os
import select
import socket
import sys

import pytest

from nudge.core import streams


class Broken(io.StringIO):
    """A stream that has no descriptor and cannot be written."""

    def __init__(self, error: type[OSError]) -> None:
        super().__init__()
        self._error = error

    def write(self, _text: str) -> int:
        raise self._error


def test_a_line_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing on stdout."""
    assert streams.note("a line")
    assert capsys.readouterr() == ("", "a line\n")


@pytest.mark.parametrize(("error", "has_reader"), [(OSError, True), (BrokenPipeError, False)])
def test_a_stream_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, error: type[OSError], has_reader: bool
) -> None:
    """The line is dropped; only a reader that is gone is reported."""
    monkeypatch.setattr(sys, "stderr", Broken(error))
    assert streams.note("a line") is has_reader


@pytest.mark.parametrize("is_none", [True, False])
def test_a_closed_stream(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_none: bool) -> None:
    """The line does not go to stdout."""
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", None if is_none else closed)
    assert streams.note("a line")
    assert capsys.readouterr().out == ""


def test_what_was_buffered_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is kept: flushing the stream later is no error."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert not streams.note("a line")
        assert streams.note("another line")


def test_what_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of readers and writers apart, with `poll` and where there is none; a closed end counts."""
    near, far = socket.socketpair()
    reader, writer = os.pipe()
    with near, far, open(reader, "rb"), open(writer, "wb", buffering=0) as full:
        os.set_blocking(writer, False)
        while full.write(bytes(65_536)):
            pass
        for _ in range(2):
            assert streams.wait_ready([near], [writer], timeout=0.0) == ([], [])
            assert streams.wait_ready([near, reader], [near], timeout=0.0) == ([reader], [near])
            monkeypatch.delattr(select, "poll", raising=False)
        far.close()
        assert streams.wait_ready([near]) == ([near], [])
        monkeypatch.undo()
        assert streams.wait_ready([near], [near]) == ([near], [near])
