"""Find credentials in text: hints that hold one are refused, recorded text is redacted.

A vendor's token is found where a long word begins, by a dictionary of prefixes: compiling 500 alternatives into one
pattern would cost a hook more than its whole budget. For the rules, a text is first searched for the clues that one
needs. Most texts have none, and then neither the rules nor `re` are imported, which would take a hook longer than
everything else that it does. `re` is also imported for a text that has the mark of a token's shape.
"""

from __future__ import annotations

from itertools import pairwise

from nudge.security.formats import ALNUM, ANY, BASE64, DIGITS, FORMATS, PUBLIC_PREFIXES, SHAPES, WORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

REDACTED = "[REDACTED"
"""How the text in place of a credential begins."""

# Every clue of a rule contains one of these, except the words that `may_hold_secret` checks itself.
_CLUES = (
    *("secret", "vault", "eyj", "authorization", "bearer", "pass", "pw", "rediscli_auth", "token", "key", "cred"),
    *("cookie", "_pat=", "_pat:", "auth:", "auth=", "honeycomb", "app_certificate"),
    *(" -u", "\t-u", "\n-u", "--user", " -a", "\t-a", "\n-a", "--auth", "curl", "wget", "mysql", "mariadb", "7z"),
    *("mongo", "cqlsh", "login", "log in", "twine", "redis-cli", "ldap", "zip", "sqlcmd", "bcp", "mosquitto_"),
    *("identified", "sudo -s", "net user", "smb", "rpcclient", "mount.cifs", "convertto-secure"),
    *("define(", "lftp", "ipmitool", "xfreerdp", "signtool"),
)
_SHORTEST_ALONE = 20  # characters of a credential that is the whole text
_SHORTEST_DOTTED = 58  # characters of a Discord token
# What a person writes in place of a token.
_MASKS = (
    *("xxxx", "****", "....", "____", "your", "example", "placeholder", "changeme", "replace", "redacted", "dummy"),
    *("notareal", "not-a-", "not_a_", "fake", "abcdefghijklmnopqrstuvwxyz"),
)
_BEFORE_DIGESTS = ("/", ".", "+", "%", "#", "sha1=", "sha224=", "sha256=", "sha384=", "sha512=", "sha256:", "h1:")
# In JSON and in URLs; `%2B` and `%2F` belong to base64.
_ESCAPES = (
    *("\\n", "\\r", "\\t", "\\u003d", "\\u003D", "\\u0026", "\\u0022", "\\u003c", "\\u003e"),
    *("%0A", "%20", "%22", "%26", "%27", "%2C", "%3A", "%3D", "%7C", "%0a", "%2c", "%3a", "%3d", "%7c"),
)
_BETWEEN_WORDS = "\"'`<>()[]{}"
# Prefixes that are also the beginning of ordinary names: what follows must have digits, small and capital letters, and
# nothing of a word may stand before.
_AMBIGUOUS_PREFIXES = frozenset(
    (
        *("cio", "key", "ak-", "as-", "fw_", "re_", "sk", "PK", "AK", "SK", "BSA", "pa-", "md-", "b_", "ak_", "uak_"),
        *("live_", "test_", "sandbox_", "sk_", "local-", "mb_", "ess_", "YCA", "YCM", "YCN", "secret-", "console-"),
        *("AKID", "GOOG", "SCW", "pat_", "sat_", "lk-", "lk_", "api-", "cli-", "K10", "st.", "pat.", "sat.", "ws-"),
        *("retool_", "A3T", "EAAA", "fnA", "fnE", "AQE", "secret_", "packagist_", "perm-", "perm:", "fk-", "ls-"),
        *("sc_", "ext_", "STS.", "K00", "tk_", "oauth:", "api_", "private_", "apikey_", "rca_", "dub_", "tid_"),
        *("hbp_", "hbt_", "sess-"),
    )
)
# Of these, the ones whose tokens have capital letters only, and the ones whose tokens may have small letters only.
_UPPERCASE_PREFIXES = frozenset(("A3T", "PK", "AK", "SCW", "GOOG"))
_LOWERCASE_PREFIXES = frozenset(
    (
        *("api-", "cli-", "K10", "ws-", "md-", "SK", "live_", "test_", "sk_", "packagist_", "st.", "tk_", "oauth:"),
        *("secret_", "apikey_", "sess-"),
    )
)
# Kinds whose characters are those of file names: their tokens have digits, small and capital letters.
_STRICT_KINDS = frozenset(("litellm-key",))
# Marks of shapes that many texts have.
_COMMON_MARKS = frozenset(("s.", "-", ":", ".", "_", "|", "/", "00", "11", "pat", "-us", "_P", "pk_", "jsn", "k."))
_SHORTEST_TOKEN = 14  # characters of a token with its prefix
_SHORTEST_UNKNOWN = 30  # random characters after the prefix of a vendor who is not in the table
_LONG_BODY = 64  # characters after a prefix
_LONGEST_REST = 256  # characters of a token behind those that its vendor is known to use
_LONG_RUN, _LONG_NUMBER = 21, 15
_compiled: dict[str, re.Pattern[str]] = {}
_by_start: dict[str, list[tuple[str, str, str, int, int]]] = {}


