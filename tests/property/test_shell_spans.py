"""A command that is told is cut out of the line that ran: it occurs there, and bash reads it as the same command.

bash prints how it reads a line without running it: the body of a function that is only defined (`declare -f`). It runs
restricted and without PATH, in case a generated line closes the body and goes on behind it.
"""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nudge.learning.command import CUT_OFF, SimpleCommand, span_text
from nudge.learning.scan import Word
from nudge.learning.shell import parse_commands

DATA = Path(__file__).parents[1] / "bench" / "data"
BASH = shutil.which("bash")
_DEFINE = """while IFS= read -r -d '' line; do
( eval "f() {
$line
}" && declare -f f ) </dev/null; printf '\\0'; done"""

PIECES = (
    *(
        "a",
        "b c",
        "make test",
        "A=",
        "B='x y' ",
        "=",
        "-x",
        "rg '->' src",
        "x/y.py::T",
        "@",
        "é",
        "1",
        "#",
        "\\",
        "\\\n",
    ),
    *("'", '"', "`", "$", "$x", "$(", "$((1+2))", "${x:-y}", "${x:-'}'}", "$'q\\'r'", "$'s'", '"$x y"', '"`a`"'),
    *("*", "?", "[ab]", "~", "{a,b}", "a=(1 '2 3')", "((1))", "[[ a < b && c ]]", "<(a b)"),
    *(";", "&", "&&", "||", "|", "|&", "\n", "!", "(", ")", "{ a; }", "{", ";;", "if a; then b; else c; fi"),
    *("for i in 1 2; do a $i; done", "case a in b|c) d;; *) e;; esac", "g() { a; }", "function g { b; }", "then", "do"),
    *("<", ">", ">>", "2>", "2>&1", "&>", ">&", "<<<", "<<E\nit's\nE\n", "<<-'E'\n\t$(x\n\tE\n", "<<E", "/dev/null"),
    *("env ", "time ", "sudo -u x ", "timeout 5 ", "nice -n 3 ", "uv run ", "npx ", "cd web", "export A=1"),
)
LINES = st.lists(st.sampled_from(PIECES) | st.just(" "), max_size=14).map("".join)


def recorded_lines() -> Iterator[str]:
    """The commands of the benchmarks."""
    with gzip.open(DATA / "replay.jsonl.gz", "rt", encoding="utf-8") as events:
        for event in map(json.loads, events):
            if command := event.get("tool_input", {}).get("command"):
                yield command
    for cases in sorted(DATA.glob("*failure_pairs.jsonl")):
        for case in map(json.loads, cases.read_text(encoding="utf-8").splitlines()):
            for step in (*(step for session in case["sessions"] for step in session), case["then"]):
                if "command" in step:
                    yield step["command"]


