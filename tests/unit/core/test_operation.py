"""The registry of operations."""

from __future__ import annotations

from typing import Any

from nudge.core.call import Params, Result
from nudge.core.operation import modules_with_operations, operation, registered_in
from nudge.interfaces.operations import OPERATIONS


class _Greet(Params):
    name: str


class _Greeting(Result):
    text: str


def test_an_operation_is_registered_beside_its_function() -> None:
    """The model of the parameters is the annotation of the function's second parameter."""

    @operation(
        "nudge.greet",
        tool="greet",
        group="admin",
        effect="read",
        route="GET /api/v1/greeting",
        result=_Greeting,
        summary="Server: a greeting.",
    )
    async def greet(_app: object, params: _Greet, _call: object) -> Any:
        return {"text": params.name}

    entry = registered_in(greet.__module__)[-1]
    assert (entry.params, entry.result, entry.run) == (_Greet, _Greeting, greet)
    assert (entry.route, entry.listed) == (("GET", "/api/v1/greeting"), True)


def test_what_is_registered_in_the_program_is_offered() -> None:
    """An operation of a module that is missing in the order of tools would be reachable through no interface."""
    ours = [name for name in modules_with_operations() if name.startswith("nudge.")]
    entries = [entry for name in ours for entry in registered_in(name)]
    assert entries and all(OPERATIONS[entry.name] is entry for entry in entries)
