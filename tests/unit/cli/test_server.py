from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nudge import doctor
from nudge.core import limits, paths
from nudge.core.errors import NudgeError, RemoteError, Unavailable, WrongPort
from nudge.doctor.model import Finding, Snapshot, fail, ok, warn
from nudge.settings import switches as switch
from nudge.settings.table import HOOK, SETTINGS
from nudge.storage import spool
from tests.unit.cli.conftest import Nudge, Server, Typed

TOKEN = "t0k3n" * 8
STATUS = {
    "role": "PRIMARY",
    "pid": 41,
    "port": 8765,
    "socket": None,
    "version": "0.1.0",
    "started": "2026-11-16T08:30:00.000000Z",
    "generation": "g1",
    "owner": "client",
    "client": "claude-code",
    "uptime": 11_520.4,
    "session": {
        "id": "s1",
        "created": "2026-11-15T08:30:00.000000Z",
        "age": 97_920.0,
        "grace": 43_200.0,
        "read_only": None,
    },
    "members": [
        {"client": "codex", "pid": 43, "version": "0.1.0"},
        {"client": "claude-code", "pid": 42, "version": "0.1.0"},
        {"client": "claude-code", "pid": 7, "version": "0.1.0"},
    ],
    "hints": 1,
    "log_bytes": 1_536,
    "durability": "process",
    "spool": None,
    "last_error": None,
    "new": True,
}


def test_status(nudge: Nudge, server: Server) -> None:
    """An aligned list with sizes and spans that a person reads; a field that this client does not know is shown too."""
    server.answers["nudge.status"] = STATUS
    outcome = nudge("status")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "role        PRIMARY",
        "pid         41",
        "owner       client (claude-code)",
        "version     0.1.0",
        "uptime      3h 12m (since 2026-11-16 08:30:00 UTC)",
        "session     s1, since 2026-11-15 08:30:00 UTC (1d 3h ago); ends 12h after the last process",
        "members     claude-code: 2 (pids 7, 42); codex: 1 (pid 43)",
        "hints       1",
        "log         1.5 KiB",
        "durability  process: hints outlive the server",
        "recording   on here",
        "spool       -",
        "last error  -",
        "port        8765",
        "socket      -",
        "generation  g1",
        "new         yes",
    ]
    assert json.loads(nudge("status", "--json").out) == {**STATUS, "recording": True, "differences": []}


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"owner": "detached", "client": None}, "owner       detached"),
        ({"hints": 0, "members": []}, "members     -"),
        ({"session": {"id": "s1", "grace": 0}}, "session     s1, since - (0s ago); ends with the last process"),
        (
            {"session": {"id": "s1", "grace": 0}},
            "durability  process: hints outlive the server while a process of the session lives",
        ),
        ({"durability": "none"}, "durability  none: hints are only in the server's memory"),
        ({"durability": "none", "session": {"read_only": "a newer log"}}, "durability  read-only: a newer log"),
        ({"durability": "fsync"}, "durability  fsync"),
        ({"history": {"read_only": "a newer Nudge"}}, "history     read-only: a newer Nudge"),
        ({"history": {"read_only": "x", "readable": True}}, "history     read-only: x"),
        ({"history": {"read_only": "malformed", "readable": False}}, "history     not readable: malformed"),
        ({"last_error": "the disk is \x1b[31mfull"}, "last error  the disk is \\x1b[31mfull"),
    ],
)
def test_status_in_other_states(nudge: Nudge, server: Server, changed: dict[str, object], line: str) -> None:
    """Each state has its words; what the server says cannot steer a terminal."""
    server.answers["nudge.status"] = {**STATUS, **changed}
    assert line in nudge("status").out.splitlines()


def test_status_of_an_older_server(nudge: Nudge, server: Server) -> None:
    """A server that says less is shown with what it says."""
    server.answers["nudge.status"] = {
        "role": "PRIMARY",
        "pid": 41,
        "started": "2026-11-16T08:30:00.000000Z",
        "spool": {"files": 2},
    }
    assert nudge("status").out.splitlines() == [
        "role       PRIMARY",
        "pid        41",
        "recording  on here",
        "spool      files 2",
        "started    2026-11-16T08:30:00.000000Z",
    ]


def test_status_without_a_server(nudge: Nudge, server: Server) -> None:
    """Exit 4, a remark for people, an object with a null role for programs."""
    server.answers["nudge.status"] = None
    outcome = nudge("status")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == "no server is running; the next command that needs one starts it\n"
    as_json = nudge("status", "--json")
    assert as_json.code == 4 and json.loads(as_json.out)["role"] is None