def find_secret(text: str, *, for_redaction: bool = False) -> str | None:
    """Return the kind of the first credential that a hint is refused for, or None; with `for_redaction`, of the first
    one that is redacted in recorded text."""
    for _, _, kind in find_tokens(text):
        return kind
    lowered = text.lower()
    if not may_hold_secret(text, lowered):
        return None
    from nudge.security.rules import RULES

    return next((rule.kind for rule in RULES for _ in rule.spans(text, lowered, for_redaction=for_redaction)), None)


def redact(text: str) -> str:
    """Return the text with `[REDACTED:kind]` in place of each credential, probable ones included."""
    tokens = sorted(find_tokens(text), key=lambda span: (span[0], -span[1]))
    text = _replace(text, tokens)
    lowered = text.lower()
    if not may_hold_secret(text, lowered):
        return text
    from nudge.security.rules import RULES

    for rule in RULES:
        redacted = _replace(text, [(*span, rule.kind) for span in rule.spans(text, lowered, for_redaction=True)])
        if redacted is not text:
            text, lowered = redacted, redacted.lower()
    return text


def redaction(kind: str) -> str:
    """Return the text in place of a credential."""
    return f"{REDACTED}:{kind}]"


def _replace(text: str, spans: list[tuple[int, int, str]]) -> str:
    """Replace sorted spans (start, end, kind); of two that overlap, the first one counts."""
    parts, at = [], 0
    for start, end, kind in spans:
        if start >= at:
            parts += [text[at:start], redaction(kind)]
            at = end
    return "".join([*parts, text[at:]]) if parts else text


def may_hold_secret(text: str, lowered: str) -> bool:
    """Whether a rule may match. True for every text that one does match."""
    return has_clue(lowered) or ("://" in text and "@" in text) or _is_one_word(text) or _has_long_dotted_word(text)


def has_clue(lowered: str) -> bool:
    return any(clue in lowered for clue in _CLUES)


def _is_one_word(text: str) -> bool:
    """Whether the text is one long word in the characters of base64, and no absolute path."""
    word = text.strip().strip("\"'")
    return len(word) >= _SHORTEST_ALONE and word[0] != "/" and not word.strip(BASE64)


def _has_long_dotted_word(text: str) -> bool:
    words = text.replace("/", " ").split() if len(text) >= _SHORTEST_DOTTED and "." in text else ()
    return any(len(word) >= _SHORTEST_DOTTED and "." in word for word in words)


# Vendor tokens


