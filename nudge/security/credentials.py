"""Whether a value is a credential. `rules` finds where one may be; these functions decide by its text."""

from __future__ import annotations

import re

from nudge.security.formats import PUBLIC_PREFIXES
from nudge.security.names import (
    is_harmless,
    is_key_name,
    is_long_and_random,
    is_negated,
    is_owned,
    is_quoted,
    name_of,
    names_something_else,
    text_before,
)
from nudge.security.randomness import UUID, entropy, is_unreadable, looks_random, matches, wordiness

# Not a secret, but in the place of one: a variable, template, file, mask, regular expression, code or placeholder.
_PLACEHOLDER = r"""(?x)
    \$[\w({] | %\w+%? | \{ | < | \( | `  | @[\w./~-] | !(?:[A-Z]|secret|vault|env) | ENC\[ | \[ | : | \?
  | [*xX.\#•_-]+\Z | [A-Za-z_-]{0,24}(?:\.\.\.|…) | \S{0,64}?(?:\*\*\*|[xX]{5})
  | \S{0,64}?(?:\$\{|\$\(|\$[A-Z][A-Z_]{1,40}\Z)
  | \S{0,64}?(?:\.[*+](?!\w)|\[\^?[\w.]-[\w.]|\[\^|\\[wdsSWDb]|\(\?) | [\w-]{0,64}=/
  | [A-Za-z]:[\\/] | [a-z][a-z0-9+.-]{1,20}:// | id_(?:rsa|ed25519|ecdsa)\Z
  | [A-Za-z_][\w.:]{0,100}?[A-Za-z0-9](?:Key|Token|Secret|Password|Credential|Provider|Manager|Mgr|Type|Error)s?\Z
  | [\w./-]{1,200}\.(?:pem|key|crt|json|ya?ml|txt|env|toml|ini|p12|pfx|pub|gpg|asc)\Z
  | (?:sha\d+|md5|env|vault|file|secretref|arn|ref|pass|fd)[:-]
  | [A-Za-z_][\w.:?!]{0,200}[(\[] | (?:[A-Za-z]+_)+[A-Za-z]+\Z | [a-z]+=[^=]
  | (?i:example|placeholder|dummy|sample|redacted|your|my[-_])
  | (?i:change[-_ ]?(?:me|it|this)|(?:replace|insert)[-_ ]?(?:me|with))
  | (?i:todo|none|null|nil|true|false|undefined)(?:\W|\Z)
"""
# Paths, options and dotted names are not credentials, unless they are random: base64 may start with a slash.
_PATH = r"""(?x)
    (?:\.{0,2}|~)[/\\] | [\w.-]{1,60}(?:/[A-Za-z_.-]{1,60}){1,12}/?\Z | --? [A-Za-z]
  | (?:[A-Za-z_]\w{0,60}[?!]?\.){1,20}[A-Za-z_]\w*[?!;,]?\Z
"""
# Words and small numbers, joined: a name.
_NAME = r"_{0,2}(?:[A-Za-z]+|v?\d{1,12})(?:[-_./:+](?:[A-Za-z]+|v?\d{1,12}))*[.:,!?]?\Z"
_NAME_WITH_SEPARATORS = r"(?:[A-Za-z]+\d{0,2}|v?\d{1,12})(?:[-_./:+](?:[A-Za-z]+\d{0,2}|v?\d{1,12}))+\Z"
# Made only of the words that documentation and tests put in place of a password.
_TEST_VALUE = (
    r"(?i)(?:(?:my|super|top|very|some|the|not|so|strong|test|testing|dev|development|local|ci|secret|password|passwd"
    r"|pass|pw|key|token|jwt|api|fake|dummy|mock|foo|bar|baz|demo|changeit|minio|admin|root|user|default|app|with|at"
    r"|least|characters|long|value|string|for|in|insecure|only|unsafe|example)[-_. ]{0,2}){1,16}\d{0,4}\Z"
    r"|[a-z_-]{0,40}(?:password|passwd|secret)\d{0,2}\Z"
)
# Default passwords, and what forms and schemas have in their place.
_WELL_KNOWN = frozenset(
    (
        *("admin", "changeit", "default", "demo", "elastic", "guest", "minio", "minioadmin", "mysql", "neo", "pass"),
        *("passwd", "password", "postgres", "rabbitmq", "redis", "root", "sa", "secret", "test", "testing", "user"),
        *("android", "any", "bytes", "enter", "field", "hidden", "invalid", "missing", "optional", "prompt"),
        *("required", "string", "text", "mongo", "mongodb", "mariadb", "oracle", "dev", "app", "example", "vagrant"),
    )
)
# Programs that take `user:password`, by their option for it; a letter may be the last of several.
_LOGIN_PROGRAMS = {
    **dict.fromkeys(("u", "--user", "U", "--proxy-user"), frozenset(("curl", "wget"))),
    **dict.fromkeys(("a", "--auth"), frozenset(("http", "https", "xh", "xhs"))),
}
_LOCAL_HOST = r"(?:localhost|127\.[\d.]+|0\.0\.0\.0|\[::1\]|host\.docker\.internal|[A-Za-z][\w-]{0,40})(?![\w.-])"
_TECHNICAL_WORD = (
    r"(?i)(?:sha|md|utf|base|oauth|http|tls|ssl|aes|rsa|ipv|bcrypt|argon|pbkdf|v|py|mp|x|p|s|k)\d[\w-]{0,8}\Z"
)
_DOCUMENTED_PASSWORD = "(?i)(?:pass(?:w(?:or)?d)?|word|pwd?|secret|%[0-9a-f]{2})+\\Z"
# What `--password PATH` has in the place of a value.
_METAVARIABLE = r"[A-Z]{2,}(?:[_/@.:-][A-Z]{2,})*\Z"
_ASSIGNMENTS = ("=", ":", "%3", "->", "<-", "\u2192", "<<<", "value")
_COMMAND_CHARS = 200  # searched backwards from an option for its command


