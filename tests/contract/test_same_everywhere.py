"""One table of calls, five ways in: the same call gives the same result and the same error through each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.allowed import ALLOWED
from tests.contract.refusals import REFUSALS
from tests.contract.steps import CODES, Case
from tests.contract.ways import (
    ALONE,
    EMPTY_STORE,
    TO_A_PRIMARY,
    WAYS,
    CliProcess,
    InProcess,
    Outcome,
    Way,
    busy_machine,
    normalized,
)
from tests.harness import Machine

CASES = [*ALLOWED, *REFUSALS]
TYPED = [case for case in CASES if case.typeable]
UNTYPEABLE = [case for case in CASES if not case.typeable]
BY_PROCESSES = [case for case in CASES if "guards a write" in case.rule or "unchanged: merge" in case.rule]


@pytest.fixture(scope="module")
def busy() -> Iterator[Machine]:
    with busy_machine() as machine:
        yield machine


@pytest.fixture(scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    name = request.param
    with ALONE[name]() if name in ALONE else TO_A_PRIMARY[name](request.getfixturevalue("busy")) as opened:
        yield opened


@pytest.mark.parametrize("case", TYPED, ids=lambda case: case.rule)
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_a_call_means_the_same_whichever_way_it_comes(way: Way, case: Case) -> None:
    """In-process, JSON-RPC, MCP through PRIMARY, MCP through PROXY and the CLI: same result, same error, to the last
    field."""
    way.call("nudge.import", EMPTY_STORE)
    assert _run(way, case) == _run(InProcess(), case)


@pytest.mark.parametrize("case", UNTYPEABLE, ids=lambda case: case.rule)
@pytest.mark.parametrize("way", [name for name in WAYS if name != "cli"], indirect=True)
def test_what_no_command_line_can_say_is_answered_the_same(way: Way, case: Case) -> None:
    """Parameters that only a program can get wrong are refused in the same words through every way that can carry
    them."""
    way.call("nudge.import", EMPTY_STORE)
    assert _run(way, case) == _run(InProcess(), case)


@pytest.mark.parametrize("case", BY_PROCESSES, ids=lambda case: case.rule)
def test_a_command_of_its_own_process_means_the_same(busy: Machine, case: Case) -> None:
    """What the CLI says inside the test's process it also says as a real command."""
    processes = CliProcess(busy)
    processes.call("nudge.import", EMPTY_STORE)
    assert _run(processes, case) == _run(InProcess(), case)


def test_every_operation_on_hints_and_every_refusal_is_in_the_table() -> None:
    """A method or an error code that nobody compares would drift apart unseen."""
    steps = [step for case in CASES for step in case.steps]
    methods = {"set_hint", "get_hint", "query", "delete_hint", "list_components", "bump", "export", "import", "scan"}
    assert methods == {step.operation.removeprefix("nudge.") for step in steps if "result" in step.expected}
    assert set(CODES) == {step.expected["error"]["data"]["reason"] for step in steps if "error" in step.expected}


def _run(way: Way, case: Case) -> list[Outcome]:
    """Every outcome, each of which must hold what its step expects."""
    outcomes = []
    for step in case.steps:
        outcome = normalized(way.call(step.operation, step.params))
        assert _holds(outcome, step.expected), (
            f"{step.operation} {step.params}\nexpected {step.expected}\ngot      {outcome}"
        )
        outcomes.append(outcome)
    return outcomes


def _holds(actual: Any, expected: Any) -> bool:
    """Objects may hold more than expected, lists may not."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and _holds(actual[name], wanted) for name, wanted in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(_holds, actual, expected))
    return bool(actual == expected and isinstance(actual, bool) == isinstance(expected, bool))