def find_tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of each vendor token in the text; the same token may come under two kinds."""
    yield from _find_formats(_blank_escapes(text))
    yield from _find_shapes(text)


def _blank_escapes(text: str) -> str:
    """Return the text with blanks for escapes that end in a letter or digit: a token may stand right behind one."""
    if "\\" in text or "%" in text:
        for escape in _ESCAPES:
            text = text.replace(escape, " " * len(escape))
    if "\x1b[" in text:
        import re

        text = re.sub(r"\x1b\[[0-9;]{0,16}m", lambda match: " " * len(match[0]), text)
    return text


def _find_formats(text: str) -> Iterator[tuple[int, int, str]]:
    by_start = _index()
    end = 0
    for at, run in _runs(text):
        if at < end:
            continue
        for kind, prefix, characters, fewest, most in by_start.get(text[at : at + 2], ()):
            if text.startswith(prefix, at):
                strict = kind in _STRICT_KINDS
                stop, is_token = _measure(text, at, prefix, characters, fewest, most, strict=strict)
                end = max(end, stop)
                if is_token:
                    yield at, stop, kind
                    break
        else:
            if len(run) >= _SHORTEST_UNKNOWN and text[at - 1 : at] in ("_", "-"):
                start, stop = _start_of_prefix(text, at), at + len(run)
                if start < at and text[stop : stop + 1] not in ("-", "_") and _is_mixture(run) and not _is_mask(run):
                    yield start, stop, "token"


def _start_of_prefix(text: str, at: int) -> int:
    """Return where a vendor's prefix that ends at `at` starts: `acme_live_`; `at` when there is none."""
    before = text[max(0, at - 32) : at]
    prefix = before[len(before.rstrip(WORD)) :]
    first, *_ = words = prefix.replace("-", "_").split("_")[:-1]
    outside = text[max(0, at - len(prefix) - 8) : at - len(prefix)]
    is_prefix = len(words) <= 3 and prefix.islower() and first[:2].isalpha() and len(first) > 1
    is_public = first in PUBLIC_PREFIXES or max(map(len, words)) > 10 or outside.lower().endswith(_BEFORE_DIGESTS)
    return at - len(prefix) if is_prefix and not is_public and len(prefix) < 24 else at


def _runs(text: str) -> Iterator[tuple[int, str]]:
    """Yield place and text of each run of letters and digits, in words that are long enough for a token."""
    if len(text) < _SHORTEST_TOKEN:
        return
    for mark in _BETWEEN_WORDS:
        text = text.replace(mark, " ")
    at = 0
    for word in text.split():
        if len(word) >= _SHORTEST_TOKEN:
            at = text.index(word, at)
            for run in word.translate(_ONLY_ALNUM).split():
                at = text.index(run, at)
                yield at, run
                at += len(run)


class _OnlyAlnum(dict[int, str]):
    """A table for `str.translate` that replaces every character that it does not have by a blank."""

    def __missing__(self, code: int) -> str:
        return " "


_ONLY_ALNUM = _OnlyAlnum({ord(char): char for char in ALNUM})
_ONLY_WORD = _OnlyAlnum({ord(char): char for char in WORD})


def _has_long_run(text: str) -> bool:
    """Return whether the text has a run of characters that only generators make, UUIDs excepted."""
    return any(
        len(run) >= _LONG_RUN or (len(run) >= _LONG_NUMBER and _has_long_number(run)) for _, run in _runs(text)
    ) or any(map(_is_generated_word, _words(text)))


def _has_long_number(run: str) -> bool:
    return any(run[at : at + _LONG_NUMBER].isdigit() for at in range(len(run) - _LONG_NUMBER + 1))


def _words(text: str) -> Iterator[str]:
    """Yield the long runs of letters, digits, dashes and underscores, and each `uuid:...`."""
    for word in text.split():
        if len(word) >= _LONG_RUN:
            for part in word.translate(_ONLY_WORD).split():
                if len(part) >= _LONG_RUN:
                    yield part


def _is_generated_word(word: str) -> bool:
    """Return whether a word with dashes or underscores looks random; a UUID only when a colon follows in its kinds."""
    return word.lower() != word != word.upper() and any(map(word.count, DIGITS)) and not _is_name(word)


def _find_shapes(text: str) -> Iterator[tuple[int, int, str]]:
    has_long_run = None
    for kind, mark, pattern in SHAPES:
        if mark not in text:
            continue
        if mark in _COMMON_MARKS:
            # A colon or a dash is in every text: look first for a run of characters that only generators make.
            if has_long_run is None:
                has_long_run = _has_long_run(text)
            if not has_long_run:
                continue
        for match in _compile(pattern).finditer(text):
            start, end = match.span("secret" if match.re.groups else 0)
            if not _is_mask(text[start:end]):
                yield start, end, kind


def _index() -> dict[str, list[tuple[str, str, str, int, int]]]:
    """Return the formats by the first two characters of their prefix, longest prefix first."""
    if not _by_start:
        rows = [(row[0], prefix, *row[2:]) for row in FORMATS for prefix in row[1]]
        for row in sorted(rows, key=lambda row: -len(row[1])):
            _by_start.setdefault(row[1][:2], []).append(row)
    return _by_start


