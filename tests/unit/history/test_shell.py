"""Shell lines taken apart, without running or expanding anything."""

from __future__ import annotations

import pytest

from nudge.history.shell import split_commands


@pytest.mark.parametrize(
    ("line", "heads"),
    [
        ("pytest -x tests", ["pytest"]),
        ("cd api && DOCKER=1 make test | tail -5", ["cd", "DOCKER=1 make", "tail"]),
        ("/usr/bin/python3 -m pytest tests/a.py; ls", ["/usr/bin/python3 -m pytest", "ls"]),
        ("sudo -E timeout 60 env A=1 pip install x", ["A=1 pip"]),
        ("cat <<EOF > a.py\nimport os; os.system('rm')\nEOF\npython a.py", ["cat", "python"]),
        ("make \\\n  -j2 test", ["make"]),
        ("echo 'a && b' \"c | d\"", ["echo"]),
        ("echo 'unclosed", []),
        ("", []),
    ],
)
def test_simple_commands(line: str, heads: list[str]) -> None:
    """Operators, wrappers, here-documents, continued lines and quotes; what is no shell is left out."""
    assert [command.head for command in split_commands(line)] == heads


def test_a_tool_is_the_same_whichever_way_it_is_run() -> None:
    """`pytest`, `.venv/bin/pytest` and `python3 -m pytest` are one tool with different heads."""
    commands = split_commands("pytest a; .venv/bin/pytest a; python3.11 -m pytest a")
    assert {command.tool for command in commands} == {"pytest"}
    assert [command.arguments for command in commands] == [("a",)] * 3


@pytest.mark.parametrize("launcher", ["uv run", "pixi run", "rye run --", "npx -y", "pnpm exec", "bundle exec", "uvx"])
def test_a_launcher_is_no_part_of_the_tool(launcher: str) -> None:
    """A program that is run in the project's environment is the tool."""
    (command,) = split_commands(f"{launcher} jest src")
    assert (command.tool, command.arguments) == ("jest", ("src",))


def test_outputs_and_pipes_are_known() -> None:
    """What a redirection writes is no argument; a command whose output is piped does not decide the exit code."""
    first, second = split_commands("pytest tests 2>&1 | tee out.txt > /dev/null")
    assert first.piped and not second.piped
    assert second.outputs == ("/dev/null",) and second.arguments == ("out.txt",)
