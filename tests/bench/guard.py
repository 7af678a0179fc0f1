"""What the secret guard catches, by kind, alone and in text; and how often it refuses an everyday command."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence

from nudge.security.secrets import find_secret, redact
from tests.bench import budgets, guard_samples, secret_corpus
from tests.bench.report import Row
from tests.harness import Machine
from tests.unit.security.benign_corpus import BENIGN

_TOKENS = 6  # of each kind
_EVERYDAY = 6  # texts from each template


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
    for half in (secret_corpus.OPEN, secret_corpus.HELD_OUT):
        yield from _half(half)


def _half(half: str) -> Iterator[Row]:
    """What is found in one half of the corpus. Only misses of the open half are shown."""
    samples = {"alone": list(secret_corpus.alone(half)), "in text": list(secret_corpus.in_text(half))}
    missed = {where: [each for each in tried if find_secret(each.text) is None] for where, tried in samples.items()}
    samples["on disk"] = samples["in text"]
    missed["on disk"] = [
        each
        for number, each in enumerate(samples["on disk"])
        if secret_corpus.is_readable(each.secret, secret_corpus.on_disk(each, number))
    ]
    if half == secret_corpus.OPEN:
        shown = sorted({each.text for tried in missed.values() for each in tried})
        print(f"guard: missed in the open half: {shown or 'none'}", file=sys.stderr)
    for where, tried in samples.items():
        share = 100 - 100 * len(missed[where]) / len(tried)
        wanted = budgets.ALONE if where == "alone" else budgets.GUARD_RECALL
        yield Row("guard", f"{half} half, {where}", share, wanted, "%", f"{len(tried)} texts", at_least=True)
    benign = secret_corpus.everyday(half) + secret_corpus.agents_commands(half)
    yield _false_alarms(f"{half} half, false alarms", benign, shown=half == secret_corpus.OPEN)


def _in_context(source: random.Random) -> Iterator[Row]:
    """Passwords and keys without a format, in the texts that show what they are."""
    texts = [(template, guard_samples.make(template, source)) for template in guard_samples.contexts() * _TOKENS]
    missed = sorted({template for template, text in texts if find_secret(text) is None})
    kept = sorted({template for template, text in texts if redact(text) == text})
    for name, templates in (("missed", missed), ("not redacted", kept)):
        print(f"guard: {name} at least once: {templates or 'none'}", file=sys.stderr)
    share = 100 * sum(find_secret(text) is not None for _, text in texts) / len(texts)
    yield Row("guard", "credentials in context", share, budgets.GUARD_RECALL, "%", f"{len(texts)} texts", at_least=True)


def _false_alarms(name: str, texts: Sequence[str], *, shown: bool = True) -> Row:
    alarms = [text for text in texts if find_secret(text) is not None]
    for text in alarms if shown else ():
        print(f"guard: {find_secret(text)} in {text[:200]!r}", file=sys.stderr)
    return Row("guard", name, 100 * len(alarms) / len(texts), budgets.FALSE_ALARMS, "%", f"{len(texts)} texts")
