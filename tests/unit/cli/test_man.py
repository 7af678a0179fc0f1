from __future__ import annotations

import shutil
import subprocess

import pytest

from nudge.cli import output
from nudge.cli.app import load_command
from nudge.cli.verbs import Verb, shown_verbs
from tests.unit.cli.conftest import Nudge, Terminal

MAN = shutil.which("man")


def test_the_program_has_a_page(nudge: Nudge) -> None:
    """Into a pipe goes roff: name, every verb, options, exit status."""
    page = nudge("man").out
    assert page.startswith('.TH "NUDGE" "1" ')
    assert all(f"\\fBnudge {verb.name}\\fR".replace("-", "\\-") in page for verb in shown_verbs())
    assert ".SH EXIT STATUS" in page and ".SH ENVIRONMENT" in page
    codes = {str(value) for name, value in vars(output).items() if name.startswith("EXIT_")}
    assert all(f".TP\n\\fB{code}\\fR\n" in page for code in codes)


@pytest.mark.parametrize("verb", list(shown_verbs()), ids=lambda verb: verb.name)
def test_every_verb_has_a_page(nudge: Nudge, verb: Verb) -> None:
    """It names each option, and the examples; none of its lines is mistaken for a request of roff."""
    page = nudge("man", *verb.name.split()).out
    command = load_command(verb)
    options = [name for p in command.params if not getattr(p, "hidden", False) for name in p.opts if name[:2] == "--"]
    assert all(name.replace("-", "\\-") in page for name in options) and ".SH EXAMPLES" in page
    requests = {line.split()[0] for line in page.splitlines() if line[:1] in (".", "'")}
    assert requests <= {".TH", ".SH", ".TP", ".PP", ".nf", ".fi"}


@pytest.mark.skipif(MAN is None, reason="man is not installed")
@pytest.mark.parametrize("words", [["man"], ["man", "get"]])
def test_man_reads_it(nudge: Nudge, words: list[str]) -> None:
    """`nudge man | man -l -` shows it without a warning."""
    assert MAN is not None
    done = subprocess.run(
        [MAN, "--warnings", "-l", "-"],
        input=nudge(*words).out,
        text=True,
        capture_output=True,
        check=False,
        env={"LANG": "C.UTF-8", "MANWIDTH": "80", "PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, done.stderr) == (0, "") and "SYNOPSIS" in done.stdout


def test_on_a_terminal_it_is_text(nudge: Nudge) -> None:
    """A person needs no pager to read it."""
    text = nudge.on(Terminal(), "man", "bump").out
    assert "NAME\n    nudge bump - credit a hint" in text and "\\f" not in text and ".SH" not in text


def test_a_page_of_nothing(nudge: Nudge) -> None:
    """An unknown verb is a usage error that names the nearest one."""
    outcome = nudge("man", "gte")
    assert outcome.code == 2 and "did you mean: nudge man get" in outcome.err