def is_literal(match: re.Match[str]) -> bool:
    value = match["secret"]
    return not matches(_PLACEHOLDER, value) and (not matches(_PATH, value) or looks_random(value))


def is_url_password(match: re.Match[str]) -> bool:
    """Except `http://user:pass@host` and `user:pass%40word@host`, which is how documentation writes it, and the
    default passwords of servers on this machine."""
    value = match["secret"]
    if not is_literal(match) or matches(_DOCUMENTED_PASSWORD, value):
        return False
    is_default = value.lower() == match["user"].lower() or value.lower().rstrip("0123456789") in _WELL_KNOWN
    return not (is_default and matches(_LOCAL_HOST, match.string[match.end() : match.end() + 80]))


def is_url_token(match: re.Match[str]) -> bool:
    """A random user name is a token, except 32 hex digits: a public key of Sentry."""
    value = match["secret"]
    return looks_random(value) and not matches("[0-9a-f]{32}\\Z", value) and not matches(UUID, value)


def _is_assigned(match: re.Match[str]) -> bool:
    """Whether a value is assigned. Behind a comma, a pipe or an element's `>`, and behind a blank unless the name is an
    option (`--token abc`), only what is random is."""
    gap = match["gap"]
    if any(sign in gap for sign in _ASSIGNMENTS):
        return True
    if not gap.isspace():
        return is_long_and_random(match)
    before = text_before(match, 60)
    *words, word = ["", *before.split(), *([""] if before[-1:].isspace() else [])]
    if word.startswith("-") and "=" not in word:
        return not matches(_METAVARIABLE, match["secret"])
    is_config = words[-1:] == ["set"] and any(part.startswith("config") for part in words)
    is_variable = "_" in word and word.isupper() and name_of(match).isupper()
    return is_config or ((is_variable or is_quoted(match)) and is_long_and_random(match))


def is_password(match: re.Match[str]) -> bool:
    """People choose words as passwords, so a long word counts; a short one is more likely a type, a default or
    prose."""
    value = match["secret"]
    if value.isalpha():
        enough = 12 if value.islower() else 8 if is_unreadable(value) else 16
    else:
        enough = 20 if matches(_NAME, value) and not value.isdigit() and not looks_random(value) else 6
    return len(value) >= enough and not matches(_TEST_VALUE, value) and is_literal(match)


def _is_token(match: re.Match[str]) -> bool:
    """Tokens are random: what reads as a name is none."""
    value = match["secret"]
    if len(value) < 8 or value.isdigit() or len(value.split()) > 1 or matches(_TEST_VALUE, value):
        return False
    if looks_random(value) or (value.isalpha() and value.islower() and len(value) >= 20):
        return is_literal(match)
    return not matches(_NAME, value) and not matches(_NAME_WITH_SEPARATORS, value) and is_literal(match)


