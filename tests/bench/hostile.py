"""How long PRIMARY's event loop is held by requests that mean no good."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from nudge.core import limits
from nudge.hints.transfer import SCHEMA_VERSION
from tests.bench import budgets, hints
from tests.bench.report import Row
from tests.bench.watched import Watched
from tests.harness import Machine

_ROUNDS = 3
_LARGE_VALUE = 3_000  # characters of each of 5,000 hints: 16 MiB in all
_IMPORTED_NOTES = 4_000
_IDLE = 1.0  # seconds
_EVIL_REGEXES = (
    r"(a|aa)+$",
    r"(.*)(.*)(.*)(.*)(.*)nothing",
    r"[a-q][^u-z]{13}x",
    r"(x+x+)+y|pytest.*pytest.*service-9+z",
)
_LONG_CWD = "/" + "/".join(["aaab"] * 800)


@dataclass(frozen=True, slots=True)
class _Attack:
    what: str
    run: Callable[[Watched], None]


def requests(machine: Machine) -> Iterator[Row]:
    target = Watched(machine)
    idle = _idle(target)
    for attack in _attacks():
        yield _measured(target, attack, idle)


def _idle(target: Watched) -> float:
    target.gap()
    time.sleep(_IDLE)
    return target.gap()["wall"]


def _measured(target: Watched, attack: _Attack, idle: float) -> Row:
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


def _attacked(target: Watched, attack: _Attack) -> dict[str, float]:
    target.gap()
    attack.run(target)
    return target.gap()


def _attacks() -> Iterator[_Attack]:
    """In this order: the first fills the store that the next ones work on."""
    large = json.dumps(hints.payload(limits.MAX_HINTS, _LARGE_VALUE))
    yield _Attack(f"an import of {len(large) // limits.MIB} MiB", lambda target: _import_all(target, large))
    yield _Attack("an export of a full store", lambda target: _export_all(target, len(large)))
    batch = json.dumps([json.loads(hints.request("nudge.list_components", component="service-0"))] * limits.MAX_BATCH)
    yield _Attack("100 calls with large answers", lambda target: target.ask(batch.encode(), b'"result"'))
    yield _Attack("evil regexes over 5,000 hints", _search)
    phrase = hints.request("nudge.query", text='"compose docker"', context=hints.CONTEXT)
    yield _Attack("a phrase of words that all of 5,000 hints have", lambda target: target.ask(phrase, b'"hints":[]'))
    for what, body, expected in _bodies():
        yield _Attack(f"1 MiB of {what}", partial(Watched.ask, body=body, expected=expected))
    globs = hints.request("nudge.import", payload=_evil_globs(), mode="replace")
    yield _Attack("an import of evil globs", lambda target: target.ask(globs, b'"imported":1000'))
    lookup = _here("nudge.get_hint", component="evil-0", key="key")
    yield _Attack("get_hint among evil globs", lambda target: target.ask(lookup, b"E_NOT_FOUND"))
    query = _here("nudge.query", limit=100)
    yield _Attack("query among evil globs", lambda target: target.ask(query, b'"hints"'))
    bulk = hints.request("nudge.memory_bulk", memories=_notes(limits.MAX_BULK_NOTES, 800))
    yield _Attack("a bulk of 1,000 notes", lambda target: target.ask(bulk, b'"created"'))
    longest = hints.request("nudge.memory_bulk", memories=_notes(14, limits.MAX_NOTE_BYTES - limits.KIB))
    yield _Attack("a bulk of the longest notes", lambda target: target.ask(longest, b'"created"'))
    recall = hints.request("nudge.memory_recall", context="token password deploy " * 300, limit=200)
    yield _Attack("a recall of 1 MiB of notes", lambda target: target.ask(recall, b'"memories"'))
    notes = json.dumps({"memories": _notes(_IMPORTED_NOTES, 3_800)}).encode()
    assert len(notes) < limits.MAX_IMPORT_BODY_BYTES
    imported = partial(Watched.ask, body=notes, expected=b'"errors":[]', path="/api/v1/import")
    yield _Attack(f"an import of {len(notes) // limits.MIB} MiB of notes over HTTP", imported)
    exported = partial(Watched.ask, body=b"", expected=b'"memories":[', verb="GET", path="/api/v1/export")
    yield _Attack("an export of them over HTTP", exported)


def _notes(count: int, size: int) -> list[dict[str, str]]:
    """Of words that the search for secrets looks at twice."""
    words = "token deploy password key=abc http://host/path sha256 "
    content = (words * (size // len(words) + 1))[:size]
    return [{"title": f"{size} {number}", "content": f"{number} {content}"} for number in range(count)]


def _import_all(target: Watched, payload: str) -> None:
    imported = json.loads(target.command("import", "-", "--mode", "replace", "--json", stdin=payload))["imported"]
    assert imported == limits.MAX_HINTS, imported


def _export_all(target: Watched, size: int) -> None:
    assert len(target.command("export", "--reveal")) > size


def _search(target: Watched) -> None:
    for regex in _EVIL_REGEXES:
        target.ask(hints.request("nudge.query", regex=regex, context=hints.CONTEXT, limit=100), b'"hints"')


def _bodies() -> Iterator[tuple[str, bytes, bytes]]:
    """As many values as a message may have, in the forms that are dearest to read, and more than it may have."""
    most = limits.MAX_JSON_VALUES - 10
    yield "numbers", _padded(b"[" + b",".join([b"1.5"] * most) + b"]"), b"-32600"
    yield "objects", _padded(b"[" + b",".join([b'{"a":""}'] * (most // 2)) + b"]"), b"-32600"
    yield "keys", _padded(b"{" + b",".join(b'"%d":""' % number for number in range(90_000)) + b"}"), b"-32600"
    yield "columns", _padded(b"[" + b",".join([b"[" * 60 + b"]" * 60] * (most // 61)) + b"]"), b"-32600"
    yield "empty arrays", _padded(b"[" + b",".join([b"[]"] * 300_000) + b"]"), b"too many values"


def _padded(body: bytes) -> bytes:
    assert len(body) <= limits.MAX_BODY_BYTES
    return body.ljust(limits.MAX_BODY_BYTES)


def _evil_globs() -> dict[str, Any]:
    """As many variants as one key may have, each with patterns that are as costly as a scope may have, none of which
    ever matches."""
    variants = range(limits.MAX_HINTS_PER_COMPONENT)
    components = {f"evil-{number}": {"hints": {"key": [_evil(number, nth) for nth in variants]}} for number in range(5)}
    return {"schema_version": SCHEMA_VERSION, "components": components}


def _evil(number: int, variant: int) -> dict[str, Any]:
    globs = [f"**/a*a*/**/a*{number}-{variant}-{nth}" for nth in range(3)]
    return {"value": "x", "meta": {"scope": {"cwd_glob": globs}}}


def _here(method: str, **params: Any) -> bytes:
    return hints.request(method, context={"cwd": _LONG_CWD}, **params)
