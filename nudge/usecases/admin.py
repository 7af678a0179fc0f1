"""The server about itself."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.hints import Params


class NoParams(Params):
    pass


class Stop(Params):
    force: bool = False
    forget: bool = False


class Status(BaseModel):
    model_config = ConfigDict(extra="allow")

    role: str
    pid: int


class Stopping(BaseModel):
    stopping: bool
    pid: int


async def status(app: App, _params: NoParams, _call: Call) -> Any:
    return app.describe()


async def stop(app: App, params: Stop, _call: Call) -> Any:
    return app.request_stop(params.force, params.forget)
