from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nudge.cli import completion
from nudge.cli.verbs import shown_verbs
from tests.unit.cli.conftest import HINT, Nudge, Server

BASH = shutil.which("bash")
SHELLS = ("bash", "zsh", "fish")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def live(server: Server) -> Server:
    """A server that knows hints, sessions and types."""
    server.answers = {
        "nudge.list_components": {
            "components": [
                {"name": "api", "hint_count": 2},
                {"name": "http-proxy", "hint_count": 1},
                {"name": "evil\nname", "hint_count": 1},
            ],
            "hints": [
                {"key": key, "hint": HINT, "eligible": True, "reasons": []} for key in ("build", "build", "test")
            ],
        },
        "nudge.sessions": [
            {"session_id": "d4f8a2b1-0000", "project": "api", "summary": {"intent": "fix it"}},
            {"session_id": "ffff0000-0000", "project": "web", "summary": None},
        ],
        "nudge.status": {"history": {"retention": {"days": {"command": 180, "command_error": 180, "file_edit": 365}}}},
    }
    return server


def candidates(nudge: Nudge, monkeypatch: pytest.MonkeyPatch, line: str, shell: str = "bash") -> list[str]:
    """What the shell would offer behind `nudge LINE`."""
    monkeypatch.setenv("_NUDGE_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", f"nudge {line}")
    outcome = nudge()
    assert (outcome.code, outcome.err) == (0, "")
    return [text.removeprefix("plain,") for text in outcome.out.splitlines()]


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(nudge: Nudge, shell: str) -> None:
    """Each shell gets a script in click's protocol that serves both command names."""
    outcome = nudge("completion", shell)
    assert outcome.code == 0 and outcome.out == completion.script(shell)
    assert f"_NUDGE_COMPLETE={shell}_complete" in outcome.out and "nudge-mcp" in outcome.out


def test_an_unknown_shell(nudge: Nudge) -> None:
    """The error names the shells."""
    outcome = nudge("completion", "tcsh")
    assert outcome.code == 2 and "'fish'" in outcome.err


@pytest.mark.parametrize("shell", SHELLS)
def test_syntax(shell: str) -> None:
    """The shell itself accepts its script."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n"], input=completion.script(shell), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("nudge ge", ["get"]),
        ("nudge get ht", ["http-proxy"]),
        ("nudge get scope:a", ["api", "as\\ is"]),
        ("nudge get $", [r"\$\(touch\ x\)"]),
        ("nudge get ", ["http-proxy", "scope:api", "scope:as\\ is", r"\$\(touch\ x\)", "get"]),
    ],
)
def test_bash(tmp_path: Path, line: str, reply: list[str]) -> None:
    """Bash puts in what fits, quoted, and without the part before a colon that it already has."""
    stand_in = tmp_path / "nudge"
    names = "http-proxy\\nscope:api\\nscope:as is\\n$(touch x)\\nget\\n"
    stand_in.write_text(
        "#!/bin/bash\n"
        f"printf '{names}' | while read -r n; do\n"
        '  [[ "$n" == "${COMP_WORDS##*[[:space:]]}"* ]] && printf "plain,%s\\n" "$n"\n'
        "done\n"
    )
    stand_in.chmod(0o755)
    call = f"COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}\n_nudge_completion {shlex.quote(str(stand_in))}\n"
    show = "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    assert BASH is not None
    done = subprocess.run(
        [BASH], input=completion.script("bash") + call + show, text=True, capture_output=True, check=True, cwd=tmp_path
    )
    assert (done.stdout.splitlines(), done.stderr) == (reply, "")


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_with_the_real_program(tmp_path: Path) -> None:
    """`source <(nudge completion bash)` works as the README says, and no server is started for it."""
    nudge = tmp_path / "nudge"
    nudge.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nudge "$@"\n')
    nudge.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "NUDGE_RUNTIME_DIR": str(tmp_path / "run"),
        "PYTHONPATH": str(ROOT),
    }
    script = (
        "source <(nudge completion bash)\nCOMP_LINE='nudge unp' COMP_POINT=9\n_nudge_completion nudge\n"
        "echo ${COMPREPLY[@]}\nCOMP_LINE='nudge get ' COMP_POINT=10\n_nudge_completion nudge\necho ${#COMPREPLY[@]}\n"
    )
    assert BASH is not None
    done = subprocess.run([BASH, "-c", script], env=env, text=True, capture_output=True, check=True)
    assert (done.stdout, done.stderr, (tmp_path / "run").exists()) == ("unpin\n0\n", "", False)


def test_verbs_are_offered(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """First come the verbs, also after a global option; hidden ones stay hidden."""
    names = [verb.name for verb in shown_verbs(parent="")]
    assert candidates(nudge, monkeypatch, "") == candidates(nudge, monkeypatch, "-p 9000 ") == names
    assert candidates(nudge, monkeypatch, "un") == ["unpin"]


def test_verbs_of_a_verb_are_offered(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind `note` come its own verbs, behind an unknown one nothing."""
    names = [verb.word for verb in shown_verbs(parent="note")]
    assert candidates(nudge, monkeypatch, "note ") == candidates(nudge, monkeypatch, "note --json ") == names
    assert candidates(nudge, monkeypatch, "note archive re") == ["restore"]
    assert candidates(nudge, monkeypatch, "note nonsense ") == []


