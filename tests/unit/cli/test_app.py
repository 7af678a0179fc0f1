from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

import pytest

from nudge import __version__
from nudge.cli.app import Root, load_command
from nudge.cli.plain import Invocation
from nudge.cli.verbs import GROUPS, MODULES, Verb, all_verbs, shown_verbs
from tests.unit.cli.conftest import HINT, Nudge, Server
from tests.unit.cli.test_history import FACT
from tools import verb_index

SHOWN = list(shown_verbs())


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], ["--json"], ["-p", "9000"]])
def test_help_is_one_screen(nudge: Nudge, words: list[str]) -> None:
    """Without a verb: the ten verbs that a newcomer needs, on a screen of 24 lines, and where the others are."""
    outcome = nudge(*words)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert re.findall(r"^  (\w+) +\S", outcome.out, re.MULTILINE) == [
        *("set", "get", "query", "remember", "recall", "search", "inject", "status", "connect", "doctor")
    ]
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert "nudge help all" in outcome.out and "nudge help COMMAND" in outcome.out


def test_help_all(nudge: Nudge) -> None:
    """Every verb in its group, one line each, with the global options and examples."""
    outcome = nudge("help", "all")
    assert (outcome.code, outcome.err) == (0, "")
    for group in GROUPS:
        assert f"\n{group}:\n" in outcome.out
    for verb in SHOWN:
        listed = re.search(rf"^  {verb.name} +{re.escape(verb.summary)}", outcome.out, re.MULTILINE)
        assert bool(listed) is not bool(verb.parent)
    assert "\nExamples:\n" in outcome.out and max(map(len, outcome.out.splitlines())) <= 80
    assert "--port" in outcome.out and "(also: rm)" in outcome.out


def test_a_seed_name_works_and_is_not_listed(nudge: Nudge, server: Server) -> None:
    """`nudge memory` is `nudge note` and `nudge list-components` is `nudge ls`; no help names them."""
    server.answers["nudge.memory_gc"] = {"expired_deleted": 2}
    assert nudge("memory", "gc").out == nudge("note", "gc").out == "✔ archived 2 expired notes\n"
    for words in (["get"], ["archive"], ["archive", "list"]):
        texts = {nudge(*line).out for line in (["memory", *words, "-h"], ["note", *words, "-h"])}
        texts.add(nudge("help", "memory", *words).out)
        assert len(texts) == 1 and "nudge memory" not in texts.pop()
        assert nudge("man", "memory", *words).out == nudge("man", "note", *words).out
    assert nudge("list-components", "--help").out == nudge("ls", "--help").out
    listed = nudge("help", "all").out + nudge("--help").out + nudge("note", "--help").out
    assert not re.search(r"^  memory\b|list-components|also: memory", listed, re.MULTILINE)


@pytest.mark.parametrize(
    ("shown", "other"),
    [
        (["facts", "--repo", "api"], ["learned", "--project", "api"]),
        (["recent", "--all-repos"], ["recent", "--all-projects"]),
        (["note", "list", "--repo", "api"], ["memory", "list", "--namespace", "api"]),
        (["note", "list", "--repo", "api"], ["note", "list", "--project=api"]),
        (["note", "repos"], ["note", "namespaces"]),
        (["explain", "x", "--repo", "api"], ["explain", "x", "--project", "api"]),
    ],
)
def test_the_names_of_the_seeds_are_accepted(nudge: Nudge, server: Server, shown: list[str], other: list[str]) -> None:
    """Facts, repos and notes under the names that seeds and tools have for them; no help lists these."""
    answer = {"items": [], "errors": [], "metadata": {"query": "x"}}
    server.answers |= {
        "nudge.learned": {"facts": [FACT]},
        "nudge.recent_context": [],
        "nudge.memory_list": {"memories": []},
        "nudge.memory_namespaces": {"namespaces": []},
        "nudge.memory_explain": answer,
    }
    assert nudge(*shown).code == 0
    calls, server.calls = server.calls, []
    assert nudge(*other).code == 0 and server.calls == calls != []
    assert not re.search(r"--(project|namespace|all-projects)\b", nudge(*other, "--help").out)


@pytest.mark.parametrize("words", [["memory", "get", "x"], ["note", "get", "x"]])
def test_an_error_names_the_verb_as_help_does(nudge: Nudge, words: list[str]) -> None:
    """Whichever name was typed."""
    assert nudge(*words).err.startswith("nudge note get: E_INVALID (40001): ID: ")


