"""Whether a value is a credential. The rules of `secrets` find where one may be; these functions decide by its text."""

from __future__ import annotations

import re

# In the place of a secret, but none: a variable, template, file, mask, code, structure or placeholder.
_PLACEHOLDER = r"""(?x)
    \$[\w({] | %\w+%? | \{ | < | \( | `  | @[\w./~-] | !(?:[A-Z]|secret|vault|env) | ENC\[ | \[ | :
  | [*xX.\#•_-]+\Z
  | (?:\.{0,2}|~)[/\\] | [\w.-]{1,60}(?:/[A-Za-z_.-]{1,60}){1,12}/?\Z
  | [A-Za-z]:[\\/] | [a-z][a-z0-9+.-]{1,20}:// | --? [a-z]
  | [\w./-]{1,200}\.(?:pem|key|crt|json|ya?ml|txt|env|toml|ini|p12|pfx|pub|gpg|asc)\Z | id_(?:rsa|ed25519|ecdsa)\Z
  | (?:sha\d+|md5|env|vault|file|secretref|arn|ref)[:-]
  | [A-Za-z_][\w.]{0,200}[(\[] | (?:[A-Za-z_]+\d{0,5}\.){1,20}[A-Za-z_]\w*\Z | (?:[A-Za-z]+_)+[A-Za-z]+\Z | [a-z]+=[^=]
  | (?i:example|placeholder|dummy|sample|redacted|your|my[-_])
  | (?i:change[-_ ]?(?:me|it|this)|(?:replace|insert)[-_ ]?(?:me|with))
  | (?i:todo|none|null|nil|true|false|undefined)(?:\W|\Z)
"""
# Words and small numbers, joined: a name.
_NAME = r"_{0,2}(?:[A-Za-z]+|v?\d{1,12})(?:[-_./:+](?:[A-Za-z]+|v?\d{1,12}))*[.:,!?]?\Z"
_NAME_WITH_SEPARATORS = r"(?:[A-Za-z]+|v?\d{1,12})(?:[-_./:+](?:[A-Za-z]+|v?\d{1,12}))+\Z"
# Words before `key` that make it a credential; a cache key or a public key is none.
_KEY_WORDS = (
    *(
        "access",
        "account",
        "api",
        "app",
        "auth",
        "deploy",
        "encryption",
        "license",
        "master",
        "private",
        "service",
        "shared",
    ),
    *("signing", "storage"),
)
# Default passwords, and what forms and schemas have in their place.
_WELL_KNOWN = frozenset(
    (
        *(
            "admin",
            "default",
            "guest",
            "mysql",
            "pass",
            "passwd",
            "password",
            "postgres",
            "redis",
            "root",
            "secret",
            "test",
            "testing",
        ),
        *(
            "user",
            "any",
            "bytes",
            "enter",
            "field",
            "hidden",
            "invalid",
            "missing",
            "optional",
            "prompt",
            "required",
            "string",
            "text",
        ),
    )
)
# Programs that take `user:password`, by their option for it; a letter may be the last of several.
_LOGIN_PROGRAMS = {
    **dict.fromkeys(("u", "--user", "U", "--proxy-user"), frozenset(("curl", "wget"))),
    **dict.fromkeys(("a", "--auth"), frozenset(("http", "https", "xh", "xhs"))),
}
_DOCUMENTED_PASSWORD = "(?i)(?:pass(?:w(?:or)?d)?|word|pwd?|secret|%[0-9a-f]{2})+\\Z"
_COMMAND_CHARS = 200  # searched backwards from an option for its command
_patterns: dict[str, re.Pattern[str]] = {}


def _matches(pattern: str, text: str) -> bool:
    compiled = _patterns.get(pattern) or _patterns.setdefault(pattern, re.compile(pattern))
    return compiled.match(text) is not None


def is_literal(match: re.Match[str]) -> bool:
    return not _matches(_PLACEHOLDER, match["secret"])


def is_url_password(match: re.Match[str]) -> bool:
    """Except `http://user:pass@host` and `user:pass%40word@host`, which is how documentation writes it."""
    return is_literal(match) and not _matches(_DOCUMENTED_PASSWORD, match["secret"])


