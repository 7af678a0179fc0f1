"""The registry of operations. Each is registered beside its function; MCP tools, JSON-RPC methods, REST routes and the
OpenAPI document are made from what is registered here.

    @operation("nudge.bump", tool="nudge_bump", group="hints", effect="write", result=HintResult,
               route="POST /api/v1/hints/{component}/{key}/bump", summary="Hints: credit one that worked.")
    async def bump(app: App, params: Bump, call: Call) -> Any: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

Effect = Literal["read", "write", "delete"]
"""What an operation does to what is stored: nothing; add to it, or save a newer version of the one thing that the call
names; or also remove or overwrite others."""
Group = Literal["hints", "history", "memories", "journal", "admin"]
AsText = Callable[[Mapping[str, Any], Mapping[str, Any]], str | None]

_Run = TypeVar("_Run", bound=Callable[..., Awaitable[Any]])


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as every interface offers it.

    `tool` is its name in MCP and `group` what `--tools` may choose it by; `effect` gives the annotations and says
    whether a closed connection cancels it (only a read); `listed` puts it on the default list of tools. `as_text` makes
    the text block of an MCP answer from arguments and result, where that is not the JSON of the result.
    """

    name: str
    tool: str
    group: Group
    summary: str
    params: type[Any]
    result: type[BaseModel]
    run: Callable[..., Awaitable[Any]]
    effect: Effect
    route: tuple[str, str]
    listed: bool = True
    as_text: AsText | None = None


_REGISTERED: dict[str, list[Operation]] = {}
"""By the module of the function."""


def operation(
    name: str,
    *,
    tool: str,
    group: Group,
    summary: str,
    result: type[BaseModel],
    effect: Effect,
    route: str,
    listed: bool = True,
    as_text: AsText | None = None,
) -> Callable[[_Run], _Run]:
    """Register a function of application, parameters and call. The model of its parameters is the annotation of the
    second; `route` is method and path."""

    def register(run: _Run) -> _Run:
        _, params, *_ = inspect.signature(run, eval_str=True).parameters.values()
        method, path = route.split()
        entry = Operation(
            name, tool, group, summary, params.annotation, result, run, effect, (method, path), listed, as_text
        )
        _REGISTERED.setdefault(run.__module__, []).append(entry)
        return run

    return register


def registered_in(module: str) -> list[Operation]:
    """Return the operations of a module that is imported, in their order."""
    return _REGISTERED.get(module, [])


def modules_with_operations() -> frozenset[str]:
    """Return the names of the imported modules that register operations."""
    return frozenset(_REGISTERED)
