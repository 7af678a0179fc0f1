"""Find credentials in text: hints that hold one are refused, recorded text is redacted.

A text is first searched for the clues that a rule needs. Most texts have none, and then neither the rules nor `re` are
imported, which would take a hook longer than everything else that it does.
"""

from __future__ import annotations

from nudge.security.formats import BASE64, find_tokens

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
