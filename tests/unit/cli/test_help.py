from __future__ import annotations

import importlib
import re
import shlex

import pytest

from nudge import __version__
from nudge.cli import verbs
from nudge.cli.runner import parser_of
from nudge.server.operations import OPERATIONS

from .conftest import Nudge

SHOWN = [verb for verb in verbs.VERBS if not verb.hidden]


def test_each_operation_has_a_verb() -> None:
    """What a program can ask for, a person can type."""
    assert set(OPERATIONS) <= {verb.operation for verb in verbs.VERBS} | {"nudge.export_all"}  # export --all


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], ["--json"], ["-p", "9000"]])
def test_grouped_help(nudge: Nudge, words: list[str]) -> None:
    """Without a verb: every verb in its group, one line each, with examples, and exit 0."""
    outcome = nudge(*words)
    assert (outcome.code, outcome.err) == (0, "")
    for group in verbs.GROUPS:
        assert f"{group}:" in outcome.out
    for verb in SHOWN:
        assert f"\n  {verb.name} " in outcome.out and verb.help in outcome.out
    assert "complete " not in outcome.out.replace("completion ", "")
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.parametrize("verb", SHOWN, ids=lambda verb: verb.name)
def test_help_of_a_verb(nudge: Nudge, verb: verbs.Verb) -> None:
    """Each verb explains itself, with examples, wherever --help stands."""
    outcome = nudge(verb.name, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"usage: nudge {verb.name} ") and "examples:" in outcome.out
    assert nudge("--help", verb.name).out == outcome.out == nudge("help", verb.name).out
    for alias in verb.aliases:
        assert nudge(alias, "--help").out == outcome.out


def test_every_flag_is_explained() -> None:
    """A flag without a word about it would be a riddle."""
    for verb in SHOWN:
        assert all(action.help for action in parser_of(verb)._actions), verb.name


@pytest.mark.parametrize("verb", SHOWN, ids=lambda verb: verb.name)
def test_examples_parse(verb: verbs.Verb) -> None:
    """What the help tells people to type is a command line that we take."""
    for example in importlib.import_module(verb.module).EXAMPLES:
        bare = example.partition(" (")[0].rpartition("|")[2].rpartition("$(")[2]
        words = shlex.split(re.split("[)<>]", bare)[0])
        if words[:2] == ["nudge", verb.name]:
            assert parser_of(verb).parse_args(words[2:]) is not None


@pytest.mark.parametrize("words", [["--version"], ["get", "--version"], ["--version", "get", "a"]])
def test_version(nudge: Nudge, words: list[str]) -> None:
    """--version answers anywhere on the line."""
    outcome = nudge(*words)
    assert (outcome.code, outcome.out) == (0, f"nudge {__version__}\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["gte", "a"], "nudge: there is no verb 'gte'; did you mean: nudge get"),
        (["list"], "nudge: there is no verb 'list'; did you mean: nudge ls"),
        (["xyzzy"], "nudge: there is no verb 'xyzzy'; try: nudge --help"),
        (["\x1b[2J"], "nudge: there is no verb '\\x1b[2J'; try: nudge --help"),
        (["--tags", "a", "set"], "nudge: --tags needs a verb before it; try: nudge --help"),
        (["--foo"], "nudge: --foo needs a verb before it; try: nudge --help"),
        (["get", "a"], "nudge get: missing KEY; try: nudge get http-proxy build"),
        (["get"], "nudge get: missing COMPONENT, KEY; try: nudge get http-proxy build"),
        (["get", "a", "b", "c"], "nudge get: one argument too many: 'c'; quote a value that has spaces"),
        (["get", "a", "b", "--valueonly"], "nudge get: unknown option '--valueonly'; did you mean: --value-only"),
        (["get", "a", "b", "--zzz=1"], "nudge get: unknown option '--zzz'; try: nudge get --help"),
        (
            ["get", "--frobnicate"],
            "nudge get: unknown option '--frobnicate'; what starts with - and is no option goes after --",
        ),
        (["set", "a", "b", "-v"], "nudge set: unknown option '-v'; what starts with - and is no option goes after --"),
        (["set", "a", "b", "--ttl=PT1H", "--tag"], "nudge set: unknown option '--tag'; did you mean: --tags"),
        (
            ["set", "a", "-p9", "--", "--tag"],
            'nudge set: missing VALUE; try: nudge set http-proxy build "docker compose build router"',
        ),
        (["export", "--", "x"], "nudge export: one argument too many: 'x'; quote a value that has spaces"),
        (["-p"], "nudge: -p needs a port; try: nudge -p 9000 status"),
        (["--json", "--port"], "nudge: --port needs a port; try: nudge --port 9000 status"),
        (["-p", "get", "a", "b"], "nudge: -p needs a port; try: nudge -p 9000 status"),
        (["get", "a", "b", "-p", "0"], "nudge get: -p/--port: 0 is not a port (1 to 65535); see: nudge get --help"),
        (["get", "a", "b", "--env", "X"], "nudge get: --env: 'X' is not NAME=VALUE; see: nudge get --help"),
    ],
)
def test_usage_errors(nudge: Nudge, words: list[str], line: str) -> None:
    """One line on stderr that says what to type instead, and exit 2."""
    outcome = nudge(*words)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", line + "\n")
