"""The server about itself."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.hints import Params, Result


class NoParams(Params):
    pass


class Stop(Params):
    force: bool = False
    forget: bool = False


class Status(Result):
    model_config = ConfigDict(extra="allow")

    role: str
    pid: int


class Stopping(Result):
    stopping: bool
    pid: int


async def status(app: App, _params: NoParams, _call: Call) -> Any:
    return app.describe()


async def stop(app: App, params: Stop, _call: Call) -> Any:
    return app.request_stop(params.force, params.forget)
