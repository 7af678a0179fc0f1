"""The operations on the server itself."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from pydantic import ConfigDict

from nudge.core import limits, paths
from nudge.core.app import App
from nudge.core.call import Call, NoParams, Params, Result
from nudge.core.context import project_of
from nudge.core.errors import NudgeError, Unavailable
from nudge.core.operation import operation
from nudge.core.visibility import Visibility, visible_to
from nudge.settings.config import Settings
from nudge.settings.table import SETTINGS

_PRIVATE = "private_projects"


class Stop(Params):
    force: bool = False
    forget: bool = False


class StatusResult(Result):
    model_config = ConfigDict(extra="allow")

    role: str
    pid: int


class StopResult(Result):
    """With `forget`, also how many hints are forgotten and how many stay until they expire; `lost` are those that were
    in memory only."""

    stopping: bool
    pid: int
    lost: int = 0
    forgotten: int = 0
    kept: int = 0


@operation(
    "nudge.status",
    tool="nudge_status",
    group="admin",
    effect="read",
    route="GET /api/v1/status",
    result=StatusResult,
    listed=False,
    summary="Server: role, session, members and active limits.",
)
async def status(app: App, _params: NoParams, call: Call) -> Any:
    """What the server reports about itself. Only a user at a terminal is told the names of private projects."""
    semantic = await app.meaning.report()
    report = {**app.describe(), **({"semantic": semantic} if semantic["model"] is not None else {})}
    if call.interface != "cli":
        return _without_private_names(report, visible_to(app, call))
    counts = await _history_counts(app)
    return {**report, "history": {**report["history"], **counts}} if report.get("history") else report


async def _history_counts(app: App) -> dict[str, int]:
    """How many sessions and notes there are, also those of private projects; nothing when they cannot be read.
    Observations are too many to be counted."""
    sql = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM notes)"
    try:
        sessions, notes = await app.read_history(lambda connection: connection.execute(sql).fetchone())
    except NudgeError:
        return {}
    return {"sessions": sessions, "notes": notes}


def _without_private_names(report: dict[str, Any], visible: Visibility) -> dict[str, Any]:
    settings, members = dict(report.get("settings") or {}), report.get("members") or ()
    if _PRIVATE in settings:
        settings[_PRIVATE] = f"{settings[_PRIVATE].count(',') + 1} (named at a terminal: nudge status)"
    return {**report, "settings": settings, "members": [_without_private(member, visible) for member in members]}


def _without_private(member: dict[str, Any], visible: Visibility) -> dict[str, Any]:
    """A member, without where it is if that is private to others."""
    kept = {**member, "differs": _other_differences(member)} if "differs" in member else member
    if visible.shows(project_of(kept.get("repo"), None)):
        return kept
    return {name: value for name, value in kept.items() if name not in ("repo", "branch")}


def _other_differences(member: dict[str, Any]) -> list[str]:
    return [line for line in member["differs"] if _PRIVATE not in line.split(" (")[0].lower().replace("-", "_")]


@operation(
    "nudge.stop",
    tool="nudge_stop",
    group="admin",
    effect="delete",
    route="POST /api/v1/stop",
    result=StopResult,
    listed=False,
    summary="Server: stop a detached server; `force` also stops one inside a client, `forget` also ends the session.",
)
async def stop(app: App, params: Stop, _call: Call) -> Any:
    return app.request_stop(params.force, params.forget)


class SettingsResult(Result):
    settings: list[dict[str, Any]]


@operation(
    "nudge.settings",
    tool="settings",
    group="admin",
    effect="read",
    route="GET /api/v1/settings",
    result=SettingsResult,
    listed=False,
    summary="Server: the settings in force, and where each comes from.",
)
async def list_settings(app: App, _params: NoParams, call: Call) -> Any:
    """List the settings. Only a user at a terminal is told the names of private projects."""
    settings = app.lifetime.settings
    rows = []
    for setting in SETTINGS:
        value = getattr(settings, setting.name)
        if setting.name == _PRIVATE and value and call.interface != "cli":
            value = f"{len(value)} (named at a terminal: nudge status)"
        rows.append(
            {
                "name": setting.name,
                "value": value,
                "from": _origin_of(setting.name, settings),
                "variable": setting.variable,
                "description": setting.description,
            }
        )
    return {"settings": rows}


def _origin_of(name: str, settings: Settings) -> str:
    if name in settings.session:
        return "flag or variable"
    return "config.toml" if name in settings.explicit else "default"


class DoctorResult(Result):
    ok: bool
    findings: list[dict[str, Any]]


@operation(
    "nudge.doctor",
    tool="doctor",
    group="admin",
    effect="read",
    route="GET /api/v1/doctor",
    result=DoctorResult,
    listed=False,
    summary="Server: check the installation, with the fix of each problem.",
)
async def doctor(_app: App, _params: NoParams, _call: Call) -> Any:
    """Run `nudge doctor`, which checks from outside, in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "nudge", "doctor", "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={**os.environ, "NUDGE_RUNTIME_DIR": paths.runtime_dir()},
    )
    try:
        answer, _ = await asyncio.wait_for(process.communicate(), limits.DOCTOR_TIMEOUT)
        report = json.loads(answer)
    except (TimeoutError, ValueError):
        raise Unavailable("the checks did not end; run them with: nudge doctor") from None
    finally:
        if process.returncode is None:
            process.kill()
    return {"ok": report["ok"], "findings": report["findings"]}
