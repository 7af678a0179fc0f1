"""Connecting and disconnecting real files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nudge.clients import clients, files, plan
from nudge.clients.launch import Launch
from nudge.clients.ledger import Ledger
from nudge.clients.place import Place
from nudge.clients.wiring import Wiring
from nudge.errors import Invalid, StorageFailed

from . import corpus
from .conftest import tree

EVERY_CLIENT = pytest.mark.parametrize("wiring", clients.ALL, ids=lambda wiring: wiring.name)


def connect(wiring: Wiring, executable: str = "/opt/nudge") -> list[plan.Step]:
    records = Ledger()
    steps = plan.connecting(wiring.targets(Place(), Launch(executable)), records, Place())
    plan.apply(steps, records)
    return steps


def disconnect(wiring: Wiring) -> list[plan.Step]:
    records = Ledger()
    steps = plan.disconnecting(wiring.targets(Place(), Launch("nudge")), records)
    plan.apply(steps, records)
    return steps


def plant(wiring: Wiring, text: str) -> list[Path]:
    """The same text in each file of a client that is JSON."""
    paths = [
        Path(target.path)
        for target in wiring.targets(Place(), Launch("x"))
        if target.path.endswith((".json", ".jsonc"))
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return paths


@EVERY_CLIENT
def test_nothing_is_left_where_nothing_was(wiring: Wiring, home: Path) -> None:
    """Files and directories that had to be made go again."""
    assert connect(wiring) and tree(home)
    assert disconnect(wiring) and tree(home) == {}


@EVERY_CLIENT
@pytest.mark.parametrize("text", corpus.JSON.values(), ids=corpus.JSON.keys())
def test_real_files_come_back_to_the_byte(wiring: Wiring, text: str, home: Path) -> None:
    """Whatever is in them, for every client."""
    plant(wiring, text)
    before = tree(home)
    assert connect(wiring) and connect(wiring) == []
    disconnect(wiring)
    assert tree(home) == before


@pytest.mark.parametrize("text", corpus.TOML.values(), ids=corpus.TOML.keys())
def test_real_toml_comes_back_to_the_byte(text: str, home: Path) -> None:
    """Codex's configuration, however it is written."""
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_bytes(text.encode())
    before = tree(home)
    connect(clients.named("codex"))
    assert connect(clients.named("codex")) == []
    disconnect(clients.named("codex"))
    assert tree(home) == before


@EVERY_CLIENT
def test_a_move_of_the_executable_is_undone_to_the_first_byte(wiring: Wiring, home: Path) -> None:
    """Connected twice with different paths, there is one entry, and disconnecting still leads to the original."""
    plant(wiring, '{"hooks": {}, "a": 1}\n')
    before = tree(home)
    connect(wiring, "/one/nudge")
    connect(wiring, "/two/nudge")
    text = "".join(content.decode() for content in tree(home).values() if content)
    assert "/two/nudge" in text and "/one/nudge" not in text
    disconnect(wiring)
    assert tree(home) == before


@EVERY_CLIENT
def test_what_somebody_changed_meanwhile_stays(wiring: Wiring) -> None:
    """Then our entries are found by what they say."""
    paths = plant(wiring, '{\n  "a": 1\n}\n')
    connect(wiring)
    for path in paths:
        path.write_text(path.read_text().replace('"a": 1', '"a": 2, "b": 3'))
    disconnect(wiring)
    for path in paths:
        assert json.loads(path.read_text()) == {"a": 2, "b": 3}


def test_a_file_of_ours_that_somebody_uses_stays(home: Path) -> None:
    """Made by us, but not ours alone any more."""
    gemini, settings = clients.named("gemini"), home / ".gemini" / "settings.json"
    connect(gemini)
    settings.write_text(settings.read_text().replace("{", '{"theme": "x",', 1))
    disconnect(gemini)
    assert json.loads(settings.read_text()) == {"theme": "x"}


def test_a_file_of_ours_that_a_client_rewrote_goes(home: Path) -> None:
    """In another layout it is still a file that nobody but us needed."""
    gemini, settings = clients.named("gemini"), home / ".gemini" / "settings.json"
    connect(gemini)
    settings.write_text(json.dumps(json.loads(settings.read_text())))
    disconnect(gemini)
    assert not settings.exists()


@EVERY_CLIENT
def test_malformed_files_are_refused_by_line(wiring: Wiring, home: Path) -> None:
    """And no file is changed, not even the ones that could be."""
    plant(wiring, '{\n  "a": 1\n  "b": 2\n}\n')
    before = tree(home)
    with pytest.raises(Invalid, match=r"line 3: expected a comma or \}; nothing was changed"):
        connect(wiring)
    assert tree(home) == before