def _is_assigned(match: re.Match[str]) -> bool:
    """Whether a value is assigned. With only a blank before it, the name must be an option: `--token abc`."""
    if not match["gap"].isspace():
        return True
    before = match.string[max(0, match.start() - 60) : match.start()]
    *words, word = ["", *before.split(), *([""] if before[-1:].isspace() else [])]
    return (word.startswith("-") and "=" not in word) or (
        words[-1:] == ["set"] and any(part.startswith("config") for part in words)
    )


def is_password(match: re.Match[str]) -> bool:
    """People choose words as passwords, so a long word counts; a short one is more likely a type, a default or
    prose."""
    value = match["secret"]
    if value.isalpha():
        enough = 12 if value.islower() else 16
    else:
        enough = 20 if _matches(_NAME, value) and not value.isdigit() else 6
    return len(value) >= enough and is_literal(match)


def _is_token(match: re.Match[str]) -> bool:
    """Tokens are random: what reads as a name is none."""
    value = match["secret"]
    if len(value) < 8 or value.isdigit() or len(value.split()) > 1:
        return False
    is_hex = len(value) >= 16 and _matches("[0-9a-f]+\\Z|[0-9A-F]+\\Z", value)
    named = _matches(_NAME, value) and not is_hex and not (value.isalpha() and value.islower() and len(value) >= 20)
    return not named and is_literal(match)


def may_be_password(match: re.Match[str]) -> bool:
    """Any word except well-known ones; numbers with colons are ports."""
    value = match["secret"]
    is_well_known = value.lower().rstrip("0123456789") in _WELL_KNOWN
    return len(value) >= 4 and not is_well_known and not _matches(r"[\d.]*:[\d.:]*\Z", value) and is_literal(match)


def is_spoken_password(match: re.Match[str]) -> bool:
    """In a sentence only a text that no word looks like: letters and digits, or a capital inside."""
    value = match["secret"].rstrip(".,;:!?")
    has_digit = any(map(str.isdigit, value))
    mixed = (has_digit and not value.isdigit()) or (value[1:] != value[1:].lower() and value != value.upper())
    return len(value) >= 6 and mixed and not _matches(_NAME_WITH_SEPARATORS, value) and is_literal(match)


def is_assigned_password(match: re.Match[str]) -> bool:
    is_verdict = _name(match) in ("PASS", "Pass") and ":" in match["gap"] and _before(match, 1) != "_"
    return not is_verdict and is_password(match) and _is_assigned(match)


def may_be_assigned_password(match: re.Match[str]) -> bool:
    """Where a value is clearly assigned: `NAME=value`, `--name value`, `A_NAME: value`, a value in quotes."""
    if _names_something_else(match):
        return False
    gap, variable = match["gap"], _name(match).isupper() and _before(match, 1) == "_"
    quoted = match.string[match.start("secret") - 1] in "\"'"
    return (gap == "=" or gap.isspace() or quoted or variable) and may_be_password(match) and _is_assigned(match)


def _names_something_else(match: re.Match[str]) -> bool:
    """`pwd` alone is usually a directory, and `pass` in lower case a count, except for an option `--pass`."""
    if _name(match).lower() == "pwd":
        return not _matches(r"\w", _before(match, 1)) or _before(match, 3).lower() == "old"
    return _name(match) == "pass" and not _matches(r"\s?--?\Z", _before(match, 3).strip("\"'"))


def _name(match: re.Match[str]) -> str:
    return match[0][: match.start("gap") - match.start()]


def _before(match: re.Match[str], most: int) -> str:
    return match.string[max(0, match.start() - most) : match.start()]


def may_be_phrase(match: re.Match[str]) -> bool:
    """Several quoted words assigned to a name that begins with `secret`."""
    is_phrase = len(match["secret"].split()) > 1 and not match["gap"].isspace()
    return is_phrase and match["name"].lower().startswith("secret") and is_literal(match)


def may_be_option(match: re.Match[str]) -> bool:
    """Except small numbers, which are ports, unless the option is sshpass's own."""
    return (not _matches(r"\d{1,5}\Z", match["secret"]) or _is_for_sshpass(match)) and may_be_password(match)


def _is_for_sshpass(match: re.Match[str]) -> bool:
    """Whether the option is sshpass's, not that of the program it starts: only options are between them."""
    program, *words = match[0].split()
    return program == "sshpass" and all(word[0] in "-\\" for word in words[:-1])


def is_assigned_token(match: re.Match[str]) -> bool:
    return _is_token(match) and _is_assigned(match) and _is_key_name(match)


