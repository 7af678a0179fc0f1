"""Off means off: nothing is sent, nothing is kept, nothing is told."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from nudge import hook
from nudge.cli import app
from nudge.core.context import Context
from nudge.core.errors import Invalid, SettingInvalid, StorageFailed
from nudge.security.ignore_globs import is_ignored
from nudge.settings import config
from nudge.settings import switches as switch
from nudge.settings.table import SETTINGS
from nudge.storage import spool
from tests.unit.history.payloads import bash, payload, tool

REPO = Context(cwd="/home/u/app/src", repo="git:org/app", project="app")
FOLDER = Context(cwd="/home/u/notes", project="notes")


@pytest.fixture
def runtime(tmp_path: Path) -> str:
    return str(tmp_path / "run")


@pytest.fixture
def environ(runtime: str, tmp_path: Path) -> dict[str, str]:
    return {"NUDGE_RUNTIME_DIR": runtime, "NUDGE_CONFIG": str(tmp_path / "config.toml"), "NUDGE_AUTOSTART": "0"}


def recorded(told: dict[str, object], environ: dict[str, str]) -> int:
    """How many events wait after one was told; without a server none can go elsewhere."""
    assert hook.main(io.BytesIO(json.dumps(told).encode()), environ) == 0
    return spool.counts(environ["NUDGE_RUNTIME_DIR"])["files"]


def test_a_project_is_turned_off_alone(runtime: str) -> None:
    """By its repository, wherever it is cloned."""
    switch.turn_off(runtime, REPO)
    switches = switch.load(runtime)
    assert switches.covers(Context(cwd="/elsewhere", repo="git:org/app"))
    assert not switches.covers(Context(cwd="/home/u/app", repo="git:org/other")) and not switches.covers(FOLDER)


def test_a_folder_is_turned_off_with_all_below(runtime: str) -> None:
    """Where there is no repository; a name that only begins the same is another one."""
    switch.turn_off(runtime, FOLDER)
    switches = switch.load(runtime)
    assert switches.covers(FOLDER) and switches.covers(Context(cwd="/home/u/notes/a/b"))
    assert not switches.covers(Context(cwd="/home/u/notes2")) and not switches.covers(Context())


def test_everything_is_turned_off(runtime: str) -> None:
    """Also where nothing is known of the place."""
    switch.turn_off(runtime, None)
    assert switch.load(runtime).covers(Context())


def test_twice_is_once(runtime: str) -> None:
    """A project is listed once; a repository is turned on by one word, from any directory in it."""
    for context in (FOLDER, FOLDER, REPO, REPO):
        switch.turn_off(runtime, context)
    assert switch.load(runtime).projects == ["/home/u/notes", "git:org/app"]
    switch.turn_on(runtime, Context(cwd="/home/u/app/docs", repo="git:org/app"))
    assert switch.load(runtime).projects == ["/home/u/notes"]
    switch.turn_on(runtime, FOLDER)
    assert switch.load(runtime).projects == []


def test_a_part_does_not_turn_the_whole_on(runtime: str) -> None:
    """What is off for a directory stays off for all that is in it, repositories too, until it is turned on there."""
    switch.turn_off(runtime, Context(cwd="/w"))
    for part in (Context(cwd="/w/alpha"), Context(cwd="/w/beta", repo="git:org/beta")):
        with pytest.raises(Invalid, match=re.escape("it is off for all of /w; turn it on with: (cd /w && nudge on)")):
            switch.turn_on(runtime, part)
    assert switch.load(runtime).projects == ["/w"]


def test_a_part_that_was_turned_off_stays_off_without_the_whole(runtime: str) -> None:
    """Whatever was turned around it meanwhile; and what could not be turned on is as it was."""
    whole, part, deep = Context(cwd="/p"), Context(cwd="/p/a"), Context(cwd="/p/a/b")
    for context in (part, deep, whole):
        switch.turn_off(runtime, context)
    with pytest.raises(Invalid, match=re.escape("(cd /p && nudge on) && nudge on")):
        switch.turn_on(runtime, part)
    assert switch.load(runtime).projects == ["/p/a", "/p/a/b", "/p"]
    assert not switch.turn_on(runtime, whole).covers(whole)
    assert not switch.turn_on(runtime, part).covers(part)
    assert switch.load(runtime).covers(deep)


def test_on_for_all_is_on_for_each(runtime: str) -> None:
    """And on for one is refused until then."""
    switch.turn_off(runtime, REPO)
    switch.turn_off(runtime, FOLDER)
    switch.turn_off(runtime, None)
    with pytest.raises(Invalid, match="nudge on --all"):
        switch.turn_on(runtime, REPO)
    assert switch.load(runtime).to_json() == {"all": True, "projects": ["git:org/app", "/home/u/notes"]}
    assert switch.turn_on(runtime, None).to_json() == {"all": False, "projects": []}


def test_many_at_once_lose_nothing(runtime: str) -> None:
    """A loop over all projects may run in the background."""
    changes = [threading.Thread(target=switch.turn_off, args=(runtime, Context(cwd=f"/p/{n}"))) for n in range(8)]
    for change in changes:
        change.start()
    for change in changes:
        change.join()
    assert sorted(switch.load(runtime).projects) == [f"/p/{n}" for n in range(8)]


def test_the_file_is_the_owners(runtime: str) -> None:
    """It names projects."""
    switch.turn_off(runtime, REPO)
    assert stat.S_IMODE(os.stat(os.path.join(runtime, switch.FILE)).st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"all": false}', '{"all": false, "projects": 7}'])
def test_a_broken_file_stops_recording(
    runtime: str, environ: dict[str, str], content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """To record what somebody turned off would be worse than to record nothing."""
    os.makedirs(runtime, mode=0o700)
    Path(runtime, switch.FILE).write_text(content, encoding="utf-8")
    with pytest.raises(StorageFailed, match=switch.FILE):
        switch.load(runtime)
    assert hook.main(io.BytesIO(json.dumps(bash("ls")).encode()), environ) == 1
    assert switch.FILE in capsys.readouterr().err and spool.pending(runtime) == []


def test_nothing_is_recorded_where_it_is_off(
    runtime: str, environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """No spool either, and a session starts without a word; elsewhere it goes on."""
    switch.turn_off(runtime, Context(cwd="/home/u/proj"))
    assert recorded(bash("ls"), environ) == recorded(payload("SessionStart", source="startup"), environ) == 0
    assert capsys.readouterr() == ("", "")
    assert recorded(bash("ls", cwd="/home/u/other"), environ) == 1


@pytest.mark.parametrize(("value", "events"), [("1", 0), ("true", 0), (" ON ", 0), ("0", 1), ("", 1), ("no", 1)])
def test_one_run_can_be_off(environ: dict[str, str], value: str, events: int) -> None:
    """`NUDGE_OFF=1 claude`."""
    assert recorded(bash("ls"), environ | {"NUDGE_OFF": value}) == events


@pytest.mark.parametrize("value", ["y", "2", "enabled", "tru", "-"])
def test_a_switch_that_is_not_understood_records_nothing(
    environ: dict[str, str], value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody who sets it may want it off: the hook names the variable, and so do status and doctor."""
    environ |= {"NUDGE_OFF": value}
    assert hook.main(io.BytesIO(json.dumps(bash("ls")).encode()), environ) == 1
    assert capsys.readouterr().err == "nudge record: NUDGE_OFF: must be 1 or 0; nothing is recorded\n"
    assert spool.counts(environ["NUDGE_RUNTIME_DIR"])["files"] == 0
    with pytest.raises(SettingInvalid, match=r"^NUDGE_OFF: must be 1 or 0"):
        switch.why_off(environ, environ["NUDGE_RUNTIME_DIR"], REPO)
    assert config.load_or_default(environ)[1] == "NUDGE_OFF: must be 1 or 0"


