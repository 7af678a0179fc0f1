"""Whether what stands in a credential's place is one. The rules of `secrets` find the place, this judges the value."""

from __future__ import annotations

import re

# Where a secret would be, but is not: a variable, a template, a file, a mask, code, a structure, or a word that stands
# for one.
_STANDS_FOR_IT = r"""(?x)
    \$[\w({] | %\w+%? | \{ | < | \( | `  | @[\w./~-] | !(?:[A-Z]|secret|vault|env) | ENC\[ | \[ | :
  | [*xX.\#•_-]+\Z
  | (?:\.{0,2}|~)[/\\] | [\w.-]{1,60}(?:/[A-Za-z_.-]{1,60}){1,12}/?\Z | [A-Za-z]:[\\/] | [a-z][a-z0-9+.-]{1,20}:// | --? [a-z]
  | [\w./-]{1,200}\.(?:pem|key|crt|json|ya?ml|txt|env|toml|ini|p12|pfx|pub|gpg|asc)\Z | id_(?:rsa|ed25519|ecdsa)\Z
  | (?:sha\d+|md5|env|vault|file|secretref|arn|ref)[:-]
  | [A-Za-z_][\w.]{0,200}[(\[] | (?:[A-Za-z_]+\d{0,5}\.){1,20}[A-Za-z_]\w*\Z | (?:[A-Za-z]+_)+[A-Za-z]+\Z | [a-z]+=[^=]
  | (?i:example|placeholder|dummy|sample|redacted|your|my[-_]|change[-_ ]?(?:me|it|this)|(?:replace|insert)[-_ ]?(?:me|with))
  | (?i:todo|none|null|nil|true|false|undefined)(?:\W|\Z)
"""
# Words and small numbers, joined: the name of a thing, not its secret.
_NAME = r"_{0,2}(?:[A-Za-z]+|v?\d{1,12})(?:[-_./:+](?:[A-Za-z]+|v?\d{1,12}))*[.:,!?]?\Z"
_NAME_WITH_SEPARATORS = r"(?:[A-Za-z]+|v?\d{1,12})(?:[-_./:+](?:[A-Za-z]+|v?\d{1,12}))+\Z"
# What makes a `key` one that opens something; a cache key or a public one opens nothing.
_OPENS = (
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
# Passwords that everybody knows, and what a form or a schema says in their place.
_KNOWN_TO_ALL = frozenset(
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
# Programs that log in with `user:password`, by the option that they take it with; a letter may be the last of several.
_LOGS_IN = {
    **dict.fromkeys(("u", "--user", "U", "--proxy-user"), frozenset(("curl", "wget"))),
    **dict.fromkeys(("a", "--auth"), frozenset(("http", "https", "xh", "xhs"))),
}
_FAR_ENOUGH = 200  # characters back from an option to the command that it belongs to
_patterns: dict[str, re.Pattern[str]] = {}


def _matches(pattern: str, text: str) -> bool:
    compiled = _patterns.get(pattern) or _patterns.setdefault(pattern, re.compile(pattern))
    return compiled.match(text) is not None


def is_literal(found: re.Match[str]) -> bool:
    return not _matches(_STANDS_FOR_IT, found["secret"])


def is_url_password(found: re.Match[str]) -> bool:
    """`http://user:pass@host` is how documentation writes it."""
    return is_literal(found) and found["secret"].lower() not in ("pass", "passwd", "password", "pw", "pwd", "secret")


def _is_assigned(found: re.Match[str]) -> bool:
    """A name and a blank before the value mean something only behind dashes: `--token abc`, not "the token abc"."""
    if not found["gap"].isspace():
        return True
    before = found.string[max(0, found.start() - 60) : found.start()]
    *words, word = ["", *before.split(), *([""] if before[-1:].isspace() else [])]
    return (word.startswith("-") and "=" not in word) or (
        words[-1:] == ["set"] and any(part.startswith("config") for part in words)
    )


def is_password(found: re.Match[str]) -> bool:
    """People choose words as passwords, so a long enough word counts; a short one is more likely a type, a default or
    prose."""
    value = found["secret"]
    if value.isalpha():
        enough = 12 if value.islower() else 16
    else:
        enough = 20 if _matches(_NAME, value) and not value.isdigit() else 6
    return len(value) >= enough and is_literal(found)


def _is_token(found: re.Match[str]) -> bool:
    """Machines make tokens and keys: what reads as the name of a thing is one."""
    value = found["secret"]
    if len(value) < 8 or value.isdigit() or len(value.split()) > 1:
        return False
    is_hex = len(value) >= 16 and _matches("[0-9a-f]+\\Z|[0-9A-F]+\\Z", value)
    named = _matches(_NAME, value) and not is_hex and not (value.isalpha() and value.islower() and len(value) >= 20)
    return not named and is_literal(found)


def may_be_password(found: re.Match[str]) -> bool:
    """Any word but those that everybody knows; what is made of numbers and colons is a port."""
    value = found["secret"]
    known = value.lower().rstrip("0123456789") in _KNOWN_TO_ALL
    return len(value) >= 4 and not known and not _matches(r"[\d.]*:[\d.:]*\Z", value) and is_literal(found)


def is_spoken_password(found: re.Match[str]) -> bool:
    """In a sentence only what no word looks like counts: letters and digits, or a capital inside."""
    value = found["secret"].rstrip(".,;:!?")
    has_digit = any(map(str.isdigit, value))
    mixed = (has_digit and not value.isdigit()) or (value[1:] != value[1:].lower() and value != value.upper())
    return len(value) >= 6 and mixed and not _matches(_NAME_WITH_SEPARATORS, value) and is_literal(found)


def is_assigned_password(found: re.Match[str]) -> bool:
    is_verdict = _name(found) in ("PASS", "Pass") and ":" in found["gap"] and _before(found, 1) != "_"
    return not is_verdict and is_password(found) and _is_assigned(found)


def may_be_assigned_password(found: re.Match[str]) -> bool:
    """Where it is clear that a value is assigned: `NAME=value`, `--name value`, `A_NAME: value`, a value in quotes."""
    if _names_something_else(found):
        return False
    gap, variable = found["gap"], _name(found).isupper() and _before(found, 1) == "_"
    quoted = found.string[found.start("secret") - 1] in "\"'"
    return (gap == "=" or gap.isspace() or quoted or variable) and may_be_password(found) and _is_assigned(found)


def _names_something_else(found: re.Match[str]) -> bool:
    """`pwd` alone is more often a directory, and a `pass` in small letters one of several, but for an option
    `--pass`."""
    if _name(found).lower() == "pwd":
        return not _matches(r"\w", _before(found, 1)) or _before(found, 3).lower() == "old"
    return _name(found) == "pass" and not _matches(r"\s?--?\Z", _before(found, 3).strip("\"'"))


def _name(found: re.Match[str]) -> str:
    return found[0][: found.start("gap") - found.start()]


def _before(found: re.Match[str], most: int) -> str:
    return found.string[max(0, found.start() - most) : found.start()]


def may_be_phrase(found: re.Match[str]) -> bool:
    """Several words in quotes: of a secret, since nobody describes one by assigning to it."""
    is_phrase = len(found["secret"].split()) > 1 and not found["gap"].isspace()
    return is_phrase and found["name"].lower().startswith("secret") and is_literal(found)


def may_be_option(found: re.Match[str]) -> bool:
    """A small number is a port, of the program that gets the option in the end."""
    return (not _matches(r"\d{1,5}\Z", found["secret"]) or _is_for_sshpass(found)) and may_be_password(found)


def _is_for_sshpass(found: re.Match[str]) -> bool:
    """Not for the program that it starts: no word but options stands between."""
    program, *words = found[0].split()
    return program == "sshpass" and all(word[0] in "-\\" for word in words[:-1])


def is_assigned_token(found: re.Match[str]) -> bool:
    return _is_token(found) and _is_assigned(found) and _opens_something(found)


def _opens_something(found: re.Match[str]) -> bool:
    """A bare `key` may be one of a cache or a table; `stripeKey: "k9Jx..."` opens something when its value is random."""
    before = found.string[max(0, found.start() - 16) : found.start()]
    if len(found["name"]) > len("key") or before.lower().rstrip(" _-").endswith(_OPENS):
        return True
    is_camel_case = found["name"] == "Key" and before[-1:].islower()
    return is_camel_case and len(found["secret"]) >= 16 and is_random(found)


def is_login(found: re.Match[str]) -> bool:
    """`docker run -u 100000:100000` names a user and a group, `rsync -a host:dir` a place."""
    is_usual = found["option"].strip() in ("-u", "--user") and found["gap"] != "" and len(found["secret"].split()) == 1
    return not found["secret"].isdigit() and is_password(found) and (is_usual or _logs_in(found))


def may_be_login(found: re.Match[str]) -> bool:
    return not found["secret"].isdigit() and may_be_password(found) and _logs_in(found)


def _logs_in(found: re.Match[str]) -> bool:
    """Whether the option belongs to a program that takes a login with it. What is in quotes ends no command; where the
    text before
    begins within a quotation, quotes say nothing, so both readings count."""
    option = found["option"].strip()
    programs = _LOGS_IN[option if option.startswith("--") else option[-1]]
    before = _before(found, _FAR_ENOUGH).replace("\\\r\n", " ").replace("\\\n", " ")
    if not any(program in before for program in programs):
        return False
    readings = (before, re.sub(r"""'[^']*'|"[^"]*\"""", "''", before)) if "'" in before or '"' in before else (before,)
    return any(not programs.isdisjoint(_words_of_command(reading)) for reading in readings)


def _words_of_command(before: str) -> list[str]:
    for end_of_command in ";|&\n(`":
        before = before.rpartition(end_of_command)[2]
    return re.findall(r"\w+(?!\S)", before)


def is_discord_token(found: re.Match[str]) -> bool:
    """It begins with the number of its bot."""
    import binascii

    encoded = found["id"].translate({45: "+", 95: "/"})
    try:
        return binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4)).isdigit()
    except ValueError:
        return False


