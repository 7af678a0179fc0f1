"""What the title of a note claims: something (the subject) is, has or uses something (the object).

Two titles that claim different objects of one subject may contradict each other: "Database is PostgreSQL", "The
database is MySQL". The grammar is that of short English titles; what it does not understand is a subject as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from nudge.core.words import STOP_WORDS, root, split_words

_TOKEN = re.compile(r"\w+(?:['./-]\w+)*|[:=]")
_NUMBER = re.compile(r"\d+([.:]\d+)*")
_NAME_AT_END = re.compile(r"(\S+(?: [a-z][\w/-]*)+) ([A-Z][\w.+#-]*)")  # "Primary database PostgreSQL"
_NUMBER_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)*)([a-z]+)")

# The forms that titles are written in: the third person, the imperative, and participles after "is" or "are".
_NEGATIONS = frozenset(("not", "never", "no", "avoid", "don't", "dont", "doesn't", "isn't", "aren't", "cannot"))
_IS = frozenset((":", "=", "is", "are", "was", "were", "be", "becomes", "equals", "means", "remains", "defaults"))
_IS_THE = frozenset((verb, article) for verb in ("is", "are") for article in ("the", "our"))
_USE = frozenset(("use", "uses", "prefer", "prefers", "choose", "chose", "pick", "picked", "adopt", "adopted"))
_LIVE = frozenset(
    (
        *("live", "lives", "sit", "sits", "stay", "stays", "reside", "resides", "go", "goes", "belong", "belongs"),
        *("store", "stores", "stored", "keep", "keeps", "kept", "save", "saves", "saved", "put", "puts", "held"),
        *("placed", "hosted", "located", "run", "runs"),
    )
)
_COUNT = frozenset(("need", "needs", "require", "requires", "take", "takes", "have", "has", "allow", "allows", "last"))
_MODALS = frozenset(("should", "must", "can", "may", "will", "shall", "do", "does"))
_PARTICIPLES = frozenset(("built", "done", "given", "made", "read", "sent", "set", "shown", "taken", "told", "written"))
_PREPOSITIONS = {
    **dict.fromkeys(("in", "into", "inside", "within"), "in"),
    **dict.fromkeys(("with", "via", "through", "using"), "with"),
    **{word: word for word in ("after", "as", "at", "before", "by", "every", "for", "from", "on", "over", "per")},
    **{word: word for word in ("than", "to", "under", "until", "without")},
}
_PARTS_OF_SUBJECT = frozenset(("for",))  # "timeout for logins" is one thing, as "login timeout" is
_REASONS = frozenset(("because", "since", "so", "but", "when", "while", "if", "unless", "although", "instead"))
_QUALIFIERS = frozenset(("always", "current", "currently", "default", "how", "now", "only", "please", "the", "usually"))
_RIVALS = (("tabs", "spaces"), ("npm", "yarn", "pnpm", "bun"), ("merge", "rebase", "squash"))
"""Of these a project uses one: "Use tabs" and "Use spaces" have a subject that neither names."""
_COUNTS = frozenset(
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "once", "twice")
)
_UNITS = frozenset(
    (
        *("ms", "s", "sec", "second", "min", "minut", "h", "hour", "d", "dai", "week", "month", "year", "px"),
        *("b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "byte", "percent", "time", "retri", "worker", "thread"),
    )
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a title says, in roots of words. Claims with different `relation` say different things about a subject:
    where it is, what it uses, what happens to it. `object` is empty where the title only names a subject."""

    subject: frozenset[str]
    relation: tuple[str, str] = ("", "")
    object: frozenset[str] = frozenset()
    is_negated: bool = False
    words: tuple[str, ...] = ()
    """What a title that contradicts it has too, as written: the subject, or all that is denied."""

    def may_contradict(self, other: Claim) -> bool:
        """Whether both cannot be right, or say the same twice."""
        if self.is_negated != other.is_negated:
            negated, plain = (self, other) if self.is_negated else (other, self)
            denied = negated.subject | negated.object
            if len(denied) > 1 and denied <= plain.subject | plain.object:
                return True
        if not self.subject or self.subject != other.subject:
            return False
        if self.object and other.object:
            return self.relation == other.relation
        return ("", "") == self.relation == other.relation


def claims_of(title: str) -> list[Claim]:
    """Return what a title says; the second way to read "Jenkins is the CI server" is that the CI server is Jenkins."""
    tokens = list(_tokens(title))
    is_negated = any(token in _NEGATIONS for token in tokens)
    kept = [token for token in tokens if token not in _NEGATIONS and token not in _QUALIFIERS]
    found = _claim(_without_articles(kept))
    if not found.object and (named := _NAME_AT_END.fullmatch(title.strip())) is not None:
        found = _named(named[1], named[2], found)
    claims = [found]
    is_unique = any(pair in _IS_THE for pair in pairwise(tokens))
    if is_unique and found.object and found.relation == ("", ""):
        words = tuple(word for word in _content(kept) if root(word) in found.object)
        claims.append(replace(found, subject=found.object, object=found.subject, words=words))
    claims += _rival_claims(found)
    return [replace(claim, is_negated=True, words=_content(kept)) for claim in claims] if is_negated else claims


def _rival_claims(claim: Claim) -> list[Claim]:
    """The same claim with a subject, once for each thing that cannot be used beside its object."""
    if claim.subject or claim.relation != ("", "with"):
        return []
    rivals = next((names for names in _RIVALS if {*map(root, names)} >= claim.object), ())
    subject = frozenset(map(root, rivals))
    return [replace(claim, subject=subject, words=(name,)) for name in rivals if root(name) not in claim.object]


