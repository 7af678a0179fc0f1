"""What the secret guard catches, by kind, alone and in text; and how often it refuses an everyday command."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nudge.security.secrets import find_secret, redact
from tests.bench import budgets, guard_samples
from tests.bench.report import Row
from tests.harness import Machine
from tests.unit.security.benign_corpus import BENIGN

_TOKENS = 6  # of each kind
_EVERYDAY = 6  # texts from each template
_REPLAY = Path(__file__).parent / "data" / "replay.jsonl.gz"


def recall(_machine: Machine) -> Iterator[Row]:
    source = random.Random(2026)
    missed: dict[str, int] = {}
    hits = {"alone": 0, "in text": 0, "redacted": 0}
    tries = dict.fromkeys(hits, 0)
    for kind, template in guard_samples.kinds():
        for number in range(_TOKENS * len(guard_samples.PLACES)):
            place = guard_samples.PLACES[number % len(guard_samples.PLACES)]
            token = guard_samples.make(template, source)
            text = place.format(token)
            where = "alone" if place == "{}" else "in text"
            found = find_secret(text) is not None
            missed[kind] = missed.get(kind, 0) + (not found)
            for name, outcome in ((where, found), ("redacted", token not in redact(text))):
                hits[name] += outcome
                tries[name] += 1
    worst = sorted((kind for kind in missed if missed[kind]), key=missed.__getitem__, reverse=True)
    print(f"guard: {len(missed)} kinds, missed at least once: {', '.join(worst) or 'none'}", file=sys.stderr)
    yield from _in_context(source)
    for name, count in hits.items():
        share = 100 * count / tries[name]
        yield Row("guard", f"tokens {name}", share, budgets.GUARD_RECALL, "%", f"{tries[name]} tokens", at_least=True)
    yield _false_alarms("false alarms", BENIGN)
    yield _false_alarms("false alarms, everyday commands", guard_samples.everyday(_EVERYDAY, source))
    yield _false_alarms("false alarms, agents' commands", _agents_commands())


def _in_context(source: random.Random) -> Iterator[Row]:
    """Passwords and keys without a format, in the texts that show what they are."""
    texts = [(template, guard_samples.make(template, source)) for template in guard_samples.contexts() * _TOKENS]
    missed = sorted({template for template, text in texts if find_secret(text) is None})
    kept = sorted({template for template, text in texts if redact(text) == text})
    for name, templates in (("missed", missed), ("not redacted", kept)):
        print(f"guard: {name} at least once: {templates or 'none'}", file=sys.stderr)
    share = 100 * sum(find_secret(text) is not None for _, text in texts) / len(texts)
    yield Row("guard", "credentials in context", share, budgets.GUARD_RECALL, "%", f"{len(texts)} texts", at_least=True)


def _agents_commands() -> list[str]:
    """The commands of 135 real runs of an agent."""
    with gzip.open(_REPLAY, "rt", encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    return [event["tool_input"]["command"] for event in events if event.get("tool_name") == "Bash"]


def _false_alarms(name: str, texts: Sequence[str]) -> Row:
    alarms = [text for text in texts if find_secret(text) is not None]
    for text in alarms:
        print(f"guard: {find_secret(text)} in {text[:200]!r}", file=sys.stderr)
    return Row("guard", name, 100 * len(alarms) / len(texts), budgets.FALSE_ALARMS, "%", f"{len(texts)} texts")
