"""Whether the name before a value says that it is a secret. `rules` matches its groups: `name` is the key word, `more`
the words after it, `gap` what separates it from `secret`."""

from __future__ import annotations

import re

from nudge.security.randomness import UUID, looks_random, matches

# Words before `key` that make it a credential, and those that make it none.
_KEY_WORDS = (
    *("access", "account", "api", "app", "auth", "deploy", "encryption", "license", "master", "private", "service"),
    *("shared", "signing", "storage", "subscription", "admin", "secret", "consumer", "webhook"),
)
_HARMLESS_KEY_WORDS = frozenset(
    (
        *("public", "pub", "cache", "hash", "sort", "primary", "partition", "foreign", "idempotency", "dedup"),
        *("dedupe", "row", "range", "object", "group", "routing", "route", "translation", "i18n", "lookup", "index"),
        *("map", "query", "react", "host", "ssh", "gpg", "kms", "s3", "event", "redis", "sharding", "shard", "join"),
        *("candidate", "composite", "unique", "natural", "surrogate", "merge", "restore", "message", "lock", "recv"),
        *("socket", "site", "blob", "file", "issue", "item", "state", "etag", "checksum", "digest", "store", "answer"),
    )
)
# Words after `key` and `token`: the ones that change nothing, and those of a value that may be known.
_STAGES = frozenset(("private", "secret", "prod", "production", "live", "test", "dev", "staging", "v"))
_ABOUT = frozenset(
    (
        *("id", "ids", "hash", "name", "names", "path", "file", "uri", "url", "type", "sha", "digest", "fingerprint"),
        *("version", "etag", "count", "prefix", "arn", "checksum", "commit", "ref", "size", "length", "dir", "hashes"),
        *("expiry", "expires", "ttl", "alg", "algorithm", "format", "field", "index", "vault", "store", "ring", "pair"),
    )
)
# Before `key` and `secret`: git's id of a key, and digests of secrets in Kubernetes.
_PUBLIC_NAMES = ("user.signing", "checksum/", "hash/")
# Words before `key` that do not say whose it is, or whose key is public.
_NO_OWNER = frozenset(
    (
        *("the", "a", "an", "this", "that", "with", "by", "of", "for", "same", "new", "old", "each", "any", "from"),
        *("to", "on", "in", "and", "or", "no", "is", "hit", "miss", "found", "saved", "restored", "exact", "matched"),
        *("rsa", "dsa", "eddsa", "ecdsa", "ed25519", "gpg", "pgp", "ssh"),
    )
)
# Words before `token` that make it a place in a list.
_LIST_WORDS = frozenset(
    ("next", "page", "starting", "continuation", "change", "client", "request", "pagination", "resume")
)
# What holds a `key`, in JSON, YAML and TOML, but is no vendor.
_NO_VENDOR = frozenset(
    ("data", "params", "cursor", "attributes", "properties", "metadata", "entry", "record", "node", "element", "path")
)
# Names of headers and variables that are also ordinary words: their value must be random.
_UNCOMMON_NAMES = frozenset(("auth", "bearer", "pat", "cred", "creds", "honeycomb-team", "app_certificate"))
_CACHE_KEY = r"(?:[A-Za-z0-9.]{1,24}-){1,6}[0-9a-f]{32,64}\Z"  # words and a digest
_APPLE_KEY_ID = r"[A-Z0-9]{10}\Z"
_DIGEST = r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z"
# The last word of what stands before a name: `acme_`, `acme.`, `acme `, `thisAcme`.
_OWNER = r"([A-Z]?[a-z0-9]{1,30}|[A-Z0-9]{1,30})[ _.-]{0,2}\Z"
# What the name is a part of: `acme:` or `[acme]` and a new line, `"acme": {"`.
_PARENT = r"""([A-Za-z][A-Za-z0-9]{2,30})["'\]]{0,2}[ \t]?(?::[ \t]{0,2}\{|[:=][ \t]{0,2}\{|:?\n)\s{0,24}["']?\Z"""