@pytest.mark.parametrize("parent", sorted({verb.parent for verb in SHOWN if verb.parent}))
def test_a_verb_that_has_verbs_lists_them(nudge: Nudge, parent: str) -> None:
    """With --help, and alone unless it lists something better; one that does not exist is told from those that do."""
    outcome = nudge(*parent.split(), "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert parent == "journal" or nudge(*parent.split()).out == outcome.out
    for verb in SHOWN:
        if verb.parent == parent:
            assert re.search(rf"^  {verb.word} +{re.escape(verb.summary)}", outcome.out, re.MULTILINE)
    unknown = nudge(*parent.split(), "lits")
    has_list = any(verb.name == f"{parent} list" for verb in SHOWN)
    meant = "init" if parent == "team" else "list" if has_list else None
    advice = f"try: nudge {parent} --help" if meant is None else f"did you mean: nudge {parent} {meant}"
    assert unknown.code == 2
    assert unknown.err == f"nudge {parent}: unknown command 'lits'; {advice}\n"


@pytest.mark.parametrize("verb", SHOWN, ids=lambda verb: verb.name)
def test_help_of_a_verb(nudge: Nudge, verb: Verb) -> None:
    """Each verb explains itself, with examples, wherever --help stands and by each of its names."""
    words = verb.name.split()
    outcome = nudge(*words, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"Usage: nudge {verb.name} ") and "\nExamples:\n" in outcome.out
    assert nudge("--help", *words).out == outcome.out == nudge("help", *words).out == nudge(*words, "-h").out
    for alias in verb.aliases:
        assert nudge(alias, "--help").out == outcome.out


def test_the_index_of_verbs_is_that_of_the_code() -> None:
    """`make handshake` writes it; a module with verbs that is in no list would have none."""
    assert verb_index.FILE.read_text() == verb_index.text()
    package = verb_index.FILE.parents[1]
    with_verbs = {path for path in package.rglob("*.py") if "\n@verb(" in path.read_text()}
    assert with_verbs == {package.parent / f"{module.replace('.', '/')}.py" for module in MODULES}


@pytest.mark.parametrize("verb", all_verbs(), ids=lambda verb: verb.name)
def test_every_parameter_is_explained(verb: Verb) -> None:
    """Each option and argument has help, and each verb has --json and --port."""
    params = load_command(verb).params
    assert [param.name for param in params if not param.help and not getattr(param, "hidden", False)] == []
    assert {"--json", "-p", "--port"} <= {name for param in params for name in param.opts}


@pytest.mark.parametrize("verb", SHOWN, ids=lambda verb: verb.name)
def test_no_variable_sets_an_option(verb: Verb) -> None:
    """Settings come from `nudge.settings.config` alone: click reads no environment variables."""
    assert all(param.envvar is None for param in load_command(verb).params)


@pytest.mark.parametrize("verb", SHOWN, ids=lambda verb: verb.name)
def test_examples_parse(verb: Verb) -> None:
    """What the help tells people to type is a command line that the parser accepts."""
    for example in load_command(verb).examples:
        bare = example.partition(" (")[0].rpartition("|")[2].rpartition("$(")[2]
        words = shlex.split(re.split("[)<>]", bare)[0])
        own = ["nudge", *verb.name.split()]
        if words[: len(own)] == own:
            parent = Root().make_context("nudge", [], obj=Invocation())
            assert load_command(verb).make_context(verb.word, words[len(own) :], parent=parent).params is not None


@pytest.mark.parametrize(
    "words", [["--version"], ["-V"], ["get", "--version"], ["--version", "get", "a"], ["ls", "-V"], ["version"]]
)
def test_version(nudge: Nudge, words: list[str]) -> None:
    """--version answers anywhere on the line."""
    outcome = nudge(*words)
    assert (outcome.code, outcome.out) == (0, f"nudge {__version__}\n")


WRONG = "E_INVALID (40001):"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["gte", "a"], "nudge: unknown command 'gte'; did you mean: nudge get"),
        (["list"], "nudge: unknown command 'list'; did you mean: nudge ls"),
        (["forget"], "nudge: unknown command 'forget'; did you mean: nudge note forget"),
        (["notes"], "nudge: unknown command 'notes'; did you mean: nudge note"),
        (["memories"], "nudge: unknown command 'memories'; did you mean: nudge note"),
        (["attempts"], "nudge: unknown command 'attempts'; did you mean: nudge journal"),
        (["attempt"], "nudge: unknown command 'attempt'; did you mean: nudge journal"),
        (["hints"], "nudge: unknown command 'hints'; did you mean: nudge ls"),
        (["promote"], "nudge: unknown command 'promote'; did you mean: nudge note promote"),
        (["memory", "lits"], "nudge note: unknown command 'lits'; did you mean: nudge note list"),
        (["xyzzy"], "nudge: unknown command 'xyzzy'; try: nudge --help"),
        (["help", "xyzzy"], "nudge: unknown command 'xyzzy'; try: nudge --help"),
        (["\x1b[2J"], "nudge: unknown command '\\x1b[2J'; try: nudge --help"),
        (["--tags", "a", "set"], "nudge: unknown option '--tags' before the command; try: nudge --help"),
        (["--foo"], "nudge: unknown option '--foo' before the command; try: nudge --help"),
        (["bump", "a"], "nudge bump: missing KEY; try: nudge bump http-proxy build"),
        (["get", "a", "--value-only"], "nudge get: missing KEY; try: nudge get http-proxy build"),
        (["get"], "nudge get: missing COMPONENT; try: nudge get http-proxy build"),
        (["get", "a", "b", "c"], "nudge get: unexpected argument 'c'; quote a value that contains spaces"),
        (["bump", "a", "b", "-1"], "nudge bump: unexpected argument '-1'; give it as: --delta -1"),
        (["get", "a", "b", "-1"], "nudge get: unexpected argument '-1'; quote a value that contains spaces"),
        (["get", "a", "b", "--valueonly"], "nudge get: unknown option '--valueonly'; did you mean: --value-only"),
        (["get", "a", "b", "--value"], "nudge get: unknown option '--value'; did you mean: --value-only"),
        (["get", "a", "b", "--zzz=1"], "nudge get: unknown option '--zzz'; see: nudge get --help"),
        (
            ["search", "x", "--zzz"],
            "nudge search: unknown option '--zzz'; see: nudge search --help; a value that starts with - goes after --",
        ),
        (
            ["set", "a", "b", "-v"],
            "nudge set: unknown option '-v'; see: nudge set --help; a value that starts with - goes after --",
        ),
        (
            ["set", "a", "b", "--ttl=PT1H", "--tag"],
            "nudge set: unknown option '--tag'; did you mean: --tags; a value that starts with - goes after --",
        ),
        (
            ["set", "api", "flag", "--verbose"],
            "nudge set: unknown option '--verbose'; see: nudge set --help; a value that starts with - goes after --",
        ),
        (
            ["query", "x", "--limit", "0"],
            f"nudge query: {WRONG} --limit: 0 is not a number of results (1 or more); see: nudge query --help",
        ),
        *(
            (
                [verb, "a", "b", *value, option, "linux,beos"],
                f"nudge {verb}: {WRONG} {option}: 'beos' is not one of 'linux', 'darwin', 'windows';"
                f" see: nudge {verb} --help",
            )
            for verb, value, option in (
                ("set", ["c"], "--scope-os"),
                ("set", ["c"], "--os"),
                ("delete", [], "--scope-os"),
            )
        ),
        (["ls", "--versoin"], "nudge ls: unknown option '--versoin'; did you mean: --version"),
        (["connect", "codex", "--dry-run"], "nudge connect: unknown option '--dry-run'; did you mean: --print"),
        (
            ["set", "a", "-p9", "--", "--tag"],
            'nudge set: missing VALUE; try: nudge set http-proxy build "docker compose build router"',
        ),
        (["set", "a", "b", "c", "--tags"], "nudge set: --tags needs a value; see: nudge set --help"),
        (["serve", "--bogus"], "nudge serve: unknown option '--bogus'; see: nudge serve --help"),
        (["man", "gett"], "nudge man: unknown command 'gett'; did you mean: nudge man get"),
        (
            ["completion", "bsh"],
            "nudge completion: E_INVALID (40001): SHELL: 'bsh' is not one of 'bash', 'zsh', 'fish'; did you mean: bash",
        ),
        (["ls", "--json=1"], "nudge ls: --json takes no value; see: nudge ls --help"),
        (
            ["note", "forget", "old", "x*"],
            "nudge note forget: unexpected argument 'old x*'; give it as: --pattern 'old x*'",
        ),
        (["export", "--", "x"], "nudge export: unexpected argument 'x'; quote a value that contains spaces"),
        (["-p"], "nudge: -p needs a value; try: nudge --help"),
        (["--json", "--port"], "nudge: --port needs a value; try: nudge --help"),
        (
            ["-p", "get", "a", "b"],
            "nudge: E_INVALID (40001): -p/--port: 'get' is not a whole number; try: nudge --help",
        ),
        (
            ["get", "a", "b", "-p", "0"],
            "nudge get: E_INVALID (40001): -p/--port: 0 is not a port (1 to 65535); see: nudge get --help",
        ),
        (
            ["get", "a", "b", "--env", "X"],
            "nudge get: E_INVALID (40001): --env: 'X' is not NAME=VALUE; see: nudge get --help",
        ),
        (
            ["get", "a", "b", "--os", "beos"],
            f"nudge get: {WRONG} --os: 'beos' is not one of 'linux', 'darwin', 'windows'; see: nudge get --help",
        ),
    ],
)
def test_usage_errors(nudge: Nudge, words: list[str], line: str) -> None:
    """One line on stderr that says what to type instead, and exit 2. Options are never abbreviated."""
    outcome = nudge(*words)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", line + "\n")


