"""`nudge connect` and `nudge disconnect` as they are typed."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nudge.cli import app
from nudge.clients import cursor, registry
from nudge.clients.executable import Executable, hook_script_path
from nudge.core import locks, paths
from nudge.settings import config
from tests.unit.clients.homes import empty_home, only_nudge_on_path, script, tree


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Nudge = Callable[..., Outcome]

WIRED = [client for client in registry.all_clients() if not client.by_hand]
BY_HAND = [client for client in registry.all_clients() if client.by_hand]

# `claude mcp add|remove --scope user NAME [-- COMMAND...]`, as Claude Code 2.1.325 writes its state: two spaces, no
# newline at the end.
CLAUDE = """
import json, os, sys
path = os.path.expanduser("~/.claude.json")
state = json.load(open(path)) if os.path.exists(path) else {}
servers = state.setdefault("mcpServers", {})
verb, name = sys.argv[2], sys.argv[5]
if verb == "add" and name in servers:
    sys.exit("MCP server nudge already exists in user config")
if verb == "add":
    servers[name] = {"type": "stdio", "command": sys.argv[7], "args": sys.argv[8:], "env": {}}
else:
    del servers[name]
open(path, "w").write(json.dumps(state, indent=2))
"""


@pytest.fixture(autouse=True)
def home(somewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of what other verbs get."""
    return empty_home(somewhere.parent, monkeypatch)


@pytest.fixture(autouse=True)
def bin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return only_nudge_on_path(tmp_path, monkeypatch)


@pytest.fixture
def executable(bin_directory: Path) -> str:
    return str(bin_directory / "nudge")