def may_contradict(one: Sequence[Claim], other: Sequence[Claim]) -> bool:
    return any(mine.may_contradict(theirs) for mine in one for theirs in other)


def negations() -> list[str]:
    """Words with which a title denies something."""
    return sorted({word.partition("'")[0] for word in _NEGATIONS})


def _tokens(title: str) -> Iterator[str]:
    """The words in lower case, up to a reason; a number is separated from its unit."""
    for token in _TOKEN.findall(title.lower()):
        if token in _REASONS:
            return
        unit = _NUMBER_WITH_UNIT.fullmatch(token)
        yield from unit.groups() if unit is not None and root(unit[2]) in _UNITS else (token,)


def _without_articles(tokens: Iterator[str] | Sequence[str]) -> list[str]:
    kept = (*_IS, *_USE, *_MODALS, *_PREPOSITIONS, *_COUNT)
    return [token for token in tokens if token in kept or token not in STOP_WORDS]


def _claim(tokens: Sequence[str]) -> Claim:
    if tokens and tokens[0] in _USE:
        return _imperative_use(tokens)
    for is_relation in (_begins_relation, _begins_place):
        for at in range(1, len(tokens)):
            if is_relation(tokens, at) and _content(tokens[:at]):
                return _predicate(tokens[:at], tokens[at:])
    return _quantity(tokens) or _made(tokens, ("", ""), ())


def _begins_relation(tokens: Sequence[str], at: int) -> bool:
    """Whether a verb begins here that separates subject and object."""
    token, after = tokens[at], tokens[at + 1 :]
    if token in (":", "="):
        new = [word for word in after if word not in tokens[:at]]
        # A longer text says what happens: "Flaky test: login redirects twice".
        return len(new) <= 1 or (len(new) == 2 and _is_count(new[0]))
    if token in _COUNT:
        return bool(after) and _is_count(after[0])
    return (
        token in _IS
        or token in _USE
        or token in _MODALS
        or (token in _LIVE and bool(after) and after[0] in _PREPOSITIONS)
    )


def _begins_place(tokens: Sequence[str], at: int) -> bool:
    return tokens[at] in _PREPOSITIONS and tokens[at] not in _PARTS_OF_SUBJECT


def _predicate(head: Sequence[str], rest: Sequence[str]) -> Claim:
    """The claim of a title that is split before its verb or preposition."""
    head = head[1:] if head[0] in _LIVE and len(head) > 1 else head  # "Store sessions in Redis"
    verb, at = "", 0
    while at < len(rest) and rest[at] not in _PREPOSITIONS:
        token = rest[at]
        if token in _USE:
            return _made(head, ("", "with"), rest[at + 1 :])
        if token in _COUNT or (at and _is_participle(token)):
            verb = root(token)
        elif token not in _IS and token not in _MODALS and token not in _LIVE:
            break
        at += 1
    preposition = _PREPOSITIONS.get(rest[at], "") if at < len(rest) else ""
    if rest[:at] and rest[at - 1] == "defaults":
        preposition, at = "", at + (preposition == "to")
    return _made(head, (verb, preposition), rest[at + bool(preposition) :])


def _is_participle(token: str) -> bool:
    return token in _PARTICIPLES or (token.endswith("ed") and token not in _LIVE)


def _imperative_use(tokens: Sequence[str]) -> Claim:
    """`Use tabs for indentation`: the object comes first. `Use httpx as HTTP client` says what the client is."""
    for at in range(2, len(tokens)):
        if tokens[at] in ("for", "in", "to"):
            return _made(tokens[at + 1 :], ("", "with"), tokens[1:at])
        if tokens[at] == "as":
            return _made(tokens[at + 1 :], ("", ""), tokens[1:at])
    return _made((), ("", "with"), tokens[1:])


def _named(head: str, name: str, otherwise: Claim) -> Claim:
    """The claim of a title that ends with a name, which is a value where two words or more say of what."""
    tokens = _without_articles(_tokens(head))
    if len(_content(tokens)) < 2 or tokens[-1] in _PREPOSITIONS:
        return otherwise
    return _made(tokens, ("", ""), (name.lower(),))


def _quantity(tokens: Sequence[str]) -> Claim | None:
    """A title that ends with a number: `Max upload size 10 MB`. A single word with a number, as `Sprint 12`, is a
    name."""
    for length in (1, 2):
        head, tail = tokens[:-length], tokens[-length:]
        if not head or not _is_count(tail[0]):
            continue
        if (length == 2 and root(tail[1]) in _UNITS) or (length == 1 and len(_content(head)) > 1):
            return _made(head, ("", ""), tail)
    return None


def _is_count(token: str) -> bool:
    return token in _COUNTS or _NUMBER.fullmatch(token) is not None


def _content(tokens: Sequence[str]) -> tuple[str, ...]:
    words = (part for token in tokens for part in ([token] if _is_count(token) else split_words(token)))
    return tuple(word for word in words if word not in STOP_WORDS and word not in _PREPOSITIONS)


def _made(head: Sequence[str], relation: tuple[str, str], rest: Sequence[str]) -> Claim:
    words = _content(head)
    return Claim(frozenset(map(root, words)), relation, frozenset(map(root, _content(rest))), words=words)
