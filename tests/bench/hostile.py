"""How long PRIMARY's event loop is held by requests that mean no good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from statistics import median
from typing import Any

from nudge import limits
from nudge.hints.transfer import SCHEMA_VERSION
from nudge.ipc import endpoint
from nudge.ipc.endpoint import Endpoint
from tests.bench import budgets, hints
from tests.bench.report import Row
from tests.harness import ROOT, Machine, eventually

_ROUNDS = 3
_LARGE_VALUE = 3_000  # characters: with 5,000 hints, just under 16 MiB
_IDLE = 1.0  # seconds
_FIRST_WORDS = 400  # bytes of an answer
_EVIL_REGEXES = (
    r"(a|aa)+$",
    r"(.*)(.*)(.*)(.*)(.*)nothing",
    r"[a-q][^u-z]{13}x",
    r"(x+x+)+y|pytest.*pytest.*service-9+z",
)
_LONG_CWD = "/" + "/".join(["aaab"] * 800)


@dataclass(frozen=True, slots=True)
class _Attack:
    """`answer` is what every answer holds in its first words: an attack that is turned away at the door measures the
    door."""

    what: str
    answer: bytes
    bodies: Sequence[bytes]


class _Target:
    """The watched PRIMARY, and the attacker's connection to it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.watched_primary"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=machine.environ,
            cwd=ROOT,
        )
        machine.processes.append(self._process)
        self._published: Endpoint = machine.ready()

    def ask(self, body: bytes, expected: bytes) -> None:
        """Over TCP, as a stranger with a stolen token would."""
        link = HTTPConnection("127.0.0.1", self._published.port, timeout=60)
        token = endpoint.read_token(self._machine.runtime)
        link.request("POST", "/", body, {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
        answer = link.getresponse().read()
        assert expected in answer[:_FIRST_WORDS], answer[:_FIRST_WORDS]
        link.close()

    def gap(self) -> dict[str, float]:
        """The longest since the last time; only once the log, if it is being compacted, is whole again."""
        eventually(
            lambda: not any(name.endswith(".tmp") for name in os.listdir(self._machine.runtime)), "the log is compacted"
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(b".")
        self._process.stdin.flush()
        told: dict[str, float] = json.loads(self._process.stdout.readline())
        return told


def requests(machine: Machine) -> Iterator[Row]:
    target = _Target(machine)
    idle = _idle(target)
    for attack in _attacks():
        yield _measured(target, attack, idle)


def _idle(target: _Target) -> float:
    target.gap()
    time.sleep(_IDLE)
    return target.gap()["wall"]


def _measured(target: _Target, attack: _Attack, idle: float) -> Row:
    gaps = [_attacked(target, attack) for _ in range(_ROUNDS)]
    held, wall = (median(gap[clock] for gap in gaps) for clock in ("held", "wall"))
    return Row(
        "hostile",
        f"loop held by {attack.what}",
        held,
        budgets.LOOP_HELD,
        "ms",
        f"idle {idle:.1f} ms",
        f"by the wall clock {wall:.1f} ms",
    )


def _attacked(target: _Target, attack: _Attack) -> dict[str, float]:
    target.gap()
    for body in attack.bodies:
        target.ask(body, attack.answer)
    return target.gap()


def _attacks() -> Iterator[_Attack]:
    """In this order: the first fills the store that the next three work on."""
    large = hints.request("nudge.import", payload=hints.payload(limits.MAX_HINTS, _LARGE_VALUE), mode="replace")
    assert limits.MAX_IMPORT_BODY_BYTES * 0.9 < len(large) < limits.MAX_IMPORT_BODY_BYTES
    full = f'"imported":{limits.MAX_HINTS}'.encode()
    yield _Attack("an import of 16 MiB", full, [large])
    yield _Attack("an export of a full store", b'"payload"', [hints.request("nudge.export", reveal=True)])
    searches = [hints.request("nudge.query", regex=regex, context=hints.CONTEXT, limit=100) for regex in _EVIL_REGEXES]
    yield _Attack("evil regexes over 5,000 hints", b'"hints"', searches)
    yield _Attack("16 MiB of empty arrays", b'"error"', [_many_small()])
    globs = hints.request("nudge.import", payload=_evil_globs(), mode="replace")
    yield _Attack("an import of evil globs", b'"imported":1000', [globs])
    yield _Attack("get_hint among evil globs", b"E_NOT_FOUND", [_here("nudge.get_hint", component="evil-0", key="key")])
    yield _Attack("query among evil globs", b'"hints"', [_here("nudge.query", limit=100)])


def _many_small() -> bytes:
    one = b"[" + b",".join([b"[]"] * 90_000) + b"]"
    many = b",".join([one] * 20)
    body = b'{"jsonrpc":"2.0","id":1,"method":"nudge.import","params":{"payload":[' + many + b"]}}"
    return body + b" " * (limits.MAX_IMPORT_BODY_BYTES - len(body))


def _evil_globs() -> dict[str, Any]:
    """As many variants as one key may have, each with patterns that are as costly as a scope may have, none of which ever
    matches."""
    variants = range(limits.MAX_HINTS_PER_COMPONENT)
    components = {f"evil-{number}": {"hints": {"key": [_evil(number, nth) for nth in variants]}} for number in range(5)}
    return {"schema_version": SCHEMA_VERSION, "components": components}


def _evil(number: int, variant: int) -> dict[str, Any]:
    globs = [f"**/a*a*/**/a*{number}-{variant}-{nth}" for nth in range(3)]
    return {"value": "x", "meta": {"scope": {"cwd_glob": globs}}}


def _here(method: str, **params: Any) -> bytes:
    return hints.request(method, context={"cwd": _LONG_CWD}, **params)
