"""Texts are wired and cleaned; files of others are read, replaced and removed."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nudge.clients import claude_code, config_files, json_edit, toml_edit
from nudge.clients.config_files import HOOKS, SERVER, JsonFile, TomlFile, WholeFile
from nudge.clients.executable import Executable
from nudge.clients.text_edit import Malformed, undo
from nudge.core.errors import Invalid, StorageFailed
from tests import effort
from tests.unit.clients import corpus
from tests.unit.clients.homes import tree

EXECUTABLE = Executable("/opt/my tools/nudge")
ENTRY = EXECUTABLE.server_entry
HANDLERS = claude_code.CLIENT.hook_handlers(EXECUTABLE)
JSON_FILE = JsonFile("settings.json", ("mcpServers", "nudge"), ENTRY, HANDLERS)
TOML_FILE = TomlFile("config.toml", "mcp_servers", "nudge", ENTRY)


def by_name(texts: dict[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("text", texts.values(), ids=texts.keys())


# JSON


@by_name(corpus.JSON)
def test_json_is_wired_and_back_to_the_byte(text: str) -> None:
    """Server and hooks are there, all else is as it was, and undoing it restores every byte."""
    draft = JSON_FILE.connect(text, text)
    assert JSON_FILE.is_connected(draft.text) and JSON_FILE.find(draft.text) == {SERVER, HOOKS}
    assert undo(draft.text, draft.undo()) == text


@by_name(corpus.JSON)
def test_json_is_only_added_to(text: str) -> None:
    """Each character of the original is still there in its order, but for space inside an empty object."""
    rest = iter(JSON_FILE.connect(text, text).text)
    assert all(char in rest for char in text if not char.isspace())


@by_name(corpus.JSON)
def test_json_is_cleaned_without_a_record(text: str) -> None:
    """Without knowing what was there, what is left means the same; containers that our entries leave empty go."""
    cleaned = JSON_FILE.clean(JSON_FILE.connect(text, text).text)
    assert cleaned is not None and JSON_FILE.find(cleaned) == set()
    assert without_empty(json_edit.load(cleaned)) == without_empty(json_edit.load(text))


@pytest.mark.parametrize(
    "name", ["two spaces", "tabs", "carriage returns", "line comments", "trailing commas", "hooks of others"]
)
def test_cleaning_alone_is_exact_where_the_containers_were_there(name: str) -> None:
    """Commas, comments, indentation and line ends fall back into place."""
    text = corpus.JSON[name]
    if "mcpServers" not in text:
        text = text.replace("{\n", '{\n  "mcpServers": {"x": {}},\n', 1)
    if '"hooks"' not in text:
        text = text.replace('"mcpServers"', '"hooks": {"Stop": [1]}, "mcpServers"', 1)
    assert JSON_FILE.clean(JSON_FILE.connect(text, "").text) == text


@by_name(corpus.OLD_JSON)
def test_an_old_entry_is_replaced_and_goes(text: str) -> None:
    """An installation that moved is wired once, not twice; taken out, nothing of either is left."""
    assert not JSON_FILE.is_connected(text) and JSON_FILE.find(text)
    base = JSON_FILE.clean(text)
    assert base is not None and JSON_FILE.find(base) == set()
    wired = JSON_FILE.connect(base, text).text
    assert JSON_FILE.is_connected(wired) and wired.count("/old") == 0
    assert undo(wired, JSON_FILE.connect(base, text).undo()) == base


def test_what_the_user_added_to_our_entry_stays() -> None:
    """The environment that a user gave the server is kept when its path changes."""
    text = corpus.OLD_JSON["old server"]
    wired = JSON_FILE.connect(JSON_FILE.clean(text) or "", text).text
    assert json_edit.load(wired)["mcpServers"]["nudge"] == {**ENTRY, "env": {"NUDGE_DB": "/d"}}


def test_hooks_of_others_in_the_same_group_stay() -> None:
    """When a user put our command beside their own, only ours is removed."""
    text = corpus.OLD_JSON["old hook in the group of another"]
    cleaned = JSON_FILE.clean(text)
    assert cleaned == '{"hooks": {"PostToolUse": [{"hooks": [{"command": "a"}, {"command": "b"}]}]}}'


def test_a_changed_timeout_is_left_alone() -> None:
    """A hook that its user has given more time is still ours, and still wired."""
    wired = JSON_FILE.connect("{}", "").text
    assert JSON_FILE.is_connected(wired.replace('"timeout": 5', '"timeout": 60'))
    assert not JSON_FILE.is_connected(wired.replace("/opt/my tools", "/opt/other"))


def test_the_author_s_hand_is_kept() -> None:
    """Indentation, line ends, and one line where all is one line."""
    tabs = JSON_FILE.connect(corpus.JSON["tabs"], "").text
    assert '\n\t\t"nudge": {\n\t\t\t"command"' in tabs and "  " not in tabs.replace("/opt/my tools/nudge", "")
    assert "\n" not in JSON_FILE.connect(corpus.JSON["one line"], "").text
    returns = JSON_FILE.connect(corpus.JSON["carriage returns"], "").text
    assert returns.count("\n") == returns.count("\r\n")
    assert JSON_FILE.connect("", "").text.endswith("}\n")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '"x"',
        "3",
        '{"mcpServers": []}',
        '{"mcpServers": null}',
        '{"hooks": [1]}',
        '{"hooks": {"PostToolUse": {}}}',
    ],
)
def test_another_shape_is_refused(text: str) -> None:
    """What is no object, or no list, where one belongs is not ours to replace."""
    with pytest.raises(Malformed, match="is no"):
        JSON_FILE.connect(text, text)


SPACE = st.sampled_from(("", " ", "\n", "\n  ", "\t", "\r\n", " // c\n", "/* x */", "\n\n"))
NAMES = st.sampled_from(("a", "b", "mcpServers", "hooks", "PostToolUse", "other", 'q"'))


@st.composite
def json_texts(draw: st.DrawFn, depth: int = 0, name: str = "") -> str:
    """An object with space and comments anywhere; `mcpServers` and `hooks` are of the shape that clients take."""
    if depth > 2 or (depth and name not in ("mcpServers", "hooks", "x") and draw(st.booleans())):
        return draw(st.sampled_from(("1", '"s"', "[]", "[1, 2]", "{}", "null", "[ {\n} ]")))
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    members = [f"{json.dumps(key)}{draw(SPACE)}:{draw(SPACE)}{draw(_member(key, depth))}" for key in names]
    body = ",".join(f"{draw(SPACE)}{member}{draw(SPACE)}" for member in members)
    trailing = draw(st.sampled_from(("", ","))) if members else ""
    return f"{{{body}{trailing}{draw(SPACE)}}}"


def _member(key: str, depth: int) -> st.SearchStrategy[str]:
    if key == "PostToolUse":
        return st.sampled_from(("[]", "[ ]", f"[{corpus.HOOK_OF_ANOTHER}]", f"[\n  {corpus.HOOK_OF_ANOTHER}, // c\n]"))
    return json_texts(depth + 1, "x" if key in ("mcpServers", "hooks") else key)


@settings(max_examples=effort.times(80))
@given(json_texts(), SPACE, SPACE)
def test_any_json_is_wired_and_back(text: str, before: str, after: str) -> None:
    """Inserting and removing is the identity, to the byte with the record of it, in meaning without."""
    whole = before + text + after
    draft = JSON_FILE.connect(whole, whole)
    assert JSON_FILE.is_connected(draft.text)
    assert undo(draft.text, draft.undo()) == whole
    assert without_empty(json_edit.load(JSON_FILE.clean(draft.text) or "")) == without_empty(json_edit.load(whole))


def without_empty(document: Any) -> Any:
    """Containers that our entries would have made are told apart from none at all by the record only."""
    kept = {key: value for key, value in (document or {}).items() if key not in ("hooks", "mcpServers")}
    hooks = {event: groups for event, groups in ((document or {}).get("hooks") or {}).items() if groups}
    servers = (document or {}).get("mcpServers") or {}
    return {**kept, **({"hooks": hooks} if hooks else {}), **({"mcpServers": servers} if servers else {})}


# TOML


@by_name(corpus.TOML)
def test_toml_is_wired_and_back_to_the_byte(text: str) -> None:
    """Everything before the block is as it was, and so is everything after undoing it."""
    draft = TOML_FILE.connect(text, text)
    assert TOML_FILE.is_connected(draft.text) and draft.text.startswith(text)
    assert undo(draft.text, draft.undo()) == text


@by_name(corpus.TOML)
def test_toml_is_cleaned_without_a_record(text: str) -> None:
    """All but empty lines at the end, which cannot be told from ours."""
    cleaned = TOML_FILE.clean(TOML_FILE.connect(text, text).text)
    assert cleaned is not None and cleaned.rstrip() == text.rstrip()


@by_name(corpus.OLD_TOML)
def test_an_old_table_is_replaced_and_goes(text: str) -> None:
    """Only our table and the marks: what Codex put between them, and comments on what follows, stay."""
    others = toml_edit.parse(text)
    others["mcp_servers"].pop("nudge")
    base = TOML_FILE.clean(text)
    assert base is not None and TOML_FILE.find(base) == set() and "nudge" not in base
    after = toml_edit.parse(base)
    assert {**after, "mcp_servers": after.get("mcp_servers", {})} == others
    assert ("# about tui" in base) == ("# about tui" in text)
    assert TOML_FILE.is_connected(TOML_FILE.connect(base, text).text)


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = { x = { command = "c" } }\n', "mcp_servers = 3\n", "[[mcp_servers]]\na = 1\n"],
)
def test_toml_that_no_table_can_follow_is_refused(text: str) -> None:
    """An inline table cannot be added to from below, and is not ours to rewrite."""
    with pytest.raises(Malformed, match=r"cannot be extended with \[mcp_servers\.nudge\]"):
        TOML_FILE.connect(text, text)


@pytest.mark.parametrize(
    "text", ['mcp_servers = { nudge = { command = "c" } }\n', '[mcp_servers]\nnudge.command = "c"\n']
)
def test_an_entry_that_is_no_table_is_left_to_its_author(text: str) -> None:
    """Half a line cannot be taken out safely."""
    with pytest.raises(Malformed, match="by hand"):
        TOML_FILE.clean(text)


def test_malformed_toml_is_named_with_its_line() -> None:
    """The error names the line to fix."""
    with pytest.raises(Malformed) as refusal:
        TOML_FILE.is_connected('a = 1\nb = "\n')
    assert refusal.value.line == 2


@given(st.text(max_size=20))
def test_any_path_is_spelled_so_that_toml_reads_it(path: str) -> None:
    """Quotes, backslashes, control characters, and what is not ASCII."""
    assert toml_edit.parse("\n".join(toml_edit.render_entries({"command": path, "args": [path]}))) == {
        "command": path,
        "args": [path],
    }


# A file of our own


def test_a_file_of_ours_is_made_and_goes() -> None:
    """A file of any version of Nudge is replaced and removed; another program's file is not touched."""
    file = WholeFile("nudge.js", "// nudge: new\n", "// nudge: ")
    assert file.connect("", "// nudge: old\n").text == "// nudge: new\n"
    assert file.clean("// nudge: old\n") is None
    assert file.clean("// theirs\n") == "// theirs\n"
    with pytest.raises(Malformed, match="not written by Nudge"):
        file.connect("// theirs\n", "// theirs\n")


