"""Shell lines taken apart, without running or expanding anything."""

from __future__ import annotations

import pytest

from nudge.learning.command import span_text
from nudge.learning.shell import parse_commands


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("rg '->' src", ["rg '->' src"]),
        ("MSG='done; rm -rf ~/build' uv run pytest", ["MSG='done; rm -rf ~/build' uv run pytest"]),
        ("cd x && FOO='a b' make test 2>&1 | tail", ["cd x", "FOO='a b' make test", "tail"]),
        ("make -f ci/tests.mk check > log.txt 2>&1; ls", ["make -f ci/tests.mk check", "ls"]),
        ("psql app <seed.sql 2>/dev/null", ["psql app <seed.sql"]),
        ("pytest 2>&1 tests", ["pytest 2>&1 tests"]),
        ("sudo -E timeout 60 env A=1 pip install x", ["sudo -E timeout 60 env A=1 pip install x"]),
        ("cat <<EOF > a.py\nit's; os.system('rm')\nEOF\npython a.py", ["cat", "python a.py"]),
        ("make \\\n  -j2 test", ["make \\\n  -j2 test"]),
        ("echo 'a && b' \"c | d\" # no ) comment", ["echo 'a && b' \"c | d\""]),
        (
            'git commit -m "$(cat <<E\nit\'s (done)\nE\n)" && git push',
            ['git commit -m "$(cat <<E\nit\'s (done)\nE\n)"', "git push"],
        ),
        ("echo $(rm -rf x) `ls; pwd` ${a:-b c} $((1 << 2))", ["echo $(rm -rf x) `ls; pwd` ${a:-b c} $((1 << 2))"]),
        ("[[ $a =~ ^(b|c)$ && d < e ]] && make", ["[[ $a =~ ^(b|c)$ && d < e ]]", "make"]),
        ("a=(1 'x y') ; diff <(sort a) <(sort b)", ["a=(1 'x y')", "diff <(sort a) <(sort b)"]),
        ("ls\nmake test\necho 'open", ["ls", "make test"]),
        ("echo 'unclosed", []),
        ("echo a | | b", []),
        ("make && }", []),
        ("", []),
    ],
)
def test_a_command_is_a_part_of_its_line(line: str, texts: list[str]) -> None:
    """Quotes, substitutions, here-documents and comments stay as they were typed. What cannot be read exactly is left
    out, with all that follows it."""
    assert [command.text for command in parse_commands(line)] == texts


def test_words_have_no_quotes_and_know_their_place() -> None:
    """A word is compared without its quotes, and told with them."""
    (command,) = parse_commands("A='b c' tool \"x y\" $HOME '$HOME' a\\ b *.py $'t' {a,b} git@{0}")
    assert command.variables == ("A=b c",)
    assert command.words == ("tool", "x y", "$HOME", "$HOME", "a b", "*.py", "t", "{a,b}", "git@{0}")
    assert [word for word in command.words if word.is_expanded] == ["$HOME", "*.py", "{a,b}"]
    assert [command.source[word.start : word.end] for word in command.words[1:5]] == [
        '"x y"',
        "$HOME",
        "'$HOME'",
        "a\\ b",
    ]


def test_the_beginning_of_a_command_is_told_as_such() -> None:
    """Without its last words a command ends in an ellipsis."""
    (command,) = parse_commands("uv run pytest 'tests/a b.py' -x > out.txt")
    assert span_text(command) == "uv run pytest 'tests/a b.py' -x"
    assert span_text(command, 3) == "uv run pytest …"
    assert span_text(command, 5) == "uv run pytest 'tests/a b.py' -x"


def test_operators_stand_before_and_behind_a_command() -> None:
    """The end of a line is a semicolon; `&` is not `&&`."""
    commands = parse_commands("cd a && make | tail -1 || echo no; b &\nc")
    assert [(command.preceded_by, command.followed_by) for command in commands] == [
        ("", "&&"), ("&&", "|"), ("|", "||"), ("||", ";"), (";", "&"), ("&", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "within"),
    [
        ("a; (b && { c; }) 2>&1 | d", [(), ("(",), ("(", "{"), ()]),
        ("if a; then b; elif c; then d; else e; fi && f", [*[("if",)] * 5, ()]),
        ("for x in 1 2; do a; done; while b; do c; done", [("for",), ("while",), ("while",)]),
        ("case $x in a|b) c;; (*) d; esac; e", [("case",), ("case",), ()]),
        ("f() { a; }; function g { b; }; f", [("function", "{"), ("function", "{"), ()]),
        ("! a | b && c", [("!",), ("!",), ()]),
    ],
)
def test_groups_and_conditions_around_a_command_are_known(line: str, within: list[tuple[str, ...]]) -> None:
    """What runs under a condition, in a loop or in a function may not have run."""
    assert [command.within for command in parse_commands(line)] == within


@pytest.mark.parametrize(
    ("line", "words", "wrapper"),
    [
        ("sudo -u postgres psql -l", ("psql", "-l"), ("sudo", "-u", "postgres")),
        ("time -p nice -n 5 make", ("make",), ("time", "-p", "nice", "-n", "5")),
        ("timeout -k 5 60 pytest", ("pytest",), ("timeout", "-k", "5", "60")),
        ("env -u A B=1 make", ("make",), ("env", "-u", "A")),
        ("command -v pytest", ("command", "-v", "pytest"), ()),
        ("env", ("env",), ()),
    ],
)
def test_a_wrapper_is_no_part_of_the_command(line: str, words: tuple[str, ...], wrapper: tuple[str, ...]) -> None:
    """What runs a command without changing it is told with it, and is not compared."""
    (command,) = parse_commands(line)
    assert (command.words, command.wrapper, command.text) == (words, wrapper, line)


def test_a_tool_is_the_same_whichever_way_it_is_run() -> None:
    """`pytest`, `.venv/bin/pytest` and `python3 -m pytest` are one tool."""
    commands = parse_commands("pytest a; .venv/bin/pytest a; python3.11 -m pytest a")
    assert {command.tool for command in commands} == {"pytest"}
    assert [command.arguments for command in commands] == [("a",)] * 3


@pytest.mark.parametrize("launcher", ["uv run", "pixi run", "rye run --", "npx -y", "pnpm exec", "bundle exec", "uvx"])
def test_a_launcher_is_no_part_of_the_tool(launcher: str) -> None:
    """A program that is run in the project's environment is the tool."""
    (command,) = parse_commands(f"{launcher} jest src")
    assert (command.tool, command.arguments) == ("jest", ("src",))
    assert command.launcher == tuple(launcher.split())


def test_outputs_and_pipes_are_known() -> None:
    """What a redirection writes is no argument; a command whose output is piped does not decide the exit code."""
    first, second = parse_commands("pytest tests 2>&1 | tee out.txt > /dev/null")
    assert first.piped and not second.piped
    assert second.outputs == ("/dev/null",) and second.arguments == ("out.txt",)


def test_the_output_of_a_group_is_known() -> None:
    """The redirections behind a group are a command without words."""
    commands = parse_commands("{ a; b; } > out && c")
    assert [(command.words, command.outputs) for command in commands][2:] == [((), ("out",)), (("c",), ())]
    assert commands[2].followed_by == "&&"
