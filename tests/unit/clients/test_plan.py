"""Connecting and disconnecting real files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nudge.clients import config_files, plan, registry
from nudge.clients.client import AgentClient, Home
from nudge.clients.executable import Executable
from nudge.clients.plan import ConnectedFiles, FileChange, UndoRecord
from nudge.core.errors import Invalid, StorageFailed
from tests.unit.clients import corpus
from tests.unit.clients.homes import tree

EVERY_CLIENT = pytest.mark.parametrize("client", registry.all_clients(), ids=lambda client: client.name)


def connect(client: AgentClient, executable: str = "/opt/nudge") -> list[FileChange]:
    ledger = ConnectedFiles()
    changes = plan.connect(client, Executable(executable), ledger)
    plan.apply(changes, ledger)
    return changes


def disconnect(client: AgentClient) -> list[FileChange]:
    ledger = ConnectedFiles()
    changes = plan.disconnect(client.config_files(Home(), Executable("nudge")), ledger)
    plan.apply(changes, ledger)
    return changes


def plant(client: AgentClient, text: str) -> list[Path]:
    """The same text in each file of a client that is JSON."""
    paths = [
        Path(file.path)
        for file in client.config_files(Home(), Executable("x"))
        if file.path.endswith((".json", ".jsonc"))
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return paths


@EVERY_CLIENT
def test_nothing_is_left_where_nothing_was(client: AgentClient, home: Path) -> None:
    """Files and directories that had to be made go again."""
    assert connect(client) and tree(home)
    assert disconnect(client) and tree(home) == {}


@EVERY_CLIENT
def test_real_files_come_back_to_the_byte(client: AgentClient, home: Path) -> None:
    """Whatever is in them, for every client."""
    for name, text in corpus.JSON.items():
        plant(client, text)
        before = tree(home)
        assert connect(client) and connect(client) == [], name
        disconnect(client)
        assert tree(home) == before, name


@pytest.mark.parametrize("text", corpus.TOML.values(), ids=corpus.TOML.keys())
def test_real_toml_comes_back_to_the_byte(text: str, home: Path) -> None:
    """Codex's configuration, however it is written."""
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_bytes(text.encode())
    before = tree(home)
    connect(registry.get("codex"))
    assert connect(registry.get("codex")) == []
    disconnect(registry.get("codex"))
    assert tree(home) == before


@EVERY_CLIENT
def test_a_move_of_the_executable_is_undone_to_the_first_byte(client: AgentClient, home: Path) -> None:
    """Connected twice with different paths, there is one entry, and disconnecting still leads to the original."""
    plant(client, '{"hooks": {}, "a": 1}\n')
    before = tree(home)
    connect(client, "/one/nudge")
    connect(client, "/two/nudge")
    text = "".join(content.decode() for content in tree(home).values() if content)
    assert "/two/nudge" in text and "/one/nudge" not in text
    disconnect(client)
    assert tree(home) == before


@EVERY_CLIENT
def test_what_somebody_changed_meanwhile_stays(client: AgentClient) -> None:
    """Then our entries are found by what they say."""
    paths = plant(client, '{\n  "a": 1\n}\n')
    connect(client)
    for path in paths:
        path.write_text(path.read_text().replace('"a": 1', '"a": 2, "b": 3'))
    disconnect(client)
    for path in paths:
        assert json.loads(path.read_text()) == {"a": 2, "b": 3}


def test_a_file_of_ours_that_somebody_uses_stays(home: Path) -> None:
    """A file that Nudge created and its user has added to is kept."""
    gemini, settings = registry.get("gemini"), home / ".gemini" / "settings.json"
    connect(gemini)
    settings.write_text(settings.read_text().replace("{", '{"theme": "x",', 1))
    disconnect(gemini)
    assert json.loads(settings.read_text()) == {"theme": "x"}


def test_a_file_of_ours_that_a_client_rewrote_goes(home: Path) -> None:
    """A file that Nudge created is removed also after a client rewrote it in another layout."""
    gemini, settings = registry.get("gemini"), home / ".gemini" / "settings.json"
    connect(gemini)
    settings.write_text(json.dumps(json.loads(settings.read_text())))
    disconnect(gemini)
    assert not settings.exists()