def test_malformed_toml_is_refused_by_line(home: Path) -> None:
    """As TOML's own reader names it."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("a = 1\nb = = 2\n")
    with pytest.raises(Invalid, match=r"config\.toml, line 2"):
        connect(clients.named("codex"))


def test_a_file_that_changes_under_the_question_is_not_overwritten(home: Path) -> None:
    """The plan was made for other bytes; nothing of it is done."""
    codex, records = clients.named("codex"), Ledger()
    steps = plan.connecting(codex.targets(Place(), Launch("/x")), records, Place())
    (home / ".codex").mkdir()
    (home / ".codex" / "hooks.json").write_text("{}")
    with pytest.raises(StorageFailed, match=r"hooks\.json has just been changed"):
        plan.apply(steps, records)
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
    connect(clients.named("gemini"))
    assert b"nudge" in real.read_bytes() and real.stat().st_mode & 0o777 == 0o644
    disconnect(clients.named("gemini"))
    assert tree(home) == before


def test_the_difference_hides_the_keys_of_others() -> None:
    """A diff shows lines around the change; some of them are nobody's business."""
    key = "ghp_" + "a1B2" * 9
    plant(clients.named("gemini"), f'{{\n  "token": "{key}"\n}}\n')
    (step,) = plan.connecting(clients.named("gemini").targets(Place(), Launch("/x/nudge")), Ledger(), Place())
    lines = list(plan.difference(step))
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
    connect(clients.named(client))
    assert (tmp_path / "moved" / file).exists()


def test_opencode_takes_the_file_that_is_there(home: Path) -> None:
    """It reads both names; with comments the one that may have them."""
    (home / ".config" / "opencode").mkdir(parents=True)
    (home / ".config" / "opencode" / "opencode.jsonc").write_text("{ // mine\n}\n")
    connect(clients.named("opencode"))
    assert "opencode.json" not in os.listdir(home / ".config" / "opencode")


def wired(home: Path, name: str) -> Any:
    connect(clients.named(name), "/opt/nudge")
    return {path: content.decode() for path, content in tree(home).items() if content is not None}


def test_what_claude_code_gets(home: Path) -> None:
    """Six events, in seconds, and the server as its own command would add it."""
    found = wired(home, "claude-code")
    server = json.loads(found[".claude.json"])["mcpServers"]["nudge"]
    assert server == {"type": "stdio", "command": "/opt/nudge", "args": ["serve"], "env": {}}
    hooks = json.loads(found[".claude/settings.json"])["hooks"]
    assert {event: groups[0]["hooks"][0]["timeout"] for event, groups in hooks.items()} == {
        "SessionStart": 5,
        "UserPromptSubmit": 5,
        "PostToolUse": 5,
        "PostToolUseFailure": 5,
        "PostCompact": 5,
        "SessionEnd": 3,
    }
    assert {handler["command"] for groups in hooks.values() for handler in groups[0]["hooks"]} == {
        Launch("/opt/nudge").hook
    }


def test_what_codex_gets(home: Path) -> None:
    """A marked block, and the five events that it has; a failed tool is one of its PostToolUse."""
    found = wired(home, "codex")
    block = '# >>> nudge\n[mcp_servers.nudge]\ncommand = "/opt/nudge"\nargs = ["serve"]\n# <<< nudge\n'
    assert found[".codex/config.toml"] == block
    events = {"SessionStart", "UserPromptSubmit", "PostToolUse", "PostCompact", "SessionEnd"}
    assert set(json.loads(found[".codex/hooks.json"])["hooks"]) == events


def test_what_gemini_gets(home: Path) -> None:
    """Its own names of the events, and milliseconds."""
    settings = json.loads(wired(home, "gemini")[".gemini/settings.json"])
    assert settings["mcpServers"]["nudge"] == {"command": "/opt/nudge", "args": ["serve"]}
    timeouts = {event: groups[0]["hooks"][0]["timeout"] for event, groups in settings["hooks"].items()}
    assert timeouts == {"SessionStart": 5000, "BeforeAgent": 5000, "AfterTool": 5000, "SessionEnd": 3000}


def test_what_opencode_gets(home: Path) -> None:
    """A plugin that names the executable as a JavaScript string."""
    connect(clients.named("opencode"), '/my "tools"/nudge')
    config = json.loads((home / ".config/opencode/opencode.json").read_text())
    assert config["mcp"]["nudge"] == {"type": "local", "command": ['/my "tools"/nudge', "serve"], "enabled": True}
    plugin = (home / ".config/opencode/plugin/nudge.js").read_text()
    assert 'const NUDGE = "/my \\"tools\\"/nudge"\n' in plugin and "@" not in plugin


def test_a_stranger_s_plugin_of_our_name_is_not_overwritten(home: Path) -> None:
    """Nor removed."""
    (home / ".config/opencode/plugin").mkdir(parents=True)
    (home / ".config/opencode/plugin/nudge.js").write_text("// theirs\n")
    before = tree(home)
    with pytest.raises(Invalid, match="not ours"):
        connect(clients.named("opencode"))
    disconnect(clients.named("opencode"))
    assert tree(home) == before


def test_shown_paths_are_short(home: Path) -> None:
    """The home is a tilde, and only the home."""
    assert (
        files.shown(str(home / "a")) == "~/a"
        and files.shown("/etc/x") == "/etc/x"
        and files.shown(str(home) + "x") == str(home) + "x"
    )
