"""The application in the test's process: operations by name on one database, with a clock that can be put forward."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

from nudge.core.app import App
from nudge.core.call import Call
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Settings
from nudge.storage.database import Database


class Service:
    """One PRIMARY. A test module adds what its tests say often, in a class of its own with the same name: the fixtures
    `service` and `open_service` open that."""

    prefix: ClassVar[str] = "nudge."
    """What the names of operations begin with in the tests that leave it out."""
    caller: ClassVar[Call] = Call()
    """Who calls, unless a test says."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.app = App(open_in_memory(Settings(settings)), OPERATIONS)
        self.database = self.app.database = Database.open(str(path))
        self.ahead = 0.0
        clock = self.app.lifetime.clock.now
        self.app.now = lambda: clock() + self.ahead  # type: ignore[method-assign]

    def __call__(self, name: str, *, call: Call | None = None, **params: Any) -> Any:
        async def answer() -> Any:
            result = await self.app.execute(f"{self.prefix}{name}", params, call or self.caller)
            await self.app.deferred.recalls_counted()
            return result

        return asyncio.run(answer())