@pytest.fixture
def nudge(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """`nudge connect` and `nudge disconnect`, run in this process."""

    def run(name: str, *words: str) -> Outcome:
        capsys.readouterr()
        code = app.main([name, *words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What somebody at a terminal will type, line by line."""
    typed: list[str] = []

    class Keyboard:
        closed = False

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return typed.pop(0) + "\n"

    monkeypatch.setattr("sys.stdin", Keyboard())
    return typed


def install_claude(bin_directory: Path, code: str = CLAUDE) -> None:
    (bin_directory / "claude.py").write_text(code)
    script(bin_directory / "claude", f'exec "{sys.executable}" "{bin_directory}/claude.py" "$@"')


# Connecting


@pytest.mark.parametrize("client", WIRED, ids=lambda client: client.name)
def test_connect_twice_then_disconnect(client: Any, nudge: Nudge, home: Path) -> None:
    """The change is shown, made once, and taken back whole."""
    first = nudge("connect", client.name, "--yes")
    assert first.code == 0 and "+++ ~/" in first.out and "✔" in first.out
    wired = tree(home)
    again = nudge("connect", client.name, "--yes")
    assert (again.code, again.out) == (0, f"✔ {client.title} is already connected\n") and tree(home) == wired
    gone = nudge("disconnect", client.name)
    assert gone.code == 0 and "--- ~/" in gone.out and tree(home) == {}
    assert nudge("disconnect", client.name).out == "✔ nothing was connected\n"


def test_without_a_terminal_nothing_is_changed(nudge: Nudge, home: Path) -> None:
    """The difference is shown, and so is what to add."""
    outcome = nudge("connect", "codex")
    assert outcome.code == 2 and "+[mcp_servers.nudge]" in outcome.out and tree(home) == {}
    assert outcome.err == "nudge connect: cannot ask for confirmation: stdin is not a terminal; add --yes to go ahead\n"


def test_at_a_terminal_it_asks(nudge: Nudge, home: Path, answers: list[str]) -> None:
    """Anything but yes is no."""
    answers[:] = [""]
    declined = nudge("connect", "codex")
    assert declined.code == 3 and tree(home) == {}
    assert declined.err == "Connect Codex like this? [y/N] nothing was changed\n"
    answers[:] = ["y", "n"]
    assert nudge("connect", "codex").code == 0 and ".codex/hooks.json" in tree(home)


def test_what_comes_next_is_offered(nudge: Nudge, answers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Told to everybody, run for those who say so, and never asked of a script. Only Claude Code has transcripts to
    read."""
    ran: list[str] = []
    main = app.main
    monkeypatch.setattr(app, "main", lambda words: main(words) if words[0] == "connect" else _note(ran, words[0]))
    answers[:] = ["yes", "yes"]
    outcome = nudge("connect", "gemini")
    assert "nudge scan" in outcome.out and "backfill" not in outcome.out + outcome.err
    assert "Run nudge scan now?" in outcome.err and ran == ["scan"] and answers == []
    answers[:] = ["yes", "no", "yes"]
    outcome = nudge("connect", "claude-code")
    assert "nudge scan" in outcome.out and "nudge backfill" in outcome.out
    assert "Run nudge backfill now?" in outcome.err and ran == ["scan", "backfill"]


def _note(ran: list[str], name: str) -> int:
    ran.append(name)
    return 0


def test_a_program_gets_the_result_only(nudge: Nudge, home: Path, executable: str) -> None:
    """No difference, no advice: one object."""
    result = json.loads(nudge("connect", "codex", "--yes", "--json").out)
    assert result == {
        "client": "codex",
        "executable": executable,
        "changed": [str(home / ".codex/config.toml"), str(home / ".codex/hooks.json")],
    }
    assert json.loads(nudge("connect", "codex", "--yes", "--json").out)["changed"] == []
    assert len(json.loads(nudge("disconnect", "codex", "--json").out)["changed"]) == 2


def test_a_malformed_file_is_named(nudge: Nudge, home: Path) -> None:
    """With the line, in one sentence, and exit code 3."""
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text('{\n"a": }\n')
    outcome = nudge("connect", "gemini", "--yes")
    assert outcome.code == 3
    assert outcome.err == (
        "nudge: E_INVALID (40001): ~/.gemini/settings.json, line 2: expected a value; nothing was "
        "changed; fix the file, then run nudge again\n"
    )


# Claude Code's own command


def test_claude_s_own_command_adds_the_server(nudge: Nudge, home: Path, bin_directory: Path, executable: str) -> None:
    """It guards its state file; what it made is undone to the byte, also where it had to make the list of servers."""
    install_claude(bin_directory)
    (home / ".claude.json").write_text(json.dumps({"numStartups": 3, "projects": {}}, indent=2))
    before = tree(home)
    outcome = nudge("connect", "claude-code", "--yes")
    assert f"by running: {bin_directory}/claude mcp add --scope user nudge -- {executable} serve" in outcome.out
    assert json.loads((home / ".claude.json").read_text())["mcpServers"]["nudge"]["command"] == executable
    assert nudge("connect", "claude-code").out == "✔ Claude Code is already connected\n"
    nudge("disconnect", "claude-code")
    assert tree(home) == before


def test_an_old_entry_is_removed_by_claude_first(
    nudge: Nudge, home: Path, bin_directory: Path, executable: str
) -> None:
    """It refuses to add what is there."""
    install_claude(bin_directory)
    (home / ".claude.json").write_text('{"mcpServers": {"nudge": {"command": "/old/nudge", "args": ["serve"]}}}')
    outcome = nudge("connect", "claude-code", "--yes")
    assert outcome.code == 0 and "claude mcp remove --scope user nudge" in outcome.out
    assert json.loads((home / ".claude.json").read_text())["mcpServers"]["nudge"]["command"] == executable


def test_a_state_that_claude_rewrote_is_cleaned_by_what_it_says(nudge: Nudge, home: Path, bin_directory: Path) -> None:
    """It adds things of its own on a first start; those stay."""
    install_claude(bin_directory, CLAUDE.replace("servers = ", 'state["userID"] = "u"\nservers = '))
    (home / ".claude.json").write_text('{"a": 1}\n')
    nudge("connect", "claude-code", "--yes")
    nudge("disconnect", "claude-code")
    assert json.loads((home / ".claude.json").read_text()) == {"a": 1, "userID": "u"}


def test_a_claude_that_fails_says_why(nudge: Nudge, home: Path, bin_directory: Path) -> None:
    """And no hook is written for a server that is not there."""
    script(bin_directory / "claude", 'echo "first line" >&2; echo "no such scope" >&2; exit 1')
    outcome = nudge("connect", "claude-code", "--yes")
    assert outcome.code == 3 and "claude mcp add" in outcome.err and outcome.err.count("no such scope") == 1
    assert tree(home) == {}


@pytest.mark.parametrize(
    "state", [None, '{"mcpServers": {"nudge": {"command": "/old/nudge", "args": ["serve"]}}}', "{"]
)
def test_a_claude_that_does_nothing_is_reported(
    nudge: Nudge, home: Path, bin_directory: Path, state: str | None
) -> None:
    """Its exit code is not believed: the file is read again. No hook is written for a server that is not there."""
    script(bin_directory / "claude", "exit 0" if state != "{" else 'printf "{" > ~/.claude.json')
    if state not in (None, "{"):
        (home / ".claude.json").write_text(str(state))
    before = tree(home)
    outcome = nudge("connect", "claude-code", "--yes")
    assert outcome.code == 3 and "✔" not in outcome.out
    assert "the MCP server is not in ~/.claude.json" in outcome.err
    assert outcome.err.endswith("as printed by: nudge connect claude-code --print\n")
    assert state == "{" or tree(home) == before
    assert not (home / ".claude" / "settings.json").exists()


# By hand


@pytest.mark.parametrize("client", registry.all_clients(), ids=lambda client: client.name)
def test_print_tells_and_changes_nothing(client: Any, nudge: Nudge, home: Path, executable: str) -> None:
    """For each client, with the real path."""
    outcome = nudge("connect", client.name, "--print")
    assert outcome.code == 0 and executable in outcome.out and tree(home) == {}


def test_one_piece_goes_straight_into_a_file(nudge: Nudge, executable: str) -> None:
    """Each client in its own shape, and nothing around it."""
    server = {"command": executable, "args": ["serve"]}
    assert json.loads(nudge("connect", "windsurf", "--print").out) == {"mcpServers": {"nudge": server}}
    assert json.loads(nudge("connect", "zed", "--print").out) == {"context_servers": {"nudge": server}}
    assert json.loads(nudge("connect", "vscode", "--print").out) == {"servers": {"nudge": {"type": "stdio", **server}}}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("windsurf", "~/.codeium/windsurf/mcp_config.json"),
        ("zed", "~/.config/zed/settings.json"),
        ("gemini", "~/.gemini/settings.json"),
    ],
)
def test_the_file_of_one_snippet_is_named_on_stderr(nudge: Nudge, name: str, file: str) -> None:
    """On the other stream, so that the piece can still go straight into it."""
    outcome = nudge("connect", name, "--print")
    assert outcome.err == f"add it to {file}, beside what is there\n" and file not in outcome.out


def test_the_hooks_of_cursor_are_printed(nudge: Nudge, home: Path) -> None:
    """Without groups, under its own names, each of which `nudge record` understands; written by hand, they can be taken
    out again."""
    hooks = json.loads(json.loads(nudge("connect", "cursor", "--print", "--json").out)["files"]["~/.cursor/hooks.json"])
    assert hooks["version"] == 1 and set(hooks["hooks"]) <= set(cursor.CLIENT.events)
    assert all("record" in handler["command"] and handler["timeout"] for (handler,) in hooks["hooks"].values())
    (home / ".cursor").mkdir()
    hooks["hooks"]["stop"] = [{"command": "say done"}]
    hooks["hooks"]["sessionEnd"].append({"command": "say bye"})
    (home / ".cursor/hooks.json").write_text(json.dumps(hooks))
    assert rows(nudge)["cursor"]["hooks"] is True
    assert nudge("disconnect", "cursor").code == 0
    assert json.loads((home / ".cursor/hooks.json").read_text()) == {
        "version": 1,
        "hooks": {"sessionEnd": [{"command": "say bye"}], "stop": [{"command": "say done"}]},
    }


def test_several_pieces_are_named(nudge: Nudge) -> None:
    """By the file that each belongs into."""
    outcome = nudge("connect", "codex", "--print")
    assert outcome.out.startswith("~/.codex/config.toml:\n# >>> nudge\n") and "\n~/.codex/hooks.json:\n{" in outcome.out


@pytest.mark.parametrize("client", BY_HAND, ids=lambda client: client.name)
def test_a_client_that_is_wired_by_hand_is_not_written(client: Any, nudge: Nudge, home: Path) -> None:
    """The error says how to see what to write."""
    outcome = nudge("connect", client.name, "--yes")
    assert outcome.code == 2 and f"nudge connect {client.name} --print" in outcome.err and tree(home) == {}


def test_the_error_for_an_unknown_client_lists_the_known_ones(nudge: Nudge) -> None:
    """With exit code 2."""
    outcome = nudge("connect", "emacs")
    assert outcome.code == 2 and "claude-code" in outcome.err


# The list


def rows(nudge: Nudge) -> dict[str, dict[str, Any]]:
    return {row["client"]: row for row in json.loads(nudge("connect", "--json").out)["clients"]}


def test_the_list_says_what_is_there_and_what_is_wired(nudge: Nudge, home: Path, bin_directory: Path) -> None:
    """The four always; others when they have left something here."""
    assert set(rows(nudge)) == {"claude-code", "codex", "gemini", "opencode"}
    assert not any(row["installed"] or row["mcp"] or row["hooks"] for row in rows(nudge).values())
    script(bin_directory / "codex", "exit 0")
    (home / ".cursor").mkdir()
    nudge("connect", "codex", "--yes")
    found = rows(nudge)
    assert found["codex"] == {
        "client": "codex",
        "title": "Codex",
        "installed": True,
        "mcp": True,
        "hooks": True,
        "plugin": None,
        "last_event_at": None,
    }
    assert (found["cursor"]["installed"], found["cursor"]["mcp"], found["cursor"]["hooks"]) == (True, False, False)
    lines = nudge("connect").out.splitlines()
    assert lines[0].split() == ["client", "found", "MCP", "hooks", "last", "event"]
    assert "codex        yes    yes  yes    -" in lines


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_list_says_when_a_client_was_last_heard_of(
    nudge: Nudge, monkeypatch: pytest.MonkeyPatch, wrapped: bool
) -> None:
    """From the server, if one runs; it is not started for this."""
    sessions = [
        {"client": "codex", "last_event_at": 100, "started_at": 50},
        {"client": "codex", "last_event_at": 300, "started_at": 40},
        {"client": "gemini", "last_event_at": None, "started_at": 70},
    ]
    asked: list[Any] = []

    class Server:
        def call(self, method: str, params: dict[str, Any], *, start: bool) -> Any:
            asked.append((method, params, start))
            return {"sessions": sessions} if wrapped else sessions

    monkeypatch.setattr("nudge.cli.plain.Invocation.client", lambda _: Server())
    found = rows(nudge)
    assert (
        found["codex"]["last_event_at"],
        found["gemini"]["last_event_at"],
        found["claude-code"]["last_event_at"],
    ) == (300, 70, None)
    assert asked == [("nudge.sessions", {"limit": 50}, False)]
    line = next(line for line in nudge("connect").out.splitlines() if line.startswith("codex"))
    assert line.endswith("d ago")


def test_a_malformed_file_does_not_spoil_the_list(nudge: Nudge, home: Path) -> None:
    """It is a client with nothing of ours."""
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text("{")
    assert rows(nudge)["gemini"]["mcp"] is False


# Everything


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "missing CLIENT"),
        (["codex", "--all"], "CLIENT and --all exclude each other"),
        (["--delete-data"], "--delete-data needs --all"),
        (["codex", "--delete-data"], "--delete-data needs --all"),
    ],
)
def test_disconnect_needs_one_client_or_all(nudge: Nudge, words: list[str], error: str) -> None:
    """One client or all of them; data goes only with all."""
    outcome = nudge("disconnect", *words)
    assert outcome.code == 2 and error in outcome.err