def as_bash_reads(lines: list[str]) -> list[str | None]:
    """How bash prints each line; None for what it refuses."""
    assert BASH is not None
    done = subprocess.run(
        (BASH, "--norc", "-r", "-c", _DEFINE),
        input="".join(f"{line}\0" for line in lines).encode(),
        env={"PATH": "/nonexistent", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    texts = done.stdout.decode(errors="surrogateescape").split("\0")[:-1]
    assert len(texts) == len(lines), done.stderr[-300:]
    return [_body(text) if text else None for text in texts]


def _body(function: str) -> str:
    """The commands of a function, without indents."""
    return "\n".join(line.strip() for line in function.strip().splitlines()[2:-1])


def typed_words(command: SimpleCommand) -> list[Word]:
    words = (*command.wrapper, *command.variables, *command.words)
    return sorted(words, key=lambda word: word.start)


def check_spans(line: str) -> None:
    """Every command is a part of the line, and is read from that part as from the line."""
    for command in parse_commands(line):
        assert line[command.start : command.end] == command.text
        assert all(command.start <= word.start < word.end <= command.end for word in typed_words(command))
        if command.words or command.variables:
            (again,) = parse_commands(command.text)
            assert typed_words(again) == typed_words(command)
        for length in range(1, len(command.words) + 1):
            result = span_text(command, length).removesuffix(CUT_OFF)
            assert line.startswith(result, command.start)
            (again,) = parse_commands(result)
            assert typed_words(again) == typed_words(command)[: len(typed_words(again))]
            assert again.words == command.words[:length]


def check_as_bash(lines: list[str]) -> None:
    """What is read from a line that bash accepts is a command that bash reads there."""
    parsed = [[command for command in parse_commands(line) if command.text] for line in lines]
    expected = as_bash_reads(lines)
    result = iter(as_bash_reads([command.text for commands in parsed for command in commands]))
    for line, commands, whole in zip(lines, parsed, expected, strict=True):
        for command, text in zip(commands, result, strict=False):
            if whole is not None:
                assert text is not None and text.rstrip(";& ") in whole, (line, command.text)


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_recorded_commands_are_told_as_bash_reads_them() -> None:
    """All lines of the benchmarks that bash accepts are read, and each of their commands as bash reads it."""
    lines = sorted(set(recorded_lines()))
    check_as_bash(lines)
    accepted = [line for line, text in zip(lines, as_bash_reads(lines), strict=True) if text is not None]
    assert [line for line in accepted if not parse_commands(line)] == []


def test_recorded_commands_are_spans() -> None:
    """A command of a benchmark is a part of its line; shlex, where it knows the syntax, finds the same words in it. It
    does not know `<(...)`, which is a word."""
    for line in set(recorded_lines()):
        check_spans(line)
        for command in parse_commands(line):
            if not command.redirections and not set(command.text) & set("\\$`#") and "<(" not in command.text:
                assert shlex.split(command.text) == typed_words(command)


@given(LINES)
@example("cat <<E >out && make\nit's\nE\nls")
@example('echo "$(cat <<E\n)"\nE\n)" x')
def test_generated_commands_are_spans(line: str) -> None:
    """Whatever the quotes, substitutions and redirections: what is told is a part of the line and parses alike."""
    check_spans(line)


@pytest.mark.skipif(BASH is None, reason="needs bash")
@given(LINES)
def test_generated_commands_are_told_as_bash_reads_them(line: str) -> None:
    """What is read from a generated line is what bash reads there."""
    check_as_bash([line])


HOSTILE = (
    *(
        "a;",
        "a ",
        "a&&",
        "|",
        "'",
        "''",
        '""',
        '"$(',
        "$(",
        "`",
        "``",
        "${a}",
        '"${a}"',
        "((",
        "$((1))",
        "<<a\n",
        "\\\n",
    ),
    *("\\", "[", "{,", "{", "}", "a=(", "a=(1)", "\n", "#\n", "if a;then ", "case a in a)", "! ", "f()", "f(){ a;};"),
    *(
        "[[ a ]];",
        "a>b ",
        ">",
        "2>&1 ",
        "$'a'",
        "*",
        '"a',
        "a[",
        "(",
        "( ",
        "A=1 ",
        "env ",
        "timeout 1 ",
        "<(",
        "\r",
        "é",
    ),
    *("for a in b;do a;done;", '"`a`', "${a:-", "[[ a ", "x=$((", "cat <<-e\n\t", "uv run ", "function f ", "1", "$"),
)


@pytest.mark.parametrize("begin", ["", "cat <<E\n", "a \n", '"$('])
@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_lines_take_no_time(begin: str, unit: str) -> None:
    """64 KiB of anything take at most four times as long as 64 KiB of plain commands."""
    assert _spent(begin, unit) < 4 * _spent("", "echo word;")


def _spent(begin: str, unit: str) -> float:
    line = begin + unit * (65_536 // len(unit))
    times = []
    for _ in range(3):
        began = time.process_time()
        parse_commands(line)
        times.append(time.process_time() - began)
    return min(times)
