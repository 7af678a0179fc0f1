"""What the README and the pages in docs/ say is so: transcripts are run, tables compared, links followed."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nudge.cli import output
from nudge.cli.app import load_command
from nudge.cli.verbs import GROUPS, Verb, find_verb, shown_verbs
from nudge.clients import plan, registry
from nudge.core import limits, paths
from nudge.core.scoring import USES_TO_SATURATE, WEEK
from nudge.hints.ranking import CONDITIONS_OF_FULL_SPECIFICITY, WEIGHTS
from nudge.history.observations import RETENTION_DAYS
from nudge.interfaces.operations import OPERATIONS
from nudge.settings import switches as switch
from nudge.settings.table import SETTINGS, Setting
from nudge.storage import spool
from tests.contract import readme
from tests.contract.readme import Page, Step
from tests.contract.shell import environ_with_nudge, run_in_bash
from tests.harness import ROOT, Machine

SHOWN = list(shown_verbs())
ONE_OF_EACH_MODULE = list({verb.module: verb for verb in SHOWN}.values())
WITH_TRANSCRIPTS = [page for page in readme.PAGES if page.blocks("console")]
CLONE = "/home/me/http-proxy"  # where the transcripts are told from
MAKEFILE = ".PHONY: build test\nbuild:\n\tdocker compose build router\ntest:\n\t@echo ok\n"


def _clone(folder: Path) -> Path:
    """The repo that the transcripts are told from."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/http-proxy.git\n')
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


def _steps(page: Page) -> list[Step]:
    """The transcripts of a page in order. Without curl, a block that needs it is left out."""
    blocks = [text for text in page.blocks("console") if "curl " not in text or shutil.which("curl")]
    return [step for text in blocks for step in readme.steps(text)]


@pytest.mark.parametrize("page", WITH_TRANSCRIPTS, ids=lambda page: page.path)
def test_transcripts(machine: Machine, page: Page) -> None:
    """The `console` blocks of a page are one session in a new clone of acme/http-proxy, and print what is shown."""
    steps = _steps(page)
    commands = [step.command for step in steps]
    clone = _clone(machine.base / "http-proxy")
    printed = [
        output.replace(str(clone), CLONE) for output in run_in_bash(commands, clone, environ_with_nudge(machine))
    ]
    assert [Step(step.command, readme.comparable(output)) for step, output in zip(steps, printed, strict=True)] == steps


def test_there_are_transcripts() -> None:
    """The README and most pages about commands show what a terminal shows."""
    assert readme.README in WITH_TRANSCRIPTS
    assert sum(len(_steps(page)) for page in WITH_TRANSCRIPTS) > 40


def _default(setting: Setting) -> str:
    if setting.default in ((), {}, ""):
        return "none"
    if isinstance(setting.default, bool):
        return f"`{int(setting.default)}`"
    return f"`{setting.default:.0f}`" if isinstance(setting.default, float) else f"`{setting.default}`"


def test_settings_table() -> None:
    """The table of settings is the table in `nudge.settings.config`, line for line."""
    lines = [f"| `{setting.variable}` | {_default(setting)} | {setting.description} |" for setting in SETTINGS]
    table = "\n".join(["| variable | default | meaning |", "|---|---|---|", *lines])
    assert re.findall(r"<!-- settings -->\n(.*?)\n<!-- /settings -->", readme.TEXT, re.DOTALL) == [table]


def test_every_verb_is_mentioned() -> None:
    """Each verb is named on some page."""
    said = " ".join(readme.code())
    assert [
        verb.name
        for verb in SHOWN
        if not re.search(rf"nudge {verb.name}\b", said) and f"`{verb.word}`" not in readme.TEXT
    ] == []


def test_the_page_of_commands_has_the_groups_of_the_table_of_verbs() -> None:
    """Each group of `nudge help all` is a heading there, and the table below it has the verbs of the group."""
    (commands,) = (page for page in readme.PAGES if page.path == "docs/commands.md")
    headings = re.findall(r"^### (.+)$", commands.text, re.MULTILINE)
    assert [re.sub(r"\[(.+?)\]\(.+?\)", r"\1", heading) for heading in headings] == list(GROUPS)
    for group, table in zip(GROUPS, commands.tables("| verb |"), strict=True):
        cells = " ".join(row[0] for row in table)
        assert re.findall(r"`nudge ([a-z]+)`", cells) == [verb.name for verb in shown_verbs(group, "")]


def test_every_listed_tool_is_mentioned() -> None:
    """The tools that are listed to an agent are the tools in the table."""
    cells = [row[0] for row in readme.rows("| tool |")]
    assert {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} == {
        operation.tool for operation in OPERATIONS.values() if operation.listed
    }


def test_every_client_is_mentioned() -> None:
    """Whatever can be wired is named where wiring is explained."""
    said = " ".join(cell for row in readme.rows("| agent |") for cell in row)
    assert [name for name in registry.names() if not re.search(rf"`(nudge connect )?{name}\b", said)] == []