# Reading and writing


def test_what_is_written_is_read(home: Path) -> None:
    """Line ends as they are, and the mode, and nothing beside the file."""
    path = home / "a.json"
    path.write_bytes(b"{\r\n}")
    path.chmod(0o640)
    assert config_files.read(str(path)) == "{\r\n}"
    config_files.write(str(path), "{\r\n\t}")
    assert tree(home) == {"a.json": b"{\r\n\t}"} and path.stat().st_mode & 0o777 == 0o640


def test_a_new_file_is_private_and_gets_its_directories(home: Path) -> None:
    """And both can be taken away again."""
    path = str(home / "x" / "y" / "a.json")
    assert config_files.missing_directories(path) == [str(home / "x"), str(home / "x" / "y")]
    config_files.write(path, "{}")
    assert os.stat(path).st_mode & 0o777 == 0o600
    config_files.remove(path, [str(home / "x"), str(home / "x" / "y")])
    assert tree(home) == {}


def test_a_directory_that_somebody_uses_stays(home: Path) -> None:
    """Made by us, but not empty any more."""
    (home / "x").mkdir()
    (home / "x" / "theirs").touch()
    config_files.write(str(home / "x" / "a"), "")
    config_files.remove(str(home / "x" / "a"), [str(home / "x")])
    assert tree(home) == {"x": None, "x/theirs": b""}