def _is_key_name(match: re.Match[str]) -> bool:
    """A bare `key` may belong to a cache or a table; `stripeKey: "k9Jx..."` counts when its value is random."""
    before = match.string[max(0, match.start() - 16) : match.start()]
    if len(match["name"]) > len("key") or before.lower().rstrip(" _-").endswith(_KEY_WORDS):
        return True
    is_camel_case = match["name"] == "Key" and before[-1:].islower()
    return is_camel_case and len(match["secret"]) >= 16 and is_random(match)


def is_login(match: re.Match[str]) -> bool:
    """Except `docker run -u 100000:100000`, a user and a group, and `rsync -a host:dir`, a path."""
    is_usual = match["option"].strip() in ("-u", "--user") and match["gap"] != "" and len(match["secret"].split()) == 1
    return not match["secret"].isdigit() and is_password(match) and (is_usual or _is_login_program(match))


def may_be_login(match: re.Match[str]) -> bool:
    return not match["secret"].isdigit() and may_be_password(match) and _is_login_program(match)


def _is_login_program(match: re.Match[str]) -> bool:
    """Whether the option belongs to a program that takes a login with it. A separator in quotes ends no command; the
    text before may begin inside quotes, so it is read both with and without them."""
    option = match["option"].strip()
    programs = _LOGIN_PROGRAMS[option if option.startswith("--") else option[-1]]
    before = _before(match, _COMMAND_CHARS).replace("\\\r\n", " ").replace("\\\n", " ")
    if not any(program in before for program in programs):
        return False
    readings = (before, re.sub(r"""'[^']*'|"[^"]*\"""", "''", before)) if "'" in before or '"' in before else (before,)
    return any(not programs.isdisjoint(_words_of_command(reading)) for reading in readings)


def _words_of_command(before: str) -> list[str]:
    for end_of_command in ";|&\n(`":
        before = before.rpartition(end_of_command)[2]
    return re.findall(r"\w+(?!\S)", before)


def is_discord_token(match: re.Match[str]) -> bool:
    """Its first part is the bot's number, in base64."""
    import binascii

    encoded = match["id"].translate({45: "+", 95: "/"})
    try:
        return binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4)).isdigit()
    except ValueError:
        return False


def is_authorization(match: re.Match[str]) -> bool:
    mixed_case = match["secret"].isalpha() and not _matches("[A-Z]?(?:[a-z]+|[A-Z]+)\\Z", match["secret"])
    return _is_token(match) or (len(match["secret"]) >= 8 and mixed_case and is_literal(match))


def is_jwt(match: re.Match[str]) -> bool:
    """Three dotted words are a JWT only when the first decodes to JSON with an algorithm."""
    import binascii
    import json

    encoded = match["header"]
    encoded = encoded[encoded.find("eyJ") :]
    try:
        header = json.loads(binascii.a2b_base64(encoded.translate({45: "+", 95: "/"}) + "=="))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header


# Names, paths, UUIDs, digests, and ids of clouds and builds: a word, a dash and some hex.
_ORDINARY = (
    r"[/.~]|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-|(?:sha\d+|md5)-|[a-z][a-z0-9-]*-(?:[0-9a-f]{8,17}|[0-9a-f]{40})\Z"
)


def is_random(match: re.Match[str]) -> bool:
    """Random: long runs without separators, with few words or with scattered digits."""
    runs = re.findall("[A-Za-z0-9]+", match["secret"])
    text = "".join(runs)
    if len(text) < 8 * len(runs) or text.isalpha() or text.isdigit() or _matches(_ORDINARY, match["secret"]):
        return False
    if _entropy(text) < 3:
        return False
    if text != text.lower() and text != text.upper():
        return _wordiness(text) < 0.6
    return len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d", text)) >= len(text) / 4


def is_aws_secret(match: re.Match[str]) -> bool:
    text = match["secret"]
    all_sorts = any(map(str.isdigit, text)) and text.lower() != text != text.upper()
    return all_sorts and text[0] != "/" and _entropy(text) >= 4.2 and _wordiness(text) < 0.6


def _wordiness(text: str) -> float:
    """How much of the text reads as words in lower or Camel case."""
    return sum(map(len, re.findall("[A-Z]?[a-z]{2,}", text))) / len(text)


def _entropy(text: str) -> float:
    """Shannon entropy in bits per character."""
    from math import log2

    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * log2(share) for share in shares)