def _options(verb: Verb) -> set[str]:
    return {name for param in load_command(verb).params for name in param.opts} | {"--help", "-h"}


def _verb_name(words: list[str]) -> str:
    """The verb that a command line begins with, of as many words as it has."""
    name = words[0]
    for word in words[1:]:
        if find_verb(name, word) is None:
            break
        name = f"{name} {word}"
    return name


def test_commands_exist() -> None:
    """Each `nudge VERB` in code is a verb, with options that it has."""
    options = {verb.name: _options(verb) for verb in SHOWN}
    for text in (*readme.code(), *readme.SECURITY.code(), *readme.PLUGIN.code()):
        for line in re.findall(r"\bnudge (?!nudge)([a-z]+[^\n|&;()`]*)", text):
            name = _verb_name(line.split())
            assert name in options, text
            assert set(re.findall(r"(?<!\S)--[a-z-]+", line)) <= options[name], text


def test_options_exist() -> None:
    """No option is named that no verb has."""
    known = {option for verb in SHOWN for option in _options(verb)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", " ".join(readme.code()))) <= known


@pytest.mark.parametrize("verb", ONE_OF_EACH_MODULE, ids=lambda verb: verb.name)
def test_help_of_a_verb(machine: Machine, verb: Verb) -> None:
    """`nudge VERB --help` works in a process of its own, with what its module imports, and starts no server."""
    done = machine.cli(*verb.name.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: nudge {verb.name} ")
    assert machine.endpoint() is None


def _leads_somewhere(target: str) -> bool:
    path, _, fragment = target.partition("#")
    if not (ROOT / path).is_file():
        return False
    return not fragment or fragment in Page.read(ROOT / path).anchors()


def test_links() -> None:
    """Every link leads to a file that is here, and to a heading in it."""
    documents = (*readme.PAGES, readme.SECURITY, readme.PLUGIN)
    assert "docs/nudge.svg" in readme.README.links()
    assert [(page.path, link) for page in documents for link in page.links() if not _leads_somewhere(link)] == []


def test_every_page_is_linked_from_the_readme() -> None:
    """A reader of the README finds every other page, and from each page the way back."""
    targets = {link.partition("#")[0] for link in readme.README.links()}
    assert len(readme.PAGES) > 1
    assert [page.path for page in (*readme.PAGES[1:], readme.SECURITY) if page.path not in targets] == []
    assert [page.path for page in readme.PAGES[1:] if "README.md" not in page.links()] == []


def test_every_example_is_linked() -> None:
    """Some page links each example."""
    links = {link for page in readme.PAGES for link in page.links()}
    assert {f"examples/{path.name}" for path in (ROOT / "examples").iterdir() if path.is_file()} <= links


def test_client_configuration() -> None:
    """What is to be pasted into a client's file is JSON that starts `nudge serve`."""
    pasted = [json.loads(text) for text in readme.code() if text.startswith('{"') and "serve" in text]
    servers = [next(iter(document.values()))["nudge"] for document in pasted]
    assert servers
    assert all((server["command"], server["args"]) == ("nudge", ["serve"]) for server in servers)


def test_formula() -> None:
    """The weights and constants of the score are those in force."""
    (formula,) = (text for text in readme.blocks("text") if text.startswith("score = "))
    assert {name: float(weight) for weight, name in re.findall(r"([\d.]+) \* (\w+) ", formula)} == WEIGHTS
    assert f"e^(-n/{USES_TO_SATURATE:.0f})" in formula and "n = uses - failures" in formula
    assert formula.count(f" / {WEEK / 86_400:.0f})") == 2
    assert f"priority / {limits.MAX_PRIORITY}, {limits.DEFAULT_PRIORITY} unless given" in formula
    assert f"{limits.DEFAULT_CONFIDENCE} unless given" in formula
    assert f"/ {CONDITIONS_OF_FULL_SPECIFICITY}, at most 1" in formula


def test_exit_codes() -> None:
    """The exit codes in the table are the exit codes there are."""
    codes = {value for name, value in vars(output).items() if name.startswith("EXIT_")}
    assert {int(row[0]) for row in readme.rows("| exit code |")} == codes


def test_lifetimes() -> None:
    """The durations in words are the defaults in seconds."""
    lived = " ".join(cell for row in readme.rows("| what | until |") for cell in row)
    assert f"{limits.SESSION_GRACE / 86_400:.0f} days (`NUDGE_SESSION_GRACE`" in lived
    assert f"{limits.HINT_IDLE / 86_400:.0f} days (`NUDGE_HINT_IDLE`)" in lived
    assert f"{limits.IDLE_EXIT / 60:.0f} minutes without clients and requests" in lived


def test_the_first_sweep_is_told() -> None:
    """In minutes, in the pages and in SECURITY.md."""
    sentence = f"never in the first {limits.FIRST_SWEEP / 60:.0f} minutes of a server"
    assert sentence in readme.TEXT and sentence in readme.SECURITY.text


def test_a_file_written_by_hand(machine: Machine) -> None:
    """The example of a file is imported as it is; an edited one changes what it says, and the rest is only counted."""
    (text,) = (text for text in readme.blocks("json") if '"components"' in text)
    assert machine.cli("import", "-", stdin=text).stdout == "✔ imported 2 hints, skipped 0\n"
    assert machine.json("get", "shop/test", "--repo", "git:github.com/acme/shop")["hint"]["value"]["cmd"] == "make test"
    edited = text.replace("staging.example.com", "example.com")
    assert machine.cli("import", "-", stdin=edited).stdout == "✔ imported 1 hint, skipped 1 (already here)\n"
    assert machine.json("get", "shop/staging")["hint"]["value"] == "https://example.com"


def test_retention() -> None:
    """The days in the table are the days in force, and no type has others."""
    (row,) = readme.rows("| commits and pushes |")
    columns = ("git_commit", "file_edit", "command", "file_read")
    assert row == [*(f"{RETENTION_DAYS[name]} days" for name in columns), "for good"]
    assert {RETENTION_DAYS[name] for name in columns} == set(RETENTION_DAYS.values())


@pytest.mark.parametrize(("platform", "column"), [("linux", 1), ("darwin", 2)])
def test_places(monkeypatch: pytest.MonkeyPatch, platform: str, column: int) -> None:
    """The directories are those that the code computes, and every file in the first of them is named."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr("nudge.core.paths.sys.platform", platform)
    runtime, database, logs, config = readme.rows("| directory | Linux |")
    assert _said(runtime[column]) == str(Path(paths.runtime_dir({})).parent / "MACHINE")
    assert _said(database[column]) == str(Path(paths.default_database_file({})).parent)
    elsewhere = " ".join(row[0] for row in readme.rows("| file elsewhere |"))
    assert f"`{Path(paths.default_database_file({})).name}`" in elsewhere
    assert _said(logs[column]) == paths.log_dir({})
    assert _said(config[column]) == str(Path(paths.config_file({})).parent)
    files = {
        paths.LOCK,
        paths.MEMBERS,
        paths.ENDPOINT,
        paths.TOKEN,
        paths.CHANGE_LOG,
        f"{paths.CHANGE_LOG}.damaged",
        paths.PREVIOUS,
        paths.SETTINGS,
        paths.DIRECTORIES,
        paths.START_LOCK,
        paths.START_REPORT,
    }
    files |= {switch.FILE, plan.CONNECTED_FILES, f"{spool.FOLDER}/"}
    named = " ".join(row[0] for row in readme.rows("| file in the state directory |"))
    assert set(re.findall(r"`([^`]+)`", named)) == files


def _said(cell: str) -> str:
    return cell.strip("`").rstrip("/").replace("~", "/home/me")


def test_make_targets() -> None:
    """Every `make ...` is a target; the README begins with the two that a newcomer needs."""
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = [target for text in readme.code() for target in re.findall(r"^make ([a-z0-9]+)", text, re.MULTILINE)]
    assert named[:2] == ["serve", "test"]
    assert set(named) <= targets


@pytest.mark.parametrize("path", ["docs/architecture.md", "CONTRIBUTING.md", "tests/README.md"])
def test_what_developers_read_names_what_exists(path: str) -> None:
    """Every file and directory that these pages name as code, and every link."""
    page = readme.Page.read(ROOT / path)
    named = {span for span in page.code() if re.fullmatch(r"(?:nudge|tests|docs)/[\w./-]+", span)}
    assert named and not {name for name in named if "NAME" not in name and not (ROOT / name).exists()}
    assert not [target for target in page.links() if not (ROOT / target.partition("#")[0]).exists()]


def test_packages() -> None:
    """The table of packages has every package, and only those."""
    packages = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "nudge").glob("*/__init__.py")}
    assert {row[0].strip("`") for row in readme.rows("| package |")} == packages


def test_picture() -> None:
    """The picture is well-formed, has a form for dark pages, and fetches nothing."""
    text = (ROOT / "docs" / "nudge.svg").read_text()
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"<script|<image|@import|url\((?!#)|href=", text)


def test_limits_are_told() -> None:
    """How many hints, components and bytes there may be, as `nudge.core.limits` has them."""
    counts = f"{limits.MAX_HINTS:,} hints (`NUDGE_MAX_HINTS`) in {limits.MAX_COMPONENTS} components"
    each = f"{limits.MAX_HINTS_PER_COMPONENT} in each component, {limits.MAX_VALUE_BYTES // limits.KIB} KiB each"
    assert f"At most {counts}, {each}." in readme.TEXT


def test_every_seed_pack_is_told() -> None:
    """The pages name each pack and the command that imports one."""
    names = sorted(path.stem for path in (ROOT / "seeds").glob("*.json"))
    assert f"for {', '.join(f'`{name}`' for name in names[:-1])} and `{names[-1]}` repos" in readme.TEXT
    assert "`nudge import seeds/python.json`" in readme.TEXT