def test_a_seed_name_is_offered_to_who_begins_to_type_it(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """`nudge mem` is completed, and behind `memory` come the verbs of `note`."""
    assert candidates(nudge, monkeypatch, "mem") == ["memory"]
    assert candidates(nudge, monkeypatch, "no") == ["note"]
    assert candidates(nudge, monkeypatch, "memory ") == candidates(nudge, monkeypatch, "note ")
    assert candidates(nudge, monkeypatch, "memory archive re") == ["restore"]
    assert candidates(nudge, monkeypatch, "man memory archive re") == ["restore"]


def test_notes_are_offered(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids, namespaces, kinds and tiers; what is archived only where it can be restored."""
    server.answers = {
        "nudge.memory_list": {"memories": [{"id": 12, "title": "Why SQLite"}, {"id": 7, "title": "VPN"}]},
        "nudge.memory_archive_list": {"memories": [{"id": 3, "title": "Old"}]},
        "nudge.memory_namespaces": {"namespaces": [{"namespace": "github.com/acme/api", "count": 2}]},
    }
    assert candidates(nudge, monkeypatch, "note get ") == ["m12", "m7"]
    assert candidates(nudge, monkeypatch, "note link m7 m1") == ["m12"]
    assert candidates(nudge, monkeypatch, "note archive restore ") == ["m3"]
    assert candidates(nudge, monkeypatch, "note list --repo g") == ["github.com/acme/api"]
    assert candidates(nudge, monkeypatch, "note list --tier ") == ["short", "mid", "long"]
    assert candidates(nudge, monkeypatch, "remember x --kind d") == ["decision", "discovery"]
    assert True not in server.started


def test_zsh_and_fish_get_a_description(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """They show the summary beside the name."""
    monkeypatch.setenv("COMP_CWORD", "1")
    assert candidates(nudge, monkeypatch, "unp", "zsh") == ["plain", "unpin", "let observations expire again"]
    monkeypatch.setenv("COMP_CWORD", "unp")
    assert candidates(nudge, monkeypatch, "unp", "fish") == ["unpin\tlet observations expire again"]


def test_options_are_offered(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash asks for the options of the verb, or the global ones before it."""
    assert candidates(nudge, monkeypatch, "get --va") == ["--value-only"]
    assert candidates(nudge, monkeypatch, "--") == ["--port", "--json", "--version", "--help"]
    assert "--successor" not in candidates(nudge, monkeypatch, "serve --")


def test_choices_are_offered(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option or argument with fixed values offers them; so do the clients of connect."""
    assert candidates(nudge, monkeypatch, "set a b --type j") == ["json"]
    assert candidates(nudge, monkeypatch, "completion ") == ["bash", "zsh", "fish"]
    assert candidates(nudge, monkeypatch, "connect claude-c") == ["claude-code"]


@pytest.mark.parametrize("words", ["delete a b --scope-os", "set a b --scope-os", "set a b --os"])
def test_names_in_a_list_are_offered(nudge: Nudge, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """An option that takes a list offers each name, and behind a comma those that are not in it yet."""
    assert candidates(nudge, monkeypatch, f"{words} ") == ["linux", "darwin", "windows"]
    assert candidates(nudge, monkeypatch, f"{words} linux,") == ["linux,darwin", "linux,windows"]
    assert candidates(nudge, monkeypatch, f"{words} linux,d") == ["linux,darwin"]


def test_names_come_from_the_server(nudge: Nudge, live: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Components and keys are those of the running server, which is never started; odd names are left out."""
    assert candidates(nudge, monkeypatch, "get ") == ["api", "http-proxy"]
    assert candidates(nudge, monkeypatch, "query --component h") == ["http-proxy"]
    assert candidates(nudge, monkeypatch, "-p 9000 get --branch dev api ") == ["build", "test"]
    assert live.params == {"component": "api"} and live.made_with["port"] == 9000
    assert live.started == [False, False, False] and live.made_with["autostart"] is False


@pytest.mark.parametrize("verb", ["get", "set", "bump", "delete", "ls", "explain"])
def test_hints_are_offered_in_one_word(nudge: Nudge, live: Server, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """Behind the slash come the keys of the component, for every verb that takes a hint."""
    assert candidates(nudge, monkeypatch, f"{verb} libs/api/") == ["libs/api/build", "libs/api/test"]
    assert live.params == {"component": "libs/api"}
    assert candidates(nudge, monkeypatch, f"{verb} api/t") == ["api/test"]
    assert candidates(nudge, monkeypatch, "query --component api/") == []
    assert True not in live.started


def test_man_and_help_offer_verbs(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the program itself does, also behind `note`."""
    for verb in ("man", "help"):
        assert candidates(nudge, monkeypatch, f"{verb} ") == [entry.word for entry in shown_verbs(parent="")]
        assert candidates(nudge, monkeypatch, f"{verb} note archive re") == ["restore"]
        assert candidates(nudge, monkeypatch, f"{verb} get ") == []


def test_attempts_are_offered(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the verb takes: only open ones can be resolved, only orphans adopted."""
    entries = [{"id": 12, "goal": "fast login", "is_orphan": True}, {"id": 7, "goal": "x\x1b"}]
    server.answers["nudge.list_ghap_entries"] = {"entries": entries}
    assert candidates(nudge, monkeypatch, "journal show ") == ["m12", "m7"]
    assert "outcome" not in server.params
    for verb in ("resolve", "update"):
        assert candidates(nudge, monkeypatch, f"journal {verb} ") == ["m12", "m7"]
        assert (server.params["outcome"], server.params["project"]) == ("open", None)
    assert candidates(nudge, monkeypatch, "journal adopt ") == ["m12"]
    assert True not in server.started


def test_told_and_learned_are_offered(
    nudge: Nudge, server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be banned, allowed and forgotten in the project that is named, or in this one."""
    lines = [{"name": "m12", "text": "use uv"}, {"name": "m12", "text": "use uv"}, {"name": "fact pytest", "text": "x"}]
    server.answers = {
        "nudge.told": {"lines": lines, "never": ["m3"]},
        "nudge.learned": {
            "facts": [{"subject": "pytest", "answer": "uv run pytest"}, {"subject": "y", "answer": None}]
        },
    }
    assert candidates(nudge, monkeypatch, "told --never ") == ["m12", "fact pytest"]
    assert server.params == {"project": "github.com/org/x"}
    assert candidates(nudge, monkeypatch, "told --repo API --allow ") == ["m3"]
    assert server.params == {"project": "api"}
    assert candidates(nudge, monkeypatch, "facts --all-repos --forget p") == ["pytest"]
    assert server.params == {"project": None} and repo.exists() and True not in server.started


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("trace ", ["last", "d4f8a2b1", "ffff0000"]),
        ("trace d", ["d4f8a2b1"]),
        ("purge --session f", ["ffff0000"]),
        ("search x --repo w", ["web"]),
        ("search x --type command", ["command", "command_error"]),
        ("purge --type f", ["file_edit"]),
    ],
)
def test_history_is_offered(
    nudge: Nudge, live: Server, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    """Sessions, projects and observation types, as the running server knows them."""
    assert candidates(nudge, monkeypatch, line) == offered
    assert True not in live.started and live.made_with["autostart"] is False


def test_nothing_to_offer(nudge: Nudge, live: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a shell should offer files, or nothing, it gets no names."""
    for line in ("get a b ", "nonsense ", "get a b --cwd ", "set a b "):
        assert candidates(nudge, monkeypatch, line) == []
    assert candidates(nudge, monkeypatch, "import ") == ["file,"]
    assert live.calls == []


@pytest.mark.parametrize("answer", [None, [], {"components": 7}, RuntimeError("broken"), {"components": [{}]}])
def test_it_never_fails(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """No server, a broken one, nonsense on the line: exit 0 and silence."""
    server.answers["nudge.list_components"] = answer
    assert candidates(nudge, monkeypatch, "get ") == []
    server.endpoints = [None]
    assert candidates(nudge, monkeypatch, "get ") == []
    assert candidates(nudge, monkeypatch, "-p many get ") == []
    assert candidates(nudge, monkeypatch, 'get "unclosed ') == []
    monkeypatch.setenv("_NUDGE_COMPLETE", "csh_complete")
    assert (nudge().code, nudge().out) == (0, "")


def test_it_needs_no_settings(nudge: Nudge, live: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken config.toml does not take the names away."""
    del live
    (somewhere.parent / "config.toml").write_text("port = ")
    assert candidates(nudge, monkeypatch, "get a") == ["api"]