def is_authorization(found: re.Match[str]) -> bool:
    mixed_case = found["secret"].isalpha() and not _matches("[A-Z]?(?:[a-z]+|[A-Z]+)\\Z", found["secret"])
    return _is_token(found) or (len(found["secret"]) >= 8 and mixed_case and is_literal(found))


def is_jwt(found: re.Match[str]) -> bool:
    """Three dotted words are a JWT only when the first is JSON that names an algorithm."""
    import binascii
    import json

    encoded = found["header"]
    encoded = encoded[encoded.find("eyJ") :]
    try:
        header = json.loads(binascii.a2b_base64(encoded.translate({45: "+", 95: "/"}) + "=="))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header


# Names, paths, UUIDs, digests, and the ids clouds and builds make: a word, a dash and some hex.
_ORDINARY = (
    r"[/.~]|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-|(?:sha\d+|md5)-|[a-z][a-z0-9-]*-(?:[0-9a-f]{8,17}|[0-9a-f]{40})\Z"
)


def is_random(found: re.Match[str]) -> bool:
    """Made by a machine: long runs without separators, in which words are rare or digits are scattered."""
    runs = re.findall("[A-Za-z0-9]+", found["secret"])
    text = "".join(runs)
    if len(text) < 8 * len(runs) or text.isalpha() or text.isdigit() or _matches(_ORDINARY, found["secret"]):
        return False
    if _entropy(text) < 3:
        return False
    if text != text.lower() and text != text.upper():
        return _wordiness(text) < 0.6
    return len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d", text)) >= len(text) / 4


def is_aws_secret(found: re.Match[str]) -> bool:
    text = found["secret"]
    all_sorts = any(map(str.isdigit, text)) and text.lower() != text != text.upper()
    return all_sorts and text[0] != "/" and _entropy(text) >= 4.2 and _wordiness(text) < 0.6


def _wordiness(text: str) -> float:
    """How much of the text reads as words in lower or Camel case."""
    return sum(map(len, re.findall("[A-Z]?[a-z]{2,}", text))) / len(text)


def _entropy(text: str) -> float:
    """Shannon's, in bits per character."""
    from math import log2

    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * log2(share) for share in shares)
