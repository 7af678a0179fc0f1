from __future__ import annotations

import io
import sys
import threading
from pathlib import Path

import click
import pytest

from nudge.cli import prompts
from nudge.cli.output import Console, Usage
from tests.harness import eventually
from tests.unit.cli.conftest import Nudge, Server, Terminal


def at_terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    keyboard = io.StringIO(typed)
    monkeypatch.setattr(keyboard, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", keyboard)


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False)])
def test_only_yes_is_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, answer: bool
) -> None:
    """The question goes to stderr, and Enter alone is no."""
    at_terminal(monkeypatch, typed)
    assert prompts.ask("Go ahead?", yes=False) is answer
    assert capsys.readouterr() == ("", "Go ahead? [y/N] ")


def test_another_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The remark says which answers there are."""
    at_terminal(monkeypatch, "maybe\ny\n")
    assert prompts.ask("Go ahead?", yes=False)
    assert capsys.readouterr() == ("", "Go ahead? [y/N] answer y or n\nGo ahead? [y/N] ")


def test_nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal nothing goes ahead, unless --yes was given."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert prompts.ask("Go ahead?", yes=True)
    with pytest.raises(Usage, match="stdin is not a terminal"):
        prompts.ask("Go ahead?", yes=False)


def test_leaving_a_question_is_ctrl_c(
    nudge: Nudge, server: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C or Ctrl-D at a question ends with 130, and nothing is changed."""
    (somewhere / "x.db").touch()
    monkeypatch.setattr("nudge.history.backup_cli.ask", lambda *_, **__: (_ for _ in ()).throw(click.Abort()))
    monkeypatch.setattr(
        "nudge.process.owned_files.check_backup",
        lambda _: {"observations": 1, "sessions": 1, "notes": 1},
        raising=False,
    )
    assert nudge("restore", "x.db").code == 130 and server.calls == []


@pytest.mark.parametrize(("total", "shown"), [(10, "50%"), (None, "5")])
def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch, total: int | None, shown: str) -> None:
    """A bar on stderr, with or without a known end."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with prompts.progress(Console(as_json=False), "reading", total) as advance:
        advance(5)
    assert "reading" in screen.text() and shown in screen.text()


@pytest.mark.parametrize(("as_json", "total"), [(True, 10), (False, 0), (False, 10)])
def test_no_progress_elsewhere(capsys: pytest.CaptureFixture[str], as_json: bool, total: int) -> None:
    """Nothing for a program, for no work, or into a pipe."""
    with prompts.progress(Console(as_json=as_json), "reading", total) as advance:
        advance(5)
    assert capsys.readouterr() == ("", "")


def test_waiting_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar moves while nothing is reported, and ends with the work."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(prompts, "_TICK", 0.001)
    before = threading.active_count()
    with prompts.waiting(Console(as_json=False), "syncing"):
        eventually(lambda: "]  3" in screen.text(), "three ticks are shown")
    assert threading.active_count() == before