def is_key_name(match: re.Match[str]) -> bool:
    """Whether the name is that of a secret, given its value. A `key` may belong to a cache or a table: who owns it
    decides."""
    if _is_public(match) or not _is_name_of_value(match):
        return False
    name, value = match["name"].lower(), match["secret"]
    if name in _UNCOMMON_NAMES:
        return len(value) >= 16 and looks_random(value)
    if name == "key":
        return _is_secret_key(match)
    # `redis-cli get token:<uuid>` and `arn:aws:secretsmanager:...:secret:name-1a2b3c` name an entry.
    is_entry = match["gap"] == ":" and (matches(UUID, value) or text_before(match, 1) == ":")
    return not is_entry and not is_harmless(match)


def _is_secret_key(match: re.Match[str]) -> bool:
    """`apiKey` is a secret's name, `stripeKey` when the value is random, `key` in a query, or where a vendor holds it:
    `{"stripe": {"key": "k9Jx..."}}`."""
    before, value = text_before(match, 24), match["secret"]
    if before.endswith((" -", " --")):
        return False
    if before.lower().rstrip(" _.-").endswith(_KEY_WORDS):
        return not (before.lower().rstrip(" _.-").endswith("api") and matches(_APPLE_KEY_ID, value))
    if len(value) < 16 or not looks_random(value) or matches(_CACHE_KEY, value):
        return False
    owner = owner_of(match)
    if owner:
        return owner not in _NO_OWNER and owner not in _HARMLESS_KEY_WORDS and owner not in _LIST_WORDS
    return before.endswith(("?", "&", "&amp;")) or _is_held_by_vendor(match)


def _is_held_by_vendor(match: re.Match[str]) -> bool:
    parent = re.search(_PARENT, text_before(match, 70))
    words = _HARMLESS_KEY_WORDS | _NO_OWNER | _NO_VENDOR
    return parent is not None and parent[1].lower() not in words and not matches(f"{UUID}|{_DIGEST}", match["secret"])


def owner_of(match: re.Match[str]) -> str:
    """Return the word right before the name, in small letters, or nothing."""
    found = re.search(_OWNER, text_before(match, 32))
    return found[1].lower() if found else ""


def is_owned(match: re.Match[str]) -> bool:
    """Whether a word says whose the key is: `acme key`, not `the key`."""
    return owner_of(match) not in _NO_OWNER | {""}


def _is_public(match: re.Match[str]) -> bool:
    return text_before(match, 24).lower().endswith(_PUBLIC_NAMES)


def _is_name_of_value(match: re.Match[str]) -> bool:
    """Words after the key word may say where it is for (`API_KEY_EU`), but not that the value is something about it;
    `x/token-refresh:1a2b` is an image."""
    words = re.findall(r"[a-z]+", match["more"].lower())
    if (match["gap"] == ":" and words) or not _ABOUT.isdisjoint(words):
        return False
    return _STAGES.issuperset(words) or is_long_and_random(match)


def is_harmless(match: re.Match[str]) -> bool:
    """Whether it is a key that is no secret, or a place in a list: `cacheKey`, `next-token`, `user.signingKey`."""
    name, owner = match["name"].lower(), owner_of(match)
    return (
        _is_public(match)
        or (name == "key" and owner in _HARMLESS_KEY_WORDS)
        or (name in ("key", "token") and owner in _LIST_WORDS)
    )


def is_negated(match: re.Match[str]) -> bool:
    return matches(r"(?s).*(?:\balias\s{1,4}[\w.-]{0,20}|\bno[-_])\Z", text_before(match, 30))


def names_something_else(match: re.Match[str]) -> bool:
    """`alias pwd=` is a command and `-no-pass` takes no value; `pwd` alone is usually a directory, and `pass` in lower
    case a count, except for an option `--pass`."""
    if is_negated(match):
        return True
    if name_of(match).lower() == "pwd":
        return not matches(r"\w", text_before(match, 1)) or text_before(match, 3).lower() == "old"
    return name_of(match) == "pass" and not matches(r"\s?--?\Z", text_before(match, 3).strip("\"'"))


def name_of(match: re.Match[str]) -> str:
    return match[0][: match.start("gap") - match.start()]


def text_before(match: re.Match[str], most: int) -> str:
    return match.string[max(0, match.start() - most) : match.start()]


def is_long_and_random(match: re.Match[str]) -> bool:
    return len(match["secret"]) >= (12 if is_quoted(match) else 16) and looks_random(match["secret"])


def is_quoted(match: re.Match[str]) -> bool:
    return match.string[match.start("secret") - 1] in "\"'`"