@pytest.mark.parametrize("text", ["1", "true", "YES", " on ", "0", "False", "no", "off", "y", "2", "enabled", "", "t"])
def test_one_parser_reads_every_switch(environ: dict[str, str], text: str) -> None:
    """A text means the same in `NUDGE_OFF`, in any other switch, in one of several values, and in config.toml."""
    del environ["NUDGE_AUTOSTART"]
    switches = [(setting.name, setting.variable) for setting in SETTINGS if setting.is_switch]
    assert {name for name, _ in switches} >= {"auth", "secret_guard", "off", "cross_project", "autostart"}

    environs = {name: {**environ, variable: text} for name, variable in switches if text}
    path = Path(environ["NUDGE_CONFIG"])

    def in_file(name: str) -> object:
        path.write_text(f"{name} = {json.dumps(text)}\n", encoding="utf-8")
        return getattr(config.load(environ), name)

    read: list[Callable[[], object]] = [
        *(partial(lambda name, told: getattr(config.load(told), name), *pair) for pair in environs.items()),
        lambda: config.load({**environ, "NUDGE_TELL": text}).tell,
        lambda: config.load({**environ, "NUDGE_JOURNAL": text}).journal,
        lambda: config.load({**environ, "NUDGE_MEMORIES": f"archive_on_gc={text}"}).memories["archive_on_gc"],
        *(partial(in_file, name) for name, _ in switches),
    ]
    assert {_meaning(one) for one in read} == {_meaning(lambda: switch.parse_switch(text))}


def _meaning(read: Callable[[], object]) -> bool | None:
    """On, off, or not understood."""
    try:
        return read() not in (False, "0")
    except (SettingInvalid, ValueError):
        return None