def may_be_password(match: re.Match[str]) -> bool:
    """Any word except well-known ones; numbers with colons are ports."""
    value = match["secret"]
    is_well_known = value.lower().rstrip("0123456789") in _WELL_KNOWN
    return len(value) >= 4 and not is_well_known and not matches(r"[\d.]*:[\d.:]*\Z", value) and is_literal(match)


def is_spoken_password(match: re.Match[str]) -> bool:
    """In a sentence only a text that no word looks like: letters and digits, or a capital inside."""
    value = match["secret"].rstrip(".,;:!?")
    has_digit = any(map(str.isdigit, value))
    mixed = not value.isdigit() and (has_digit or is_unreadable(value))
    is_word = matches(_NAME_WITH_SEPARATORS, value) or matches(_TECHNICAL_WORD, value)
    is_default = matches(_TEST_VALUE, value) or value.lower().rstrip("0123456789") in _WELL_KNOWN
    return len(value) >= 6 and mixed and not is_word and not is_default and is_literal(match)


def is_named_in_passing(match: re.Match[str]) -> bool:
    """`use password hunter22`: without a verb between them the value must have two digits, or be random."""
    is_random = len(match["secret"]) >= 10 and looks_random(match["secret"])
    return is_spoken_password(match) and (is_random or sum(map(str.isdigit, match["secret"])) > 1)


def is_spoken_token(match: re.Match[str]) -> bool:
    """`my api key is ...`: only what is random, and longer than a version or a date. Before a `key` must be a word that
    says whose: `acme key`, not `the key`; a fingerprint in capitals is public."""
    if not is_random_literal(match) or is_harmless(match):
        return False
    is_fingerprint = matches(r"[0-9A-Z]{16}(?:[0-9A-Z]{24})?\Z", match["secret"])
    return match["name"].lower() != "key" or (is_owned(match) and not is_fingerprint)


def is_random_literal(match: re.Match[str]) -> bool:
    value = match["secret"].rstrip(".,;:!?")
    return len(value) >= 16 and looks_random(value) and is_literal(match)


def is_value_of_option(match: re.Match[str]) -> bool:
    """`--value` says nothing by itself: the command before it must name a secret."""
    command = match.string[max(0, match.start() - _COMMAND_CHARS) : match.start("secret")].rpartition("\n")[2].lower()
    return is_random_literal(match) and any(word in command for word in ("key", "token", "secret", "passw", "cred"))


def is_cookie(match: re.Match[str]) -> bool:
    """A header of cookies counts when the value of one is random."""
    values = [pair.partition("=")[2] for pair in match["secret"].split(";")]
    return any(len(value) >= 16 and value[0] not in "$<{" and looks_random(value) for value in values)


def is_assigned_password(match: re.Match[str]) -> bool:
    is_verdict = name_of(match) in ("PASS", "Pass") and ":" in match["gap"] and text_before(match, 1) != "_"
    return not is_verdict and not is_negated(match) and is_password(match) and _is_assigned(match)


def may_be_assigned_password(match: re.Match[str]) -> bool:
    """Where a value is clearly assigned: `NAME=value`, `--name value`, `A_NAME: value`, a value in quotes."""
    if names_something_else(match):
        return False
    gap, variable = match["gap"], name_of(match).isupper() and text_before(match, 1) == "_"
    return (
        (gap == "=" or gap.isspace() or is_quoted(match) or variable) and may_be_password(match) and _is_assigned(match)
    )


def may_be_phrase(match: re.Match[str]) -> bool:
    """Several quoted words assigned to a name that begins with `secret`."""
    is_phrase = len(match["secret"].split()) > 1 and not match["gap"].isspace()
    return is_phrase and match["name"].lower().startswith("secret") and is_literal(match)


def may_be_option(match: re.Match[str]) -> bool:
    """Except small numbers, which are ports, unless the option is sshpass's own."""
    return (not matches(r"\d{1,5}\Z", match["secret"]) or _is_for_sshpass(match)) and may_be_password(match)


def _is_for_sshpass(match: re.Match[str]) -> bool:
    """Whether the option is sshpass's, not that of the program it starts: only options are between them."""
    program, *words = match[0].split()
    return program == "sshpass" and all(word[0] in "-\\" for word in words[:-1])


def is_assigned_token(match: re.Match[str]) -> bool:
    return _is_token(match) and _is_assigned(match) and is_key_name(match)