@EVERY_CLIENT
def test_malformed_files_are_refused_by_line(client: AgentClient, home: Path) -> None:
    """And no file is changed, not even the ones that could be."""
    plant(client, '{\n  "a": 1\n  "b": 2\n}\n')
    before = tree(home)
    with pytest.raises(Invalid, match=r"line 3: expected a comma or \}; nothing was changed"):
        connect(client)
    assert tree(home) == before


def test_malformed_toml_is_refused_by_line(home: Path) -> None:
    """As TOML's own reader names it."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("a = 1\nb = = 2\n")
    with pytest.raises(Invalid, match=r"config\.toml, line 2"):
        connect(registry.get("codex"))


def test_a_file_that_changes_under_the_question_is_not_overwritten(home: Path) -> None:
    """The plan was made for other bytes; nothing of it is done."""
    ledger = ConnectedFiles()
    changes = plan.connect(registry.get("codex"), Executable("/x"), ledger)
    (home / ".codex").mkdir()
    (home / ".codex" / "hooks.json").write_text("{}")
    with pytest.raises(StorageFailed, match=r"hooks\.json has just been changed"):
        plan.apply(changes, ledger)
    assert tree(home) == {".codex": None, ".codex/hooks.json": b"{}"}


def test_a_link_in_dotfiles_survives_the_round_trip(home: Path) -> None:
    """The mode too."""
    (home / "dotfiles").mkdir()
    real = home / "dotfiles" / "settings.json"
    real.write_text("{}\n")
    real.chmod(0o644)
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").symlink_to(real)
    before = tree(home)
    connect(registry.get("gemini"))
    assert b"nudge" in real.read_bytes() and real.stat().st_mode & 0o777 == 0o644
    disconnect(registry.get("gemini"))
    assert tree(home) == before


def test_the_difference_hides_the_keys_of_others() -> None:
    """Credentials in the lines around a change are redacted in the diff."""
    key = "ghp_" + "a1B2" * 9
    plant(registry.get("gemini"), f'{{\n  "token": "{key}"\n}}\n')
    (change,) = plan.connect(registry.get("gemini"), Executable("/x/nudge"), ConnectedFiles())
    lines = list(plan.diff(change))
    assert lines[0] == "--- ~/.gemini/settings.json" and key not in "".join(
        line for line in lines if line.startswith(" ")
    )


@pytest.mark.parametrize(
    ("client", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
    ],
)
def test_a_client_that_was_moved_is_found(
    client: str, variable: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a variable for it."""
    monkeypatch.setenv(variable, str(tmp_path / "moved"))
    connect(registry.get(client))
    assert (tmp_path / "moved" / file).exists()


def test_opencode_takes_the_file_that_is_there(home: Path) -> None:
    """It reads both names; with comments the one that may have them."""
    (home / ".config" / "opencode").mkdir(parents=True)
    (home / ".config" / "opencode" / "opencode.jsonc").write_text("{ // mine\n}\n")
    connect(registry.get("opencode"))
    assert "opencode.json" not in os.listdir(home / ".config" / "opencode")


def wired(home: Path, name: str) -> Any:
    connect(registry.get(name), "/opt/nudge")
    return {path: content.decode() for path, content in tree(home).items() if content is not None}


def test_what_claude_code_gets(home: Path) -> None:
    """Seven events, in seconds, and the server as its own command would add it."""
    result = wired(home, "claude-code")
    server = json.loads(result[".claude.json"])["mcpServers"]["nudge"]
    assert server == {"type": "stdio", "command": "/opt/nudge", "args": ["serve"], "env": {}}
    hooks = json.loads(result[".claude/settings.json"])["hooks"]
    assert {event: groups[0]["hooks"][0]["timeout"] for event, groups in hooks.items()} == {
        "SessionStart": 5,
        "UserPromptSubmit": 5,
        "PostToolUse": 5,
        "PostToolUseFailure": 5,
        "PostCompact": 5,
        "Stop": 5,
        "SessionEnd": 3,
    }
    handlers = [handler for groups in hooks.values() for handler in groups[0]["hooks"]]
    assert all([handler["command"], *handler["args"]] == Executable("/opt/nudge").hook for handler in handlers)


