"""The application in the test's process, with one event loop for all calls: notes are embedded behind them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nudge.core.call import Call
from nudge.core.context import Context
from tests.unit.service import Service as Operations

T = TypeVar("T")
PROJECT = "github.com/acme/shop"
HERE = Call(context=Context(project=PROJECT))
TERMINAL = Call(context=Context(project=PROJECT), interface="cli")


class Service(Operations):
    caller = HERE

    def __init__(self, path: Path, **settings: Any) -> None:
        super().__init__(path, **settings)
        self.loop = asyncio.new_event_loop()

    def __call__(self, name: str, *, call: Call | None = None, **params: Any) -> Any:
        return self.loop.run_until_complete(self.app.execute(f"nudge.{name}", params, call or self.caller))

    def use(self, directory: Path) -> Any:
        """Use a model, and embed what waits."""
        result = self("semantic_use", call=TERMINAL, directory=str(directory))
        self.embed()
        return result

    def store(self, title: str, content: str, **fields: Any) -> int:
        stored: int = self("memory_store", title=title, content=content, **{"kind": "decision", **fields})["id"]
        return stored

    def embed(self) -> None:
        self.loop.run_until_complete(self.app.meaning.embedded())

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        return self.loop.run_until_complete(self.database.read(query))

    def sql(self, statement: str, *values: Any) -> list[Any]:
        return self.read(lambda connection: connection.execute(statement, values).fetchall())

    def change(self, statement: str, *values: Any) -> None:
        self.loop.run_until_complete(self.database.write(lambda connection: connection.execute(statement, values)))

    def recalled(self, text: str, **params: Any) -> list[int]:
        return [row["id"] for row in self("memory_recall", context=text, **params)["memories"]]

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.database.close()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
