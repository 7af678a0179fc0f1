"""All checks together, and their repairs."""

from __future__ import annotations

from pathlib import Path

from nudge import doctor
from nudge.core import paths
from nudge.doctor.model import ok, warn
from tests.unit.doctor.conftest import Make, levels, mode_of, publish


def test_a_fresh_machine_is_well(make: Make) -> None:
    """Before the first server no check fails, and every warning has a fix."""
    findings = doctor.run(make())
    assert "fail" not in levels(findings)
    assert all(finding.fix for finding in findings if finding.level != "ok")
    assert not any(finding.fix or finding.repair for finding in findings if finding.level == "ok")


def test_a_command_that_only_looks_is_no_fix(make: Make) -> None:
    """What mends nothing is offered as something to look at: the log of the server, and who has a port."""
    warning = "the database is odd; see: nudge doctor"
    result = doctor.run(make(status={"durability": "process", "last_error": "x", "warnings": [warning]}))
    looks = {one.check: one for one in result if one.look is not None}
    assert set(looks) == {"server", "port"}
    assert not any(one.fix or "nudge doctor" in one.message for one in looks.values())


def test_looking_changes_nothing(make: Make, run: Path) -> None:
    """A run without a fix leaves every file as it was; only the lock's file may be created."""
    (run / "token").write_text("t0k3n")
    (run / "token").chmod(0o644)
    (run / "s-0a.sock").touch()
    publish(run)
    before = {path.name: (mode_of(path), path.read_bytes()) for path in run.iterdir()}
    doctor.run(make())
    after = {path.name: (mode_of(path), path.read_bytes()) for path in run.iterdir() if path.name != paths.LOCK}
    assert after == before


def test_fix_repairs_what_is_safe(make: Make, run: Path) -> None:
    """Modes, a stale endpoint, leftovers: after one fix the next run finds them well."""
    (run / "token").write_text("t0k3n")
    (run / "token").chmod(0o644)
    (run / "s-0a.sock").touch()
    publish(run)
    run.chmod(0o777)
    did = dict(doctor.fix(doctor.run(make())))
    assert did["directory"].startswith("chmod 700") and did["token"].startswith("chmod 600")
    assert "s-0a.sock" in did["endpoint"] and "server.pid" in did["endpoint"]
    assert mode_of(run) == 0o700 and mode_of(run / "token") == 0o600 and (run / "token").read_text() == "t0k3n"
    assert not [finding for finding in doctor.run(make()) if finding.repair is not None]


def test_a_repair_that_fails_is_not_reported_as_done() -> None:
    """What could not be repaired stays a finding; the next repair is still tried."""

    def refuse() -> str:
        raise PermissionError

    findings = [
        warn("a", "m", "c", refuse),
        warn("b", "m", "c", lambda: ""),
        warn("c", "m", "c", lambda: "done"),
        ok("d", "m"),
    ]
    assert (doctor.fix(findings)) == [("c", "done")]


def test_a_finding_on_the_wire() -> None:
    """A finding becomes plain values, with whether `--fix` can repair it."""
    assert warn("port", "held", "lsof", lambda: "").to_json() == {
        "check": "port",
        "level": "warn",
        "message": "held",
        "fix": "lsof",
        "look": None,
        "fixable": True,
    }