def test_status_tells_what_waits_for_a_server(nudge: Nudge, server: Server) -> None:
    """Who would count it for us is not there."""
    server.answers["nudge.status"] = None
    spool.write(paths.runtime_dir(), {"event_id": "1"})
    spool.count_dropped(paths.runtime_dir())
    assert (
        "1 hook event waiting for it" in (text := nudge("status").err)
        and "1 hook event dropped; see: nudge doctor" in text
    )
    assert json.loads(nudge("status", "--json").out)["spool"] == {"files": 1, "bytes": 16, "dropped": 1}


@pytest.mark.parametrize("answer", [STATUS, None])
def test_status_tells_that_recording_is_off(
    nudge: Nudge, server: Server, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what to do about it, with a server or without; also where the switches cannot be read."""
    server.answers["nudge.status"] = answer
    nudge("off", "--all")
    told = nudge("status")
    assert "off everywhere; turn it on with: nudge on --all" in told.out + told.err
    assert json.loads(nudge("status", "--json").out)["recording"] is False
    nudge("on", "--all")
    monkeypatch.setenv("NUDGE_OFF", "1")
    told = nudge("status")
    assert "off here because NUDGE_OFF is set; turn it on with: unset NUDGE_OFF" in told.out + told.err
    monkeypatch.delenv("NUDGE_OFF")
    Path(paths.runtime_dir(), switch.FILE).write_text("{")
    told = nudge("status")
    assert "switches.json cannot be read" in told.out + told.err


def test_status_of_a_server_that_hangs(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is there and does not answer is told from none, by its pid; a suspended one can be woken."""
    server.answers["nudge.status"] = Unavailable("the Nudge server (pid 41) does not answer", pid=41)
    for suspended, words in ((False, "does not answer; stop it with"), (True, "resume it with: kill -CONT 41")):
        monkeypatch.setattr("nudge.process.server_process.is_suspended", lambda _pid, suspended=suspended: suspended)
        outcome = nudge("status")
        assert outcome.code == 4 and "pid 41" in outcome.err and words in outcome.err
    assert json.loads(nudge("status", "--json").out)["error"]["data"]["pid"] == 41


def test_status_of_a_server_that_is_not_up_yet(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is held and nobody answers: somebody is starting, which is not the same as nobody."""
    server.answers["nudge.status"] = None
    monkeypatch.setattr("nudge.core.locks.is_free", lambda _: False)
    outcome = nudge("status")
    assert outcome.code == 4 and "(pid 41) is starting" in outcome.err
    server.endpoints = [None]
    assert "a server is starting" in nudge("status").err


@pytest.mark.parametrize(
    ("words", "params", "line"),
    [
        ([], {"force": False, "forget": False}, "✔ stopped the server (pid 41); hints stay for the session\n"),
        (["--force"], {"force": True, "forget": False}, "✔ stopped the server (pid 41); hints stay for the session\n"),
        (
            ["--forget"],
            {"force": False, "forget": True},
            "✔ stopped the server (pid 41); 3 hints forgotten; 2 with a ttl stay\n",
        ),
    ],
)
def test_stop(
    nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, words: list[str], params: dict[str, bool], line: str
) -> None:
    """It never starts a server, waits until this one has let go of the lock, and says what becomes of the hints."""
    looks = iter([False, False, True])
    monkeypatch.setattr("nudge.core.locks.is_free", lambda _: next(looks))
    counts = {"forgotten": 3, "kept": 2} if "--forget" in words else {}
    server.answers["nudge.stop"] = {"stopping": True, "pid": 41, **counts}
    assert nudge("stop", *words).out == line
    assert (server.params, server.started) == (params, [False])


def test_stop_that_takes_long(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that still finishes its calls is not said to be gone."""
    monkeypatch.setattr(limits, "CALL_TIMEOUT", 0.0)
    monkeypatch.setattr("nudge.core.locks.is_free", lambda _: False)
    server.answers["nudge.stop"] = {"stopping": True, "pid": 41}
    assert nudge("stop").out.startswith("✔ stopping the server (pid 41)")


def test_stop_without_grace(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a session ends with its last process, hints are not said to stay."""
    monkeypatch.setenv("NUDGE_SESSION_GRACE", "0")
    server.answers["nudge.stop"] = {"stopping": True, "pid": 41}
    assert (
        nudge("stop").out
        == "✔ stopped the server (pid 41); the session ends with its last process (NUDGE_SESSION_GRACE=0)\n"
    )


def test_stop_refused(nudge: Nudge, server: Server) -> None:
    """A server inside a client is left alone."""
    server.answers["nudge.stop"] = RemoteError(
        {"code": 40901, "message": "it lives inside a client", "data": {"reason": "E_CONFLICT"}}
    )
    assert nudge("stop").code == 3


@pytest.mark.parametrize("flags", [[], ["--force"], ["--forget"]])
def test_stop_without_a_server(nudge: Nudge, server: Server, flags: list[str]) -> None:
    """With nothing to stop, nothing to kill and nothing to forget it is done, and says that none runs."""
    server.answers["nudge.stop"] = Unavailable("no Nudge server is running")
    outcome = nudge("stop", *flags)
    assert (outcome.code, outcome.out, outcome.err) == (0, "no server is running\n", "")
    assert json.loads(nudge("stop", *flags, "--json").out) == {"stopping": False, "pid": None}


@pytest.mark.parametrize("verb", ["status", "stop", "token"])
def test_looking_needs_no_settings(nudge: Nudge, server: Server, somewhere: Path, verb: str) -> None:
    """A broken `config.toml` hides no running server, and keeps none alive."""
    (somewhere.parent / "config.toml").write_text("port = ")
    (somewhere.parent / "runtime").mkdir()
    (somewhere.parent / "runtime" / "token").write_text(f"{TOKEN}\n")
    server.answers = {"nudge.status": STATUS, "nudge.stop": {"stopping": True, "pid": 41}}
    assert nudge(verb).code == 0
    assert nudge("ls").code == 3


def test_settings_that_cannot_be_read_turn_recording_off(
    nudge: Nudge, server: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy is to edit the file, or to unset the variable: what the reason names."""
    server.answers["nudge.status"] = STATUS
    file = somewhere.parent / "config.toml"
    file.write_text("port = ")
    assert f"turn it on with: ${{EDITOR:-vi}} {file}" in nudge("status").out
    file.unlink()
    monkeypatch.setenv("NUDGE_MAX_HINTS", "many")
    assert "turn it on with: unset NUDGE_MAX_HINTS" in nudge("status").out


@pytest.mark.parametrize("verb", ["status", "stop", "token"])
def test_looking_at_the_wrong_port(nudge: Nudge, server: Server, verb: str) -> None:
    """A server that listens elsewhere is not said to be none."""
    wrong = WrongPort("port 9 is not where the running Nudge server listens (8765); leave out -p")
    server.answers = {"nudge.status": wrong, "nudge.stop": wrong}
    outcome = nudge(verb, "-p", "9")
    assert outcome.code == 4 and "leave out -p" in outcome.err


@pytest.mark.parametrize("forget", [False, True])
def test_stop_kills_one_that_hangs(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, forget: bool) -> None:
    """Only with --force, and only through the function that looks whom it meets."""
    killed: list[int] = []
    monkeypatch.setattr("nudge.process.server_process.kill", lambda _directory, published: killed.append(published.pid))
    server.answers["nudge.stop"] = Unavailable("does not answer", pid=41)
    assert nudge("stop").code == 4 and killed == []
    outcome = nudge("stop", "--force", *(["--forget"] if forget else []))
    fate = "the session's hints are forgotten" if forget else "hints stay for the session"
    assert (outcome.code, outcome.out) == (0, f"✔ killed the server (pid 41), which did not answer; {fate}\n")
    assert killed == [41]


def test_stop_kills_nobody_for_another_servers_error(
    nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong port is no hanging server, nor is one that has been replaced meanwhile."""
    monkeypatch.setattr("nudge.process.server_process.kill", lambda *_: pytest.fail("nobody may be killed"))
    for error in (WrongPort("port 9 is not where it listens"), Unavailable("does not answer", pid=40)):
        server.answers["nudge.stop"] = error
        assert nudge("stop", "--force").code == 4


def test_token(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The bare token, fit for `$(nudge token)`."""
    runtime = somewhere.parent / "runtime"
    runtime.mkdir()
    (runtime / "token").write_text(f"{TOKEN}\n")
    server.answers["nudge.status"] = STATUS
    assert nudge("token").out == f"{TOKEN}\n"
    assert json.loads(nudge("token", "--json").out) == {"token": TOKEN}


def test_token_without_a_server_starts_one(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """Like the other verbs: only a running server accepts the token."""
    (somewhere.parent / "runtime").mkdir()
    (somewhere.parent / "runtime" / "token").write_text(f"{TOKEN}\n")
    server.answers["nudge.status"] = None
    assert nudge("token").out == f"{TOKEN}\n"
    assert server.calls == [("nudge.status", {})] and server.started == [True] and server.made_with["autostart"]


def test_status_counts_sessions_and_notes(nudge: Nudge, server: Server) -> None:
    """Where the server sends them; an older one does not."""
    server.answers["nudge.status"] = {**STATUS, "history": {"bytes": 2_048, "sessions": 3, "notes": 1}}
    assert ", 3 sessions, 1 note\n" in nudge("status").out
    server.answers["nudge.status"] = {**STATUS, "history": {"bytes": 2_048}}
    assert " note" not in nudge("status").out


def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []

    def serve(options: Any) -> int:
        seen.append(options)
        return 7

    monkeypatch.setattr("nudge.process.role.serve", serve)
    return seen


def test_serve_passes_its_flags(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every flag reaches the role, whose exit code is ours."""
    seen = served(monkeypatch)
    flags = "--http --daemon --detach --no-auth --tools all --no-secret-guard --max-hints 10 --successor g1"
    flags += ' --for-new-session {"db":"/x.db"}'
    assert nudge("-p", "9000", "serve", *flags.split()).code == 7
    assert vars(seen[0]) == {
        "http_only": True,
        "daemon": True,
        "detach": True,
        "successor": "g1",
        "for_new": {"db": "/x.db"},
        "flags": {"port": "9000", "auth": "0", "tools": "all", "secret_guard": "0", "max_hints": "10"},
    }


def test_serve_has_a_flag_for_every_setting_of_a_server(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment can say, the command line can; what it says is kept as text, as the environment has
    it."""
    seen = served(monkeypatch)
    given = {
        "port": "9000",
        "auth": None,
        "max_hints": "10",
        "secret_guard": None,
        "default_ttl": "PT2H",
        "session_grace": "0",
        "hint_idle": "60",
        "idle_exit": "1.5",
        "autostart": None,
        "log_level": "debug",
        "cross_project": None,
        "private_projects": "a,b",
        "db": "/d/nudge.db",
        "retention": "command=30",
        "memories": "short_ttl_secs=60",
        "tell": "shadow:20%",
        "journal": "auto",
        "tier": "smart",
        "llm_url": "http://127.0.0.1:11434/v1",
        "llm_model": "gemma3:4b",
        "llm_remote": None,
        "tools": "all",
    }
    assert [name for name in given if given[name] is None] == [
        s.name for s in SETTINGS if s.is_switch and s.used_by != HOOK
    ]
    assert set(given) == {setting.name for setting in SETTINGS if setting.used_by != HOOK}
    words = [
        word for setting in SETTINGS if setting.name in given for word in (setting.flag, given[setting.name]) if word
    ]
    assert nudge("serve", *words).code == 7
    switched = {setting.name: str(int(not setting.default)) for setting in SETTINGS if setting.is_switch}
    assert seen[0].flags == {name: switched[name] if text is None else text for name, text in given.items()}


@pytest.mark.parametrize(
    "words", [["--max-hints", "many"], ["--default-ttl", "P1M"], ["--log-level", "loud"], ["--off"]]
)
def test_serve_refuses_what_is_no_setting(nudge: Nudge, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """One line that names the flag, before anything is started."""
    seen = served(monkeypatch)
    outcome = nudge("serve", *words)
    assert (outcome.code, seen, outcome.err.count("\n")) == (2, [], 1) and words[0] in outcome.err


def test_serve_defaults(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bare `nudge serve` decides nothing by itself; --port works after the verb as well."""
    seen = served(monkeypatch)
    nudge("serve", "--port", "9001")
    assert {name: value for name, value in vars(seen[0]).items() if value} == {"flags": {"port": "9001"}}


def test_the_successor_flag_is_hidden(nudge: Nudge) -> None:
    """It is for our own processes; help does not offer it."""
    assert "--successor" not in nudge("serve", "--help").out


# doctor


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, server: Server) -> list[list[Finding]]:
    """What each run finds, one after the other; the last one stays."""
    rounds: list[list[Finding]] = [[ok("lock", "free")]]
    server.answers["nudge.status"] = None
    monkeypatch.setattr(doctor, "run", lambda _snapshot: rounds.pop(0) if len(rounds) > 1 else rounds[0])
    return rounds


def test_all_well(nudge: Nudge, found: list[list[Finding]]) -> None:
    """One line a check, and exit 0."""
    assert found
    outcome = nudge("doctor")
    assert (outcome.code, outcome.out) == (0, "ok     lock  free\n✔ no problems found\n")


def test_what_is_wrong_comes_with_its_fix(nudge: Nudge, found: list[list[Finding]]) -> None:
    """A failure is exit 3; the fix stands under its line; untrusted text cannot steer the terminal."""
    found[:] = [
        [
            warn("port", "held by \x1b[31m", "lsof"),
            fail("token", "open", "chmod 600 token", lambda: "done"),
            ok("lock", "free"),
        ]
    ]
    outcome = nudge("doctor")
    assert outcome.code == 3
    assert outcome.out.splitlines() == [
        "warn   port   held by \\x1b[31m",
        "              fix: lsof",
        "fail   token  open",
        "              fix: chmod 600 token",
        "ok     lock   free",
        "1 failure, 1 warning; apply the safe fixes with: nudge doctor --fix",
    ]


def test_a_warning_is_no_failure(nudge: Nudge, found: list[list[Finding]]) -> None:
    """Exit 0; --fix is not offered where it would do nothing."""
    found[:] = [[warn("port", "held", look="lsof")]]
    outcome = nudge("doctor")
    assert outcome.code == 0 and outcome.out.endswith(" look: lsof\n0 failures, 1 warning\n")


def test_fix(nudge: Nudge, found: list[list[Finding]]) -> None:
    """What was fixed is said, then how things are now; the exit code is about now."""
    broken = [fail("token", "open", "chmod 600 token", lambda: "chmod 600 token")]
    found[:] = [broken, [ok("token", "closed")]]
    outcome = nudge("doctor", "--fix")
    assert (outcome.code, outcome.out) == (
        0,
        "fixed  token  chmod 600 token\nok     token  closed\n✔ no problems found\n",
    )
    found[:] = [broken, [ok("token", "closed")]]
    assert json.loads(nudge("doctor", "--fix", "--json").out) == {
        "ok": True,
        "findings": [
            {"check": "token", "level": "ok", "message": "closed", "fix": None, "look": None, "fixable": False}
        ],
        "fixed": [{"check": "token", "did": "chmod 600 token"}],
    }


def test_a_fix_that_fixed_nothing_says_so(nudge: Nudge, found: list[list[Finding]]) -> None:
    """The exit code is that of `nudge doctor`: 3 with a failure, 0 when only warnings are left."""
    found[:] = [[warn("port", "held", "lsof")]]
    outcome = nudge("doctor", "--fix")
    assert outcome.code == 0 and "nothing was changed: the problems above cannot be fixed" in outcome.err
    found[:] = [[fail("token", "open", "rm token", lambda: "")]]
    assert nudge("doctor", "--fix").code == 3
    found[:] = [[ok("lock", "free")]]
    assert nudge("doctor", "--fix").code == 0


def test_a_fix_that_is_declined(nudge: Nudge, found: list[list[Finding]], typed: Typed) -> None:
    """No is an answer: nothing is changed, and it is not said that there is no fix."""
    found[:] = [[fail("history", "damaged", "nudge restore x", lambda: "restored", "Restore the backup?")]]
    typed.lines = ["n"]
    outcome = nudge("doctor", "--fix")
    assert (outcome.code, outcome.err) == (3, "Restore the backup? [y/N] nothing was changed\n")


def test_the_snapshot(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings that cannot be read, and a server that hangs, are findings and no errors; nothing is started."""
    seen: list[Snapshot] = []

    def run(snapshot: Snapshot) -> list[Finding]:
        seen.append(snapshot)
        return []

    monkeypatch.setattr(doctor, "run", run)
    monkeypatch.setenv("NUDGE_PORT", "none")
    server.answers["nudge.status"] = Unavailable("pid 41 does not answer; end it with: nudge stop --force", pid=41)
    assert nudge("doctor").code == 0
    assert seen[0].silent == "pid 41 does not answer" and "NUDGE_PORT" in str(seen[0].settings_problem)
    assert seen[0].directory == str(tmp_path / "runtime") and server.made_with["autostart"] is False
    server.answers["nudge.status"] = NudgeError("the server answered with HTTP 500")
    nudge("-p", "9000", "doctor")
    assert (seen[1].silent, seen[1].settings.port) == ("the server answered with HTTP 500", 9000)


def test_in_a_directory_that_is_gone(nudge: Nudge, found: list[list[Finding]], somewhere: Path) -> None:
    """Where the shell stands does not matter."""
    assert found
    somewhere.rmdir()
    assert nudge("doctor").code == 0