def test_what_codex_gets(home: Path) -> None:
    """A marked block, and the five events that it has; a failed tool is one of its PostToolUse."""
    result = wired(home, "codex")
    block = '# >>> nudge\n[mcp_servers.nudge]\ncommand = "/opt/nudge"\nargs = ["serve"]\n# <<< nudge\n'
    assert result[".codex/config.toml"] == block
    events = {"SessionStart", "UserPromptSubmit", "PostToolUse", "PostCompact", "SessionEnd"}
    assert set(json.loads(result[".codex/hooks.json"])["hooks"]) == events


def test_what_gemini_gets(home: Path) -> None:
    """Its own names of the events, and milliseconds."""
    settings = json.loads(wired(home, "gemini")[".gemini/settings.json"])
    assert settings["mcpServers"]["nudge"] == {"command": "/opt/nudge", "args": ["serve"]}
    timeouts = {event: groups[0]["hooks"][0]["timeout"] for event, groups in settings["hooks"].items()}
    assert timeouts == {"SessionStart": 5000, "BeforeAgent": 5000, "AfterTool": 5000, "SessionEnd": 3000}


def test_what_opencode_gets(home: Path) -> None:
    """A plugin that names the executable as a JavaScript string."""
    connect(registry.get("opencode"), '/my "tools"/nudge')
    config = json.loads((home / ".config/opencode/opencode.json").read_text())
    assert config["mcp"]["nudge"] == {"type": "local", "command": ['/my "tools"/nudge', "serve"], "enabled": True}
    plugin = (home / ".config/opencode/plugin/nudge.js").read_text()
    assert 'const NUDGE = "/my \\"tools\\"/nudge"\n' in plugin and "@" not in plugin


def test_a_plugin_of_somebody_else_is_not_overwritten(home: Path) -> None:
    """A plugin file that Nudge did not write is neither overwritten nor removed."""
    (home / ".config/opencode/plugin").mkdir(parents=True)
    (home / ".config/opencode/plugin/nudge.js").write_text("// theirs\n")
    before = tree(home)
    with pytest.raises(Invalid, match="not written by Nudge"):
        connect(registry.get("opencode"))
    disconnect(registry.get("opencode"))
    assert tree(home) == before


def test_shown_paths_are_short(home: Path) -> None:
    """The home is a tilde, and only the home."""
    assert (
        config_files.display_path(str(home / "a")) == "~/a"
        and config_files.display_path("/etc/x") == "/etc/x"
        and config_files.display_path(str(home) + "x") == str(home) + "x"
    )


# The ledger


def test_the_ledger_remembers() -> None:
    """For the next process, in a file that only its owner can read; with the last record the file goes."""
    record = UndoRecord(plan.digest("abc"), [(1, 1, "x")], created=False, directories=["/d"])
    ConnectedFiles().store("/a", record)
    kept = Path(os.environ["NUDGE_RUNTIME_DIR"]) / plan.CONNECTED_FILES
    assert ConnectedFiles().undo_record("/a") == record and kept.stat().st_mode & 0o777 == 0o600
    assert record.matches("abc") and not record.matches("abd") and record.restore("abc") == "axc"
    ConnectedFiles().store("/a", None)
    assert ConnectedFiles().undo_record("/a") is None and not kept.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"/a": 3}', '{"/a": {"digest": "x"}}', "\x00"])
def test_a_broken_ledger_is_none(content: str) -> None:
    """It only makes things exact; without it they still work."""
    kept = Path(os.environ["NUDGE_RUNTIME_DIR"])
    kept.mkdir()
    (kept / plan.CONNECTED_FILES).write_text(content)
    assert ConnectedFiles().undo_record("/a") is None
