from __future__ import annotations

import json
from pathlib import Path

import pytest

from nudge import doctor as checkup
from nudge.doctor.finding import Finding, Patient, fail, ok, warn
from nudge.errors import NudgeError, Unavailable

from .conftest import Nudge, Server


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, server: Server) -> list[list[Finding]]:
    """What each examination finds, one after the other; the last one stays."""
    rounds: list[list[Finding]] = [[ok("lock", "free")]]
    server.answers["nudge.status"] = None
    monkeypatch.setattr(checkup, "examine", lambda _patient: rounds.pop(0) if len(rounds) > 1 else rounds[0])
    return rounds


def test_all_well(nudge: Nudge, found: list[list[Finding]]) -> None:
    """One line a check, and exit 0."""
    assert found
    outcome = nudge("doctor")
    assert (outcome.code, outcome.out) == (0, "ok     lock  free\n✔ all is well\n")


def test_what_is_wrong_comes_with_what_mends_it(nudge: Nudge, found: list[list[Finding]]) -> None:
    """A failure is exit 3; the mend stands under its line; a stranger's text cannot steer the terminal."""
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
        "              mend: lsof",
        "fail   token  open",
        "              mend: chmod 600 token",
        "ok     lock   free",
        "1 failure, 1 warning; what is safe is mended by: nudge doctor --fix",
    ]


def test_a_warning_is_no_failure(nudge: Nudge, found: list[list[Finding]]) -> None:
    """Exit 0; --fix is not offered where it would do nothing."""
    found[:] = [[warn("port", "held", "lsof")]]
    outcome = nudge("doctor")
    assert outcome.code == 0 and outcome.out.endswith("0 failures, 1 warning\n")


def test_fix(nudge: Nudge, found: list[list[Finding]]) -> None:
    """What was mended is said, then how things are now; the exit code is about now."""
    broken = [fail("token", "open", "chmod 600 token", lambda: "chmod 600 token")]
    found[:] = [broken, [ok("token", "closed")]]
    outcome = nudge("doctor", "--fix")
    assert (outcome.code, outcome.out) == (0, "fixed  token  chmod 600 token\nok     token  closed\n✔ all is well\n")
    found[:] = [broken, [ok("token", "closed")]]
    assert json.loads(nudge("doctor", "--fix", "--json").out) == {
        "ok": True,
        "findings": [{"check": "token", "level": "ok", "message": "closed", "mend": None, "fixable": False}],
        "fixed": [{"check": "token", "did": "chmod 600 token"}],
    }


def test_the_patient(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings that cannot be read, and a server that hangs, are findings and no errors; nothing is started."""
    seen: list[Patient] = []

    def examine(patient: Patient) -> list[Finding]:
        seen.append(patient)
        return []

    monkeypatch.setattr(checkup, "examine", examine)
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