def is_login(match: re.Match[str]) -> bool:
    """Except `docker run -u 100000:100000`, a user and a group, and `rsync -a host:dir`, a path."""
    is_usual = match["option"].strip() in ("-u", "--user") and match["gap"] != "" and len(match["secret"].split()) == 1
    return not match["secret"].isdigit() and is_password(match) and (is_usual or _is_login_program(match))


def may_be_login(match: re.Match[str]) -> bool:
    return not match["secret"].isdigit() and may_be_password(match) and _is_login_program(match)


def is_login_token(match: re.Match[str]) -> bool:
    """A token in the place of the user, before an empty or a meaningless password."""
    return is_random_literal(match) and _is_login_program(match)


def _is_login_program(match: re.Match[str]) -> bool:
    """Whether the option belongs to a program that takes a login with it. A separator in quotes ends no command; the
    text before may begin inside quotes, so it is read both with and without them."""
    option = match["option"].strip()
    programs = _LOGIN_PROGRAMS[option if option.startswith("--") else option[-1]]
    before = text_before(match, _COMMAND_CHARS).replace("\\\r\n", " ").replace("\\\n", " ")
    if not any(program in before for program in programs):
        return False
    readings = (before, re.sub(r"""'[^']*'|"[^"]*\"""", "''", before)) if "'" in before or '"' in before else (before,)
    return any(not programs.isdisjoint(_words_of_command(reading)) for reading in readings)


def _words_of_command(before: str) -> list[str]:
    for end_of_command in ";|&\n(`":
        before = before.rpartition(end_of_command)[2]
    return re.findall(r"\w+(?!\S)", before)


def is_discord_token(match: re.Match[str]) -> bool:
    """Its first part is the bot's number in base64, or all parts mix digits with small and capital letters."""
    import binascii

    encoded = match["id"].translate({45: "+", 95: "/"})
    try:
        return binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4)).isdigit() or _is_mixed(match["secret"])
    except ValueError:
        return _is_mixed(match["secret"])


def _is_mixed(dotted: str) -> bool:
    first, _, last = dotted.split(".")
    return all(looks_random(part) and re.search(r"\d", part) is not None for part in (first, last))


def is_authorization(match: re.Match[str]) -> bool:
    value = match["secret"]
    is_list = " " in value and looks_random(value)  # `Credential=..., Signature=...`
    return _is_token(match) or (is_list and is_literal(match))


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


# Names, paths, UUIDs, digests, ids of clouds and builds (a word, a dash and some hex), ULIDs, addresses of content and
# accounts on public chains, and names as compilers mangle them.
_ORDINARY = (
    r"[/.~]|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-|(?:sha\d+|md5)-|[a-z][a-z0-9-]*-(?:[0-9a-f]{8,17}|[0-9a-f]{40})\Z"
    r"|0[0-7][0-9A-HJKMNP-TV-Z]{24}\Z|Qm[1-9A-HJ-NP-Za-km-z]{44}\Z|0x[0-9a-fA-F]{40}\Z|_ZN?\d"
)
_HEX_GROUPS = r"(?=(?:-?[0-9a-f]){32})[0-9a-f]{4,}(?:-[0-9a-f]{4,}){2,}\Z"  # a key like a UUID, with other groups


def is_random(match: re.Match[str]) -> bool:
    """Whether the text is random: long runs without separators, with few words or with scattered digits."""
    secret = match["secret"]
    runs = re.findall("[A-Za-z0-9]+", secret)
    text = "".join(runs)
    if len(text) < 5 * len(runs) or text.isalpha() or text.isdigit() or matches(_ORDINARY, secret):
        return False
    if (len(runs) == 2 and secret.startswith(runs[0]) and runs[0] in PUBLIC_PREFIXES) or entropy(text) < 3:
        return False
    if text != text.lower() and text != text.upper():
        return wordiness(text) < (0.6 if len(text) >= 8 * len(runs) else 0.4)
    if matches(_HEX_GROUPS, secret):
        return True
    changes = len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d", text))
    return len(text) >= 8 * len(runs) and changes >= len(text) / (4 if len(text) < 24 else 5)


def is_aws_secret(match: re.Match[str]) -> bool:
    text = match["secret"]
    all_sorts = any(map(str.isdigit, text)) and text.lower() != text != text.upper()
    return all_sorts and text[0] != "/" and entropy(text) >= 4.2 and wordiness(text) < 0.6
