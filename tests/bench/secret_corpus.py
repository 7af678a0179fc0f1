"""Secrets of some 290 vendors in the texts where they are met, and everyday texts without one; each in two halves.

The *open* half may be read while rules are written. The *held-out* half is only scored: its misses are not printed. A
vendor belongs to one half with all its kinds, a place and an everyday text as a template, an agent's command as a
whole; a bit of a SHA-256 decides, and a secret of one half is only put into places of the same half. `OPEN_VENDORS`
were known misses before the corpus was made, so they are open.

The names are made from the vendor and the key word of a kind: `@SNAKE@` is ACME_API_KEY, `@words@` is acme api key.
`⏎` is a new line. The tokens are random, in the formats that vendors and secret scanners publish.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nudge.core import thin_json
from nudge.history.extract import extract
from tests.bench import guard_samples

OPEN, HELD_OUT = "open", "held-out"
OPEN_VENDORS = frozenset(
    (
        *("dynatrace", "flyio", "cloudflare", "launchdarkly", "zoho", "mapbox", "zapier", "newrelic", "pulumi"),
        *("square", "figma", "terraform", "aws", "artifactory", "discord"),
    )
)
_DATA = Path(__file__).parent / "data"
_PLACES = 24  # texts with each kind
_EVERYDAY = 8  # texts from each template
_TAIL = 12  # the last characters of a secret: if they can be read, the secret can be
_SHORTEST_ALONE = 20  # random characters that show as such without a name


class Kind(NamedTuple):
    vendor: str
    name: str
    value: str  # a template of `guard_samples.make`

    @property
    def has_shape(self) -> bool:
        """Whether the value shows what it is by its prefix or its mark."""
        return len(re.findall(r"[A-Za-z0-9]", re.sub(r"\{\w+\}", "", self.value))) > 1

    @property
    def shows_alone(self) -> bool:
        """A UUID or a short random word alone may be anything."""
        lengths = [int(size) for size in re.findall(r"\{[A-Za-z](\d+)\}", self.value)]
        return self.has_shape or sum(lengths) >= _SHORTEST_ALONE


class Sample(NamedTuple):
    kind: Kind
    place: str
    secret: str
    text: str


def half_of(name: str) -> str:
    return HELD_OUT if hashlib.sha256(name.encode()).digest()[0] & 1 else OPEN


def kinds(half: str) -> list[Kind]:
    rows = [Kind(*line.split(" ", 2)) for line in _lines("secret_kinds.txt")]
    return [row for row in rows if (OPEN if row.vendor in OPEN_VENDORS else half_of(row.vendor)) == half]


def alone(half: str) -> Iterator[Sample]:
    """Each kind's value and nothing else."""
    source = random.Random(half)
    for kind in kinds(half):
        if kind.shows_alone:
            for _ in range(4):
                secret = guard_samples.make(kind.value, source)
                yield Sample(kind, "@value@", secret, secret)


def in_text(half: str) -> Iterator[Sample]:
    """Each kind in some of the places of its half; where the place has no name, only a value that has a shape."""
    source = random.Random(half)
    places = [
        place for place in (line.partition(" ")[2] for line in _lines("secret_places.txt")) if half_of(place) == half
    ]
    for kind in kinds(half):
        fitting = [
            place
            for place in places
            if kind.has_shape or re.search("@[A-Za-z-]*(?i:key|snake|camel|kebab|pascal|dotted|words)", place)
        ]
        for place in source.sample(fitting, _PLACES):
            secret = guard_samples.make(kind.value, source)
            yield Sample(kind, place, secret, _fill(place, kind, secret))


def on_disk(sample: Sample, number: int) -> str:
    """What a hook writes of an event with that text: a command, a prompt, or the error of a command."""
    payload: dict[str, Any] = {
        "session_id": "s",
        "cwd": "/repo",
        "client": "claude",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
    }
    match number % 3:
        case 0:
            payload |= {"tool_input": {"command": sample.text}, "tool_response": {"stdout": ""}}
        case 1:
            payload |= {"hook_event_name": "UserPromptSubmit", "prompt": sample.text}
        case _:
            payload |= {
                "hook_event_name": "PostToolUseFailure",
                "tool_input": {"command": "make"},
                "error": sample.text,
            }
    event = extract(payload, now=1.0)
    assert event is not None
    return thin_json.dumps(event)


def is_readable(secret: str, text: str) -> bool:
    return secret[-_TAIL:] in text


def everyday(half: str) -> list[str]:
    """Commands, paths, digests, ids, code and sentences without a secret."""
    templates = [line.replace("⏎", "\n") for line in _lines("benign_texts.txt") if half_of(line) == half]
    return guard_samples.fill(templates, _EVERYDAY, random.Random(half))


def agents_commands(half: str) -> list[str]:
    """The commands of 135 real runs of an agent, each once."""
    with gzip.open(_DATA / "replay.jsonl.gz", "rt", encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    commands = {event["tool_input"]["command"] for event in events if event.get("tool_name") == "Bash"}
    return sorted(command for command in commands if half_of(command) == half)


def _lines(name: str) -> list[str]:
    return (_DATA / name).read_text(encoding="utf-8").splitlines()


def _fill(place: str, kind: Kind, secret: str) -> str:
    key, vendor = kind.name.split("_"), kind.vendor
    words = [vendor, *key]
    names = {
        "SNAKE": "_".join(words).upper(),
        "snake": "_".join(words),
        "camel": _camel(words),
        "Pascal": "".join(map(str.capitalize, words)),
        "kebab": "-".join(words),
        "Kebab": "-".join(map(str.capitalize, words)),
        "dotted": ".".join(words),
        "words": " ".join(words),
        "vendor": vendor,
        "Vendor": vendor.capitalize(),
        "key": "_".join(key),
        "Key": _camel(key),
        "key-dash": "-".join(key),
        "key-words": " ".join(key),
        "value": secret,
    }
    return re.sub(r"@([A-Za-z-]+)@", lambda match: names.get(match[1], match[0]), place.replace("⏎", "\n"))


def _camel(words: list[str]) -> str:
    return words[0] + "".join(map(str.capitalize, words[1:]))
