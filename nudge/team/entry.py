"""A row of the shared log: one change to a hint or a note, by one origin."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.team.versions import Version

HINT, NOTE = "hint", "note"
KINDS = (HINT, NOTE)
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


class Name(NamedTuple):
    """What a change is about: the title of a note, or component, key and scope of a hint as JSON."""

    project: str
    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Entry:
    """`n` counts the changes of an origin to a project, without gaps. `body` is JSON: `after`, the clock of the version
    that this one replaces, and `fields`, or null when the thing was deleted."""

    project: str
    origin: str
    n: int
    clock: int
    kind: str
    key: str
    body: str

    @property
    def name(self) -> Name:
        return Name(self.project, self.kind, self.key)

    @property
    def version(self) -> Version:
        return Version(self.clock, self.origin)

    def read_body(self) -> Body:
        """Return the parsed body; raises Invalid for one that this version does not understand."""
        return Body.parse(self.body)


@dataclass(frozen=True, slots=True)
class Body:
    after: int
    fields: dict[str, Any] | None

    @classmethod
    def parse(cls, text: str) -> Self:
        if len(text.encode("utf-8", "replace")) > limits.TEAM_BODY_BYTES:
            raise Invalid(f"must be at most {limits.TEAM_BODY_BYTES} bytes", field="body")
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            raise Invalid("must be JSON", field="body") from None
        if not isinstance(body, dict) or body.keys() != {"after", "fields"}:
            raise Invalid("must have `after` and `fields`", field="body")
        after, fields = body["after"], body["fields"]
        if type(after) is not int or not 0 <= after < 2**63 or not isinstance(fields, dict | None):
            raise Invalid("is not as Nudge writes it", field="body")
        return cls(after, fields)

    def to_text(self) -> str:
        return _encode({"after": self.after, "fields": self.fields})

    @property
    def digest(self) -> str:
        return digest_of(self.fields)


def digest_of(fields: dict[str, Any] | None) -> str:
    """Return what tells two contents apart; times do not count, since storing the same again is no change."""
    if fields is None:
        return ""
    content = {name: value for name, value in fields.items() if name not in ("created_at", "updated_at", "version")}
    return hashlib.blake2b(_encode(content).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