def test_links_are_followed_and_kept(home: Path) -> None:
    """Of people who keep their settings in a repository."""
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "a.json").write_text("{}")
    (home / "a.json").symlink_to("dotfiles/a.json")
    config_files.write(str(home / "a.json"), "{ }")
    assert tree(home) == {"a.json": b"dotfiles/a.json", "dotfiles": None, "dotfiles/a.json": b"{ }"}


def test_a_link_to_nothing_is_kept_too(home: Path) -> None:
    """What it will point to is made and removed; the link is its owner's."""
    (home / "a.json").symlink_to("later/b.json")
    before = tree(home)
    missing = config_files.missing_directories(str(home / "a.json"))
    config_files.write(str(home / "a.json"), "{}")
    assert (home / "later" / "b.json").read_text() == "{}"
    config_files.remove(str(home / "a.json"), missing)
    assert tree(home) == before


def test_a_write_that_fails_leaves_the_old_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, and with nothing beside it."""
    (home / "a.json").write_text("old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageFailed, match=r"~/a\.json: No space left"):
        config_files.write(str(home / "a.json"), "new")
    assert tree(home) == {"a.json": b"old"}


def test_what_is_no_text_is_refused(home: Path) -> None:
    """By its name and line, before anything is changed."""
    (home / "a.json").write_bytes(b"{\n\xff}")
    with pytest.raises(Invalid, match=r"~/a\.json, line 2: is not UTF-8"):
        config_files.read(str(home / "a.json"))
    with pytest.raises(Invalid, match="is not a regular file"):
        config_files.read(str(home))


MULTI_LINE = {
    "array in our table": (
        '[mcp_servers.nudge]\ncommand = "old"\nargs = [\n  "serve",\n]\nenv_vars = [\n["X"],\n]\n[after]\nb = 1\n'
    ),
    "array of arrays before": 'a = [\n[1, 2],\n[3],\n]\n[mcp_servers.nudge]\ncommand = "old"\n',
    "string that looks like our table": 'notes = """\n[mcp_servers.nudge]\n# >>> nudge\n"""\n',
    "string in our table": "[mcp_servers.nudge]\ncommand = 'old'\nnote = '''\n[other]\nx = 1\n'''\n[after]\nb = 1\n",
}


@pytest.mark.parametrize("name", MULTI_LINE)
def test_valid_multi_line_toml_is_taken(name: str) -> None:
    """Lines of a string or an array are not headers, whatever they look like; nothing else is lost."""
    text = MULTI_LINE[name]
    file = TomlFile("config.toml", "mcp_servers", "nudge", EXECUTABLE.server_entry)
    base = file.clean(text)
    assert base is not None
    rest = {key: value for key, value in tomllib.loads(text).items() if key != "mcp_servers"}
    assert tomllib.loads(base) == rest
    wired = file.connect(base, text).text
    assert file.is_connected(wired) and tomllib.loads(wired) == {
        **rest,
        "mcp_servers": {"nudge": EXECUTABLE.server_entry},
    }


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_directory_as_configuration_does_not_hang(make: Callable[[str], None], tmp_path: Path) -> None:
    """It is refused by name, and `nudge doctor` reads past it."""
    path = str(tmp_path / "settings.json")
    make(path)
    with pytest.raises(Invalid, match="is not a regular file; nothing was changed"):
        config_files.read(path)
    assert config_files.read_document(path) == {}