def test_disconnect_all(nudge: Nudge, home: Path) -> None:
    """Every client in one go."""
    for client in WIRED:
        nudge("connect", client.name, "--yes")
    assert nudge("disconnect", "--all").code == 0 and tree(home) == {}


MOVED = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")


def connect_elsewhere(nudge: Nudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every client, with its files moved away; afterwards they are where they are by default."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in MOVED:
        monkeypatch.setenv(name, str(elsewhere / name))
    for client in WIRED:
        assert nudge("connect", client.name, "--yes").code == 0
    for name in MOVED:
        monkeypatch.delenv(name)
    return elsewhere


def test_disconnect_remembers_where_a_client_was_wired(
    nudge: Nudge, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable that moved its files may not be set any more; a client that is not asked about stays wired."""
    elsewhere = connect_elsewhere(nudge, tmp_path, monkeypatch)
    nudge("connect", "codex", "--yes")
    outcome = nudge("disconnect", "codex")
    assert outcome.out.count("✔ removed") == 4 and tree(home) == {}
    assert {path.name for path in elsewhere.iterdir()} == set(MOVED) - {"CODEX_HOME"}
    assert nudge("disconnect", "--all").code == 0 and tree(elsewhere) == {}


def test_delete_data_takes_out_what_was_wired_elsewhere(
    nudge: Nudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Afterwards nobody would know of it."""
    fill(monkeypatch)
    elsewhere = connect_elsewhere(nudge, tmp_path, monkeypatch)
    assert nudge("disconnect", "--all", "--delete-data", "--yes").code == 0
    assert tree(elsewhere) == {} and not os.path.exists(paths.runtime_dir())


def test_what_we_know_of_wired_files_is_not_deleted(nudge: Nudge, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that no client of ours reads any more, with an entry of ours in it."""
    fill(monkeypatch)
    nudge("connect", "opencode", "--yes")
    (home / ".config/opencode/opencode.jsonc").write_text("{}")
    outcome = nudge("disconnect", "--all", "--delete-data", "--yes")
    assert (
        outcome.code == 3
        and "~/.config/opencode/opencode.json may still be connected; nothing was deleted" in outcome.err
    )
    assert os.path.exists(paths.runtime_dir())


def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data of ours where it is by default."""
    monkeypatch.delenv("NUDGE_RUNTIME_DIR")
    for path in (paths.runtime_dir(), paths.log_dir()):
        os.makedirs(path, mode=0o700)
        Path(path, "file").write_text("x" * 100)
    for path in (config.database_file(), config.database_file() + "-wal", paths.config_file()):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text("x" * 50)


def test_delete_data_leaves_nothing(nudge: Nudge, home: Path, executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths and sizes are shown first; then every directory of ours is gone, and none of another."""
    fill(monkeypatch)
    (home / ".local/share/other").mkdir()
    nudge("connect", "codex", "--yes")
    outcome = nudge("disconnect", "--all", "--delete-data", "--yes")
    data = 100 + len(Executable(executable).hook_script)
    assert outcome.code == 0 and f"{data} B  ~/.local/share/nudge" in outcome.out and "in total" in outcome.out
    assert [name for name, content in tree(home).items() if content is not None or "nudge" in name] == []
    assert (home / ".local/share/other").is_dir()


def test_delete_data_asks(nudge: Nudge, home: Path, monkeypatch: pytest.MonkeyPatch, answers: list[str]) -> None:
    """Without a yes everything is as it was, wiring included."""
    fill(monkeypatch)
    answers[:] = ["no"]
    before = tree(home)
    outcome = nudge("disconnect", "--all", "--delete-data")
    assert outcome.code == 3 and "permanently? [y/N]" in outcome.err and tree(home) == before


def test_delete_data_stops_the_server_first(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """With force, and with its session: both are about to go."""
    fill(monkeypatch)
    held = locks.Flock(os.path.join(paths.runtime_dir(), paths.LOCK))
    assert held.acquire()
    asked: list[Any] = []

    def stop(*_: Any, force: bool, forget: bool) -> int:
        asked.append((force, forget))
        held.release()
        return 0

    monkeypatch.setattr("nudge.cli.server.stop_server", stop)
    assert nudge("disconnect", "--all", "--delete-data", "--yes").code == 0
    assert asked == [(True, True)] and not os.path.exists(paths.runtime_dir())


def test_a_server_that_is_there_again_keeps_its_data(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that still runs starts one at its next call; deleting under it would lose what it acknowledges."""
    fill(monkeypatch)
    held = locks.Flock(os.path.join(paths.runtime_dir(), paths.LOCK))
    assert held.acquire()
    monkeypatch.setattr("nudge.cli.server.stop_server", lambda *_, **__: 0)
    outcome = nudge("disconnect", "--all", "--delete-data", "--yes")
    held.release()
    assert outcome.code == 3 and "end your agents" in outcome.err and os.path.exists(config.database_file())


def test_connect_installs_the_hook_script_and_disconnect_removes_it(nudge: Nudge, executable: str) -> None:
    """It stays while another client has hooks; connecting again repairs it."""
    script = Path(hook_script_path())
    assert nudge("connect", "codex", "--yes").code == nudge("connect", "claude-code", "--yes").code == 0
    assert script.read_text() == Executable(executable).hook_script
    script.unlink()
    assert "already connected" in nudge("connect", "codex", "--yes").out and script.exists()
    assert nudge("disconnect", "codex").code == 0 and script.exists()
    assert nudge("disconnect", "claude-code").code == 0 and not script.exists()


def test_a_printed_hook_script_stays(nudge: Nudge) -> None:
    """A configuration that was printed may be pasted later, anywhere: disconnect keeps the script that it names and
    says how to remove it without the data; deleting all data removes it too."""
    script = Path(hook_script_path())
    nudge("connect", "codex", "--print")
    outcome = nudge("disconnect", "codex")
    assert outcome.out.startswith("✔ nothing was connected\nkept ") and script.exists()
    assert outcome.out.endswith(f"delete it with: rm {shlex.quote(str(script))}\n")
    nudge("connect", "codex", "--yes")
    assert json.loads(nudge("disconnect", "--all", "--json").out)["kept"] == [str(script)] and script.exists()
    assert nudge("disconnect", "--all", "--delete-data", "--yes").code == 0
    assert not script.exists() and not list(script.parent.glob("nudge-hook*"))


def test_the_list_knows_the_plugin(nudge: Nudge, home: Path) -> None:
    """It brings the server and the hooks, so nothing is left to connect; both ways at once are shown."""
    settings = home / ".claude" / "settings.json"
    nudge("connect", "claude-code", "--yes")
    wired = json.loads(settings.read_text())
    settings.write_text(json.dumps({**wired, "enabledPlugins": {"nudge@nudge": True}}))
    line = next(line for line in nudge("connect").out.splitlines() if line.startswith("claude-code"))
    assert line.split()[1:] == ["yes", "yes", "+", "plugin", "yes", "+", "plugin", "-"]
    nudge("disconnect", "claude-code")
    assert rows(nudge)["claude-code"]["plugin"] == "nudge@nudge"
    outcome = nudge("connect").out
    line = next(line for line in outcome.splitlines() if line.startswith("claude-code"))
    assert line.split()[1:] == ["yes", "plugin", "plugin", "-"] and "connect one with" not in outcome


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini"])
def test_a_repeated_hook_is_shown_once(nudge: Nudge, home: Path, name: str) -> None:
    """The handlers of an event that are the same as those of an earlier one are not printed again; each event is
    named. What is written is whole."""
    outcome = nudge("connect", name, "--yes")
    client = registry.get(name)
    shown = outcome.out.count("nudge-hook")
    distinct = {json.dumps(handler) for handler in client.hook_handlers(Executable("x")).values()}
    assert shown == len(distinct) < len(client.connected_events)
    assert all(f'"{event}": [' in outcome.out for event in client.connected_events)
    assert outcome.out.count("... as above") == len(client.connected_events) - len(distinct)
    written = "".join(path.read_text() for path in home.rglob("*.json"))
    assert written.count("nudge-hook") == len(client.connected_events)


def test_connect_sees_the_plugin(nudge: Nudge, home: Path) -> None:
    """And does not wire a second set; a plugin that is switched off does not count."""
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"enabledPlugins": {"nudge@nudge": true}}')
    before = tree(home)
    outcome = nudge("connect", "claude-code", "--yes")
    assert outcome.code == 0 and "already connected by the plugin nudge@nudge" in outcome.out
    assert "claude plugin disable nudge@nudge" in outcome.out and tree(home) == before
    assert json.loads(nudge("connect", "claude-code", "--yes", "--json").out)["plugin"] == "nudge@nudge"
    settings.write_text('{"enabledPlugins": {"nudge@nudge": false}}')
    assert nudge("connect", "claude-code", "--yes").code == 0 and tree(home) != before


# The status line

SETTINGS = {
    "nothing": None,
    "empty": "{}",
    "tabs": '{\n\t"model": "opus",\n\t"permissions": {"allow": ["Bash(ls:*)"]}\n}',
    "hooks of another": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}\n',
    "comments": '{\n  // mine\n  "theme": "dark",\n}\n',
}
OTHERS = (
    '{"type": "command", "command": "~/.claude/line.sh"}',
    '{"type": "command", "command": "~/.claude/line.sh; nudge statusline"}',
    '{"type": "command", "command": "~/line.sh \'"}',
    '"line"',
    "null",
)


def _settings(home: Path, text: str | None) -> Path:
    path = home / ".claude" / "settings.json"
    if text is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return path


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("together", [True, False], ids=["at once", "later"])
def test_a_status_line_is_added_and_taken_back(nudge: Nudge, home: Path, text: str | None, together: bool) -> None:
    """With the rest or later; it is in the diff, runs the script of the hooks, and every byte comes back. What its user
    adds to it is kept by the next connect, and a connect without the option leaves it."""
    settings, before = _settings(home, text), tree(home)
    if not together:
        assert nudge("connect", "claude-code", "--yes").code == 0
        assert "statusLine" not in settings.read_text()
    outcome = nudge("connect", "claude-code", "--statusline", "--yes")
    assert outcome.code == 0 and '"statusLine"' in outcome.out and "hooks and status line in ~/" in outcome.out
    command = f"{shlex.quote(hook_script_path())} statusline"
    assert f'"command": "{command}"' in settings.read_text()
    assert settings.read_text().count('"refreshInterval": 10') == 1
    for words in (("--statusline", "--yes"), ("--yes",)):
        assert nudge("connect", "claude-code", *words).out == "✔ Claude Code is already connected\n"
    removed = nudge("disconnect", "claude-code")
    assert tree(home) == before and "removed" in removed.out and not Path(hook_script_path()).exists()


def test_a_status_line_of_another_installation_is_brought_up_to_date(nudge: Nudge, home: Path) -> None:
    """By any connect; what its user set beside the command stays."""
    old = '{"statusLine": {"type": "command", "command": "/old/nudge-hook statusline", "refreshInterval": 2}}'
    settings = _settings(home, old)
    assert nudge("connect", "claude-code", "--yes").code == 0
    found = json.loads(settings.read_text())["statusLine"]
    assert found == {
        "type": "command",
        "command": f"{shlex.quote(hook_script_path())} statusline",
        "refreshInterval": 2,
    }
    assert nudge("disconnect", "claude-code").code == 0 and "statusLine" not in settings.read_text()


@pytest.mark.parametrize("other", OTHERS)
def test_the_status_line_of_another_is_left_alone(nudge: Nudge, home: Path, other: str) -> None:
    """Neither replaced nor removed, whatever it is; the rest is connected, and the user hears why."""
    settings = _settings(home, f'{{"statusLine": {other}}}')
    before = tree(home)
    outcome = nudge("connect", "claude-code", "--statusline", "--yes")
    assert outcome.code == 0 and "has a status line, which stays as it is" in outcome.err
    assert json.loads(settings.read_text())["statusLine"] == json.loads(other)
    assert "hooks in ~/" in outcome.out
    nudge("disconnect", "claude-code")
    assert tree(home) == before


def test_a_status_line_beside_the_plugin(nudge: Nudge, home: Path) -> None:
    """A plugin cannot bring one: only this is added to the settings, and taken back."""
    settings = _settings(home, '{"enabledPlugins": {"nudge@nudge": true}}')
    before = tree(home)
    outcome = nudge("connect", "claude-code", "--statusline", "--yes")
    assert outcome.code == 0 and "Claude Code: status line in ~/" in outcome.out
    assert json.loads(settings.read_text()).keys() == {"enabledPlugins", "statusLine"}
    again = nudge("connect", "claude-code", "--statusline", "--yes")
    assert "already connected by the plugin" in again.out and "nudge disconnect" not in again.out
    nudge("disconnect", "claude-code")
    assert tree(home) == before


def test_only_claude_code_has_a_status_line(nudge: Nudge, home: Path) -> None:
    """Another client is refused; the entry can be printed for a user who edits by hand."""
    outcome = nudge("connect", "codex", "--statusline", "--yes")
    assert outcome.code == 2 and "Codex has no status line" in outcome.err and tree(home) == {}
    printed = nudge("connect", "claude-code", "--statusline", "--print")
    assert printed.code == 0 and '"statusLine"' in printed.out and tree(home) == {}
    assert '"statusLine"' not in nudge("connect", "claude-code", "--print").out