@pytest.mark.parametrize(
    ("line", "field", "message"),
    [
        ("note get x --json", "note_id", "note_id: 'x' is not the id of a note, such as m12"),
        ("note list --tier forever --json", "tier", "tier: 'forever' is not one of 'short', 'mid', 'long'"),
        ("--json query x --limit 0", "limit", "limit: 0 is not a number of results (1 or more)"),
    ],
)
def test_a_wrong_value_has_a_code(nudge: Nudge, server: Server, line: str, field: str, message: str) -> None:
    """The one that the server has for a value that breaks a rule; with --json as an object, wherever the flag is."""
    outcome = nudge(*line.split())
    error = {"code": 40001, "message": message, "data": {"reason": "E_INVALID", "field": field}}
    assert (outcome.code, json.loads(outcome.out), outcome.err) == (2, {"error": error}, "")
    in_words = nudge(*line.replace("--json", "").split())
    assert in_words.code == 2 and ": E_INVALID (40001): " in in_words.err and in_words.err.count("\n") == 1
    assert server.calls == []


@pytest.mark.parametrize(
    "line",
    [
        *("import /nope", "scan /nope", "restore /nope --yes", "replay /nope", "backfill /nope", "note import /nope"),
        *("note sync /nope", "note sync /nope --direction pull", "note mine --format claude /nope"),
    ],
)
def test_a_file_that_does_not_exist(nudge: Nudge, server: Server, line: str) -> None:
    """Wrong usage for every verb that reads a file; the server is not asked."""
    outcome = nudge(*line.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith("nudge ") and "/nope" in outcome.err and server.calls == []


@pytest.mark.parametrize("words", [["help", "all"], ["search", "--help"], ["man", "search"]])
def test_json_is_not_always_an_object(nudge: Nudge, words: list[str]) -> None:
    """A search prints an array: the help does not promise more than JSON."""
    text = " ".join(nudge(*words).out.replace("\\-", "-").split())
    assert "--json Print the result as JSON." in text or "--json\\fR Print the result as JSON." in text


@pytest.mark.parametrize(
    "words", [["--json", "ls"], ["ls", "--json"], ["ls", "--json", "api"], ["ls", "api", "--json"]]
)
def test_json_anywhere(nudge: Nudge, server: Server, words: list[str]) -> None:
    """--json gives the exact result, before the verb, behind it, or between its arguments."""
    server.answers["nudge.list_components"] = {"components": [{"name": "api", "hint_count": 1}], "hints": []}
    assert nudge(*words).out == '{"components":[{"name":"api","hint_count":1}],"hints":[]}\n'


@pytest.mark.parametrize("words", [["-p", "9000", "ls"], ["ls", "-p9000"], ["ls", "api", "--port=9000"]])
def test_port_anywhere(nudge: Nudge, server: Server, words: list[str]) -> None:
    """--port reaches the client from wherever it stands."""
    server.answers["nudge.list_components"] = {"components": [], "hints": []}
    nudge(*words)
    assert server.made_with["port"] == 9000


def test_the_value_of_an_option_may_look_like_an_option(nudge: Nudge, server: Server) -> None:
    """What follows an option with a value is its value: `--tags --json` is a tag."""
    server.answers["nudge.set_hint"] = {"hint": HINT}
    assert not nudge("set", "a", "b", "c", "--tags", "--json", "--global").out.startswith("{")
    assert server.params["meta"]["tags"] == ["--json"]


@pytest.mark.parametrize("number", ["-1", "-1.5", "-.5"])
def test_a_negative_number_is_a_value(nudge: Nudge, server: Server, number: str) -> None:
    """It needs no `--`, since no option looks like it."""
    server.answers["nudge.set_hint"] = {"hint": HINT}
    assert nudge("set", "a", number, "--global", number).code == 0
    assert (server.params["key"], server.params["value"]) == (number, number)


def test_ctrl_c_is_130(nudge: Nudge, server: Server) -> None:
    """click's own exit code for it is 1, which means "not found" here."""
    server.answers["nudge.list_components"] = KeyboardInterrupt()
    outcome = nudge("ls")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "")


@pytest.mark.parametrize("words", [("--version",), ("get", "--help")])
def test_ctrl_c_while_the_line_is_parsed_is_130(
    nudge: Nudge, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]
) -> None:
    """These options print before a verb runs."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nudge.cli.output.print_line", interrupt)
    outcome = nudge(*words)
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "")