@pytest.mark.parametrize("variable", ["NUDGE_AUTH", "NUDGE_SECRET_GUARD", "NUDGE_OFF", "NUDGE_AUTOSTART"])
def test_an_empty_switch_is_not_set(environ: dict[str, str], variable: str) -> None:
    """`NUDGE_AUTH= nudge serve` must not serve without a token."""
    del environ["NUDGE_AUTOSTART"]
    name = variable.removeprefix("NUDGE_").lower()
    assert getattr(config.load({**environ, variable: " "}), name) is getattr(config.load(environ), name)


def test_off_for_a_run_is_off_for_anything(environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Also for what is no event at all."""
    assert hook.main(io.BytesIO(b"{"), environ | {"NUDGE_OFF": "1"}) == 0
    assert capsys.readouterr() == ("", "")


# Ignored paths

GLOBS = [
    ("/p/secret", "/p/secret", True),
    ("/p/secret", "/p/secret/deep/a.txt", True),
    ("/p/secret", "/p/secrets", False),
    ("/p/secret/", "/p/secret/a", True),
    ("/p/*", "/p/a", True),
    ("/p/*.env", "/p/x/a.env", False),
    ("/p/**/*.env", "/p/x/y/a.env", True),
    ("/p/**/*.env", "/p/a.env", True),
    ("/p/**", "/p/a/b", True),
    ("/p/**", "/p", True),
    ("/p/**/", "/p", True),
    ("/p/**", "/pa", False),
    ("**/customers/**", "/p/customers", True),
    ("**/customers/**", "/p/customers/acme/a.csv", True),
    ("**/customers/**", "/p/customers2/a.csv", False),
    ("**", "/p", True),
    ("/**", "/p/a", True),
    ("~/**", "/home/u/a", True),
    ("~/**", "/home/v/a", False),
    ("secret", "/p/a\nb/secret/c", True),
    ("*.env", "/p/x/prod.env", True),
    ("*.env", "/p/x/prod.envelope", False),
    (".env", "/p/.env", True),
    ("node_modules", "/p/node_modules/x/y.js", True),
    ("docs/private", "/p/docs/private/a.md", True),
    ("docs/private", "/p/docs/public/private", False),
    ("a?c", "/p/abc", True),
    ("a?c", "/p/a/c", False),
    ("[ab].txt", "/p/a.txt", True),
    ("[!ab].txt", "/p/a.txt", False),
    ("[^ab].txt", "/p/c.txt", True),
    ("[a-c].txt", "/p/b.txt", True),
    ("[[&].txt", "/p/[.txt", True),
    ("[z-a]", "/p/[z-a]", True),
    ("[z-a]", "/p/z", False),
    ("[!]", "/p/[!]", True),
    ("[a", "/p/[a", True),
    ("~/diary", "/home/u/diary/x", True),
    ("C:/work", "C:\\work\\a.txt", True),
    ("a.c", "/p/abc", False),
    ("", "/p/a", False),
    ("/", "/p/a", False),
]


@pytest.mark.parametrize(("glob", "path", "matches"), GLOBS)
def test_a_glob_is_read_as_in_gitignore(glob: str, path: str, matches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern covers what it matches and all below it; without a slash in front it matches anywhere."""
    monkeypatch.setenv("HOME", "/home/u")
    assert is_ignored(path, ["/nowhere", glob]) is matches


def configure(environ: dict[str, str], *lines: str) -> None:
    Path(environ["NUDGE_CONFIG"]).write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    "told",
    [
        tool("Read", {"file_path": "secret/a.txt"}),
        tool("Grep", {"pattern": "x", "path": "secret"}),
        bash("ls", cwd="/home/u/proj/secret"),
        tool("Grep", {"pattern": "x", "glob": "secret/*.csv"}),
        tool("Glob", {"pattern": "secret/**/*.csv"}),
        tool("Glob", {"pattern": "/home/u/proj/secret/*"}),
        tool("apply_patch", {"command": "*** Update File: a.py\n*** Add File: secret/b.py"}),
        tool("apply_patch", {"command": "*** Update File: a.py\n*** Move to: secret/b.py"}),
        tool(
            "apply_patch",
            {"command": "".join(f"*** Add File: {n}.py\n" for n in range(30)) + "*** Add File: secret/b.py"},
        ),
        tool("mcp__files__read", {"path": "secret/a.txt"}),
        tool("mcp__files__read_many", {"options": {"paths": ["a.txt", "./secret/a.txt"]}}),
        tool("mcp__files__open", {"what": "file:///home/u/proj/secret/a.txt"}),
        bash("cd x && cat ../proj/secret/a.txt"),
        bash("openssl rsa -in=~/keys/prod.pem"),
        bash("cd secret && cat acme.txt"),
        bash("ls secret"),
        bash("cat prod.pem"),
        bash("cat $HOME/diary/x"),
        bash('cat "${HOME}/diary/x"'),
        bash('cat "$HOME"/diary/x'),
        bash("echo " + " ".join(map(str, range(2_000))) + " > secret/a"),
        {
            "hook_event_name": "afterFileEdit",
            "conversation_id": "c",
            "workspace_roots": ["/home/u/proj"],
            "file_path": "secret/a",
        },
    ],
)
def test_an_ignored_path_is_not_recorded(
    told: dict[str, object], environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file, the place of a search and what it looks into, any file of a patch, what a foreign tool is given, a path
    in a command,
    the directory itself."""
    monkeypatch.setenv("HOME", "/home/u")
    configure(environ, 'ignore = ["*.pem", "**/secret/**", "~/diary"]')
    assert recorded(told, environ) == 0
    assert recorded(tool("Read", {"file_path": "open/a.txt"}), environ) == 1


@pytest.mark.parametrize(
    "told",
    [
        tool("Grep", {"pattern": "/secret/", "path": "src"}),
        tool("Edit", {"file_path": "a.py", "old_string": "/secret/", "new_string": "/secret/b"}),
        tool("mcp__tracker__find", {"text": "where is secret kept?", "state": "secret"}),
        bash("curl https://example.org/secret/a"),
        bash("cat $HOMES/diary/x secrets"),
    ],
)
def test_a_word_is_not_a_path(told: dict[str, object], environ: dict[str, str]) -> None:
    """What is looked for, written or asked may say anything."""
    configure(environ, 'ignore = ["**/secret/**"]')
    assert recorded(told, environ) == 1


def test_recording_can_be_off_by_setting(environ: dict[str, str]) -> None:
    """`off = true` in the file."""
    configure(environ, "off = true")
    assert recorded(bash("ls"), environ) == 0
    configure(environ, "off = false")
    assert recorded(bash("ls"), environ) == 1


def test_settings_that_cannot_be_read_stop_recording(
    runtime: str, environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """They may say what must not be recorded."""
    configure(environ, "ignore = [")
    assert hook.main(io.BytesIO(json.dumps(bash("ls")).encode()), environ) == 1
    assert "config.toml" in capsys.readouterr().err and spool.pending(runtime) == []


def test_a_file_that_speaks_of_something_else_is_not_parsed(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing it costs as much as all else that a hook does."""
    configure(environ, "port = 9000")

    def fail(_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(config, "load", fail)
    assert recorded(bash("ls"), environ) == 1


# The verbs


@pytest.fixture
def here(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "thesis"
    folder.mkdir()
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", runtime)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    monkeypatch.chdir(folder)
    return folder


def verb(name: str, *words: str) -> int:
    return app.main([name, *words])


def test_off_and_on_name_the_project(here: Path, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And the word that undoes it."""
    assert verb("off") == 0
    assert "recording and telling are off for thesis; turn them on with: nudge on" in capsys.readouterr().out
    assert switch.load(runtime).projects == [str(here)]
    assert verb("on") == 0
    assert "recording and telling are on for thesis" in capsys.readouterr().out
    assert switch.load(runtime).to_json() == {"all": False, "projects": []}


def test_on_names_the_directory_above(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `nudge off` was said, with the command that undoes it; and off here says the same."""
    assert verb("off") == 0
    part = here / "chapter 1"
    part.mkdir()
    monkeypatch.chdir(part)
    capsys.readouterr()
    assert verb("on") == 3
    undo = f"with: (cd {here} && nudge on)"
    assert f"recording stays off here, since it is off for all of {here}; turn it on {undo}" in capsys.readouterr().err
    assert verb("off") == 0
    assert f"recording and telling are off for chapter 1; turn them on {undo} && nudge on" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "value"), [("NUDGE_OFF", "1"), ("NUDGE_IGNORE", "thesis")])
def test_on_tells_what_it_cannot_turn(
    here: Path, runtime: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To say that recording is on would not be true; what was turned off stays so."""
    assert verb("off") == 0
    monkeypatch.setenv(name, value)
    assert verb("on") == verb("on", "--all") == 3
    assert switch.load(runtime).projects == [str(here)]
    assert f"turn it on with: unset {name}" in capsys.readouterr().err


def test_off_everywhere_stays_until_on_everywhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`nudge on` in one project cannot undo it, and says so."""
    assert here.exists() and verb("off", "--all") == 0
    assert "recording and telling are off everywhere; turn them on with: nudge on --all" in capsys.readouterr().out
    assert verb("off", "--all", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"recording": False, "all": True, "projects": []}
    assert verb("on") == 3
    assert "nudge on --all" in capsys.readouterr().err
    assert verb("on", "--all", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"recording": True, "all": False, "projects": []}