def _compile(pattern: str) -> re.Pattern[str]:
    import re

    return _compiled.get(pattern) or _compiled.setdefault(pattern, re.compile(pattern))


def _measure(
    text: str, at: int, prefix: str, characters: str, fewest: int, most: int, *, strict: bool
) -> tuple[int, bool]:
    """Return where to look on, and whether a token of this format stands from `at` to there."""
    before = text[at - 1 : at]
    ambiguous = strict or prefix in _AMBIGUOUS_PREFIXES
    if before.isalnum() or (ambiguous and before in ("_", "-", ".", "/")):
        return at, False
    start = at + len(prefix)
    rest = text[start : start + most + 1]
    body = rest[: len(rest) - len(rest.lstrip(characters))]
    # A long run is not measured again from each place inside it: that would take quadratic time.
    skip = start + len(body) if len(body) > _LONG_BODY else at
    body = body.rstrip(".-:") if most == ANY else body
    end = start + len(body)
    if not fewest <= len(body) <= most or (most != ANY and text[end : end + 1].isalnum()):
        return skip, False
    if _is_mask(body) or (ambiguous and not _is_generated(body, prefix)) or (strict and not _is_mixture(body)):
        return skip, False
    return _end_of_token(text, end), True


def _end_of_token(text: str, end: int) -> int:
    """Return where a token ends whose vendor has more characters than are known: behind a dash or an underscore, more
    of what a generator makes belongs to it, words do not."""
    if text[end : end + 1] not in ("-", "_"):
        return end
    rest = text[end : end + _LONGEST_REST]
    rest = rest[: len(rest) - len(rest.lstrip(WORD))].rstrip("-_")
    return end if _is_name(rest) else end + len(rest)


def _is_generated(body: str, prefix: str) -> bool:
    """Return whether the text has the mixture of characters that a random generator makes, and no name has."""
    if body.isdigit() or _is_name(body):
        return False
    if not any(map(body.count, DIGITS)):
        return _has_scattered_capitals(body)
    if prefix in _UPPERCASE_PREFIXES:
        return body.upper() == body
    return prefix in _LOWERCASE_PREFIXES or (body != body.lower() and body != body.upper())


def _is_mixture(body: str) -> bool:
    """Return whether digits, small and capital letters are mixed, as in no word and no name."""
    digits = sum(map(body.count, DIGITS))
    if digits == 0 or body in (body.lower(), body.upper()):
        return False
    changes = sum(_sort(before) != _sort(now) for before, now in pairwise(body))
    return changes * 4 > len(body) and not _is_name(body)


def _sort(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.islower() else 2


def _has_scattered_capitals(body: str) -> bool:
    """Return whether small and capital letters are mixed as in no word: fewer than half of them are in Camel case."""
    letters = "".join(char for char in body if char.isalpha())
    if len(letters) < 14 or len(letters) < len(body) - 6 or letters in (letters.lower(), letters.upper()):
        return False
    small = "".join(char if char.islower() else " " for char in letters).split()
    return sum(len(run) + 1 for run in small if len(run) > 2) * 5 < len(letters) * 3


def _is_name(body: str) -> bool:
    """Return whether it is words and small numbers, joined: `fake_key_for_ci`."""
    parts = body.replace("_", "-").replace(".", "-").split("-")
    return len(parts) > 1 and all(
        not part or part.isdigit() or (part.rstrip(DIGITS).isalpha() and part[1:] == part[1:].lower()) for part in parts
    )


def _is_mask(body: str) -> bool:
    """Return whether a person wrote it in place of a token: `xxxx`, `your-token-here`."""
    lowered = body.lower()
    # Long random text has any four letters somewhere: only as a word in one case do they mean something there.
    written = lowered if len(body) <= _LONG_BODY else body
    if len(set(lowered)) < 5 or any(mask in written for mask in _MASKS if mask != "example" or not body.isupper()):
        return True
    return (
        body.count("-") + body.count("_") > 1 and lowered.replace("-", "").replace("_", "").isalpha() and _is_name(body)
    )
