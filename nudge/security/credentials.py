"""Whether a value is a credential. `rules` finds where one may be; these functions decide by its text."""

from __future__ import annotations

import re

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
# Words before `key` that make it a credential, and those that make it none.
_KEY_WORDS = (
    *("access", "account", "api", "app", "auth", "deploy", "encryption", "license", "master", "private", "service"),
    *("shared", "signing", "storage", "subscription", "admin", "secret", "consumer", "webhook"),
)
_HARMLESS_KEY_WORDS = (
    *("public", "pub", "cache", "hash", "sort", "primary", "partition", "foreign", "idempotency", "dedup", "dedupe"),
    *("row", "range", "object", "group", "routing", "route", "translation", "i18n", "lookup", "index", "map", "query"),
    *("react", "host", "ssh", "gpg", "kms", "s3", "storage_cache", "event", "redis", "sharding", "shard"),
    *("join", "candidate", "composite", "unique", "natural", "surrogate", "merge", "restore", "message", "lock"),
    *(
        "recv",
        "websocket",
        "site",
        "blob",
        "file",
        "issue",
        "item",
        "state",
        "etag",
        "checksum",
        "digest",
        "state_store",
        "answer",
    ),
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
_HARMLESS_TOKEN_WORDS = (
    "next",
    "page",
    "starting",
    "continuation",
    "change",
    "client",
    "request",
    "pagination",
    "resume",
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
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z"
_TECHNICAL_WORD = (
    r"(?i)(?:sha|md|utf|base|oauth|http|tls|ssl|aes|rsa|ipv|bcrypt|argon|pbkdf|v|py|mp|x|p|s|k)\d[\w-]{0,8}\Z"
)
# Names of headers and variables that are also ordinary words: their value must be random.
_UNCOMMON_NAMES = frozenset(("auth", "bearer", "pat", "cred", "creds", "honeycomb-team", "app_certificate"))
_CACHE_KEY = r"(?:[A-Za-z0-9.]{1,24}-){1,6}[0-9a-f]{32,64}\Z"  # words and a digest
_APPLE_KEY_ID = r"[A-Z0-9]{10}\Z"
_DOCUMENTED_PASSWORD = "(?i)(?:pass(?:w(?:or)?d)?|word|pwd?|secret|%[0-9a-f]{2})+\\Z"
# What `--password PATH` has in the place of a value.
_METAVARIABLE = r"[A-Z]{2,}(?:[_/@.:-][A-Z]{2,})*\Z"
_ASSIGNMENTS = ("=", ":", "%3", "->", "<-", "\u2192", "<<<", "value")
_COMMAND_CHARS = 200  # searched backwards from an option for its command
_patterns: dict[str, re.Pattern[str]] = {}


def _matches(pattern: str, text: str) -> bool:
    compiled = _patterns.get(pattern) or _patterns.setdefault(pattern, re.compile(pattern))
    return compiled.match(text) is not None


def is_literal(match: re.Match[str]) -> bool:
    value = match["secret"]
    return not _matches(_PLACEHOLDER, value) and (not _matches(_PATH, value) or _looks_random(value))


def is_url_password(match: re.Match[str]) -> bool:
    """Except `http://user:pass@host` and `user:pass%40word@host`, which is how documentation writes it, and the
    default passwords of servers on this machine."""
    value = match["secret"]
    if not is_literal(match) or _matches(_DOCUMENTED_PASSWORD, value):
        return False
    is_default = value.lower() == match["user"].lower() or value.lower().rstrip("0123456789") in _WELL_KNOWN
    return not (is_default and _matches(_LOCAL_HOST, match.string[match.end() : match.end() + 80]))


def is_url_token(match: re.Match[str]) -> bool:
    """A random user name is a token, except 32 hex digits: a public key of Sentry."""
    value = match["secret"]
    return _looks_random(value) and not _matches("[0-9a-f]{32}\\Z", value) and not _matches(_UUID, value)


def _is_assigned(match: re.Match[str]) -> bool:
    """Whether a value is assigned. Behind a comma, a pipe or an element's `>`, and behind a blank unless the name is an
    option (`--token abc`), only what is random is."""
    gap = match["gap"]
    if any(sign in gap for sign in _ASSIGNMENTS):
        return True
    if not gap.isspace():
        return _is_long_and_random(match)
    before = _before(match, 60)
    *words, word = ["", *before.split(), *([""] if before[-1:].isspace() else [])]
    if word.startswith("-") and "=" not in word:
        return not _matches(_METAVARIABLE, match["secret"])
    is_config = words[-1:] == ["set"] and any(part.startswith("config") for part in words)
    is_variable = "_" in word and word.isupper() and _name(match).isupper()
    return is_config or ((is_variable or _is_quoted(match)) and _is_long_and_random(match))


def _is_long_and_random(match: re.Match[str]) -> bool:
    return len(match["secret"]) >= (12 if _is_quoted(match) else 16) and _looks_random(match["secret"])


def _is_quoted(match: re.Match[str]) -> bool:
    return match.string[match.start("secret") - 1] in "\"'`"


def is_password(match: re.Match[str]) -> bool:
    """People choose words as passwords, so a long word counts; a short one is more likely a type, a default or
    prose."""
    value = match["secret"]
    if value.isalpha():
        enough = 12 if value.islower() else 8 if _is_unreadable(value) else 16
    else:
        enough = 20 if _matches(_NAME, value) and not value.isdigit() and not _looks_random(value) else 6
    return len(value) >= enough and not _matches(_TEST_VALUE, value) and is_literal(match)


def _is_token(match: re.Match[str]) -> bool:
    """Tokens are random: what reads as a name is none."""
    value = match["secret"]
    if len(value) < 8 or value.isdigit() or len(value.split()) > 1 or _matches(_TEST_VALUE, value):
        return False
    if _looks_random(value) or (value.isalpha() and value.islower() and len(value) >= 20):
        return is_literal(match)
    return not _matches(_NAME, value) and not _matches(_NAME_WITH_SEPARATORS, value) and is_literal(match)


def may_be_password(match: re.Match[str]) -> bool:
    """Any word except well-known ones; numbers with colons are ports."""
    value = match["secret"]
    is_well_known = value.lower().rstrip("0123456789") in _WELL_KNOWN
    return len(value) >= 4 and not is_well_known and not _matches(r"[\d.]*:[\d.:]*\Z", value) and is_literal(match)


def is_spoken_password(match: re.Match[str]) -> bool:
    """In a sentence only a text that no word looks like: letters and digits, or a capital inside."""
    value = match["secret"].rstrip(".,;:!?")
    has_digit = any(map(str.isdigit, value))
    mixed = not value.isdigit() and (has_digit or _is_unreadable(value))
    is_word = _matches(_NAME_WITH_SEPARATORS, value) or _matches(_TECHNICAL_WORD, value)
    is_default = _matches(_TEST_VALUE, value) or value.lower().rstrip("0123456789") in _WELL_KNOWN
    return len(value) >= 6 and mixed and not is_word and not is_default and is_literal(match)


def is_named_in_passing(match: re.Match[str]) -> bool:
    """`use password hunter22`: without a verb between them the value must have two digits, or be random."""
    is_random = len(match["secret"]) >= 10 and _looks_random(match["secret"])
    return is_spoken_password(match) and (is_random or sum(map(str.isdigit, match["secret"])) > 1)


def is_spoken_token(match: re.Match[str]) -> bool:
    """`my api key is ...`: only what is random, and longer than a version or a date. Before a `key` must be a word that
    says whose: `acme key`, not `the key`; a fingerprint in capitals is public."""
    if not is_random_literal(match) or _is_harmless(match) or _before(match, 24).lower().endswith(_PUBLIC_NAMES):
        return False
    if match["name"].lower() != "key":
        return True
    owner = re.search(r"([A-Za-z0-9]{2,24})[ _-]?\Z", _before(match, 25))
    is_fingerprint = _matches(r"[0-9A-Z]{16}(?:[0-9A-Z]{24})?\Z", match["secret"])
    return owner is not None and owner[1].lower() not in _NO_OWNER and not is_fingerprint


def is_random_literal(match: re.Match[str]) -> bool:
    value = match["secret"].rstrip(".,;:!?")
    return len(value) >= 16 and _looks_random(value) and is_literal(match)


def is_value_of_option(match: re.Match[str]) -> bool:
    """`--value` says nothing by itself: the command before it must name a secret."""
    command = match.string[max(0, match.start() - _COMMAND_CHARS) : match.start("secret")].rpartition("\n")[2].lower()
    return is_random_literal(match) and any(word in command for word in ("key", "token", "secret", "passw", "cred"))


def is_cookie(match: re.Match[str]) -> bool:
    """A header of cookies counts when the value of one is random."""
    values = [pair.partition("=")[2] for pair in match["secret"].split(";")]
    return any(len(value) >= 16 and value[0] not in "$<{" and _looks_random(value) for value in values)


def is_assigned_password(match: re.Match[str]) -> bool:
    is_verdict = _name(match) in ("PASS", "Pass") and ":" in match["gap"] and _before(match, 1) != "_"
    return not is_verdict and not _is_negated(match) and is_password(match) and _is_assigned(match)


def _is_negated(match: re.Match[str]) -> bool:
    return _matches(r"(?s).*(?:\balias\s{1,4}[\w.-]{0,20}|\bno[-_])\Z", _before(match, 30))


def may_be_assigned_password(match: re.Match[str]) -> bool:
    """Where a value is clearly assigned: `NAME=value`, `--name value`, `A_NAME: value`, a value in quotes."""
    if _names_something_else(match):
        return False
    gap, variable = match["gap"], _name(match).isupper() and _before(match, 1) == "_"
    return (
        (gap == "=" or gap.isspace() or _is_quoted(match) or variable)
        and may_be_password(match)
        and _is_assigned(match)
    )


def _names_something_else(match: re.Match[str]) -> bool:
    """`alias pwd=` is a command and `-no-pass` takes no value; `pwd` alone is usually a directory, and `pass` in lower
    case a count, except for an option `--pass`."""
    if _is_negated(match):
        return True
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
    before, name, value = _before(match, 24), match["name"].lower(), match["secret"]
    if before.lower().endswith(_PUBLIC_NAMES):
        return False
    if not _is_name_of_value(match):
        return False
    if name in _UNCOMMON_NAMES:
        return len(value) >= 16 and _looks_random(value)
    words = before.lower().rstrip(" _.-")
    if name != "key":
        # `redis-cli get token:<uuid>` names an entry.
        # So does the last part of `arn:aws:secretsmanager:...:secret:name-1a2b3c`.
        is_entry = match["gap"] == ":" and (_matches(_UUID, value) or before.endswith(":"))
        return not is_entry and (name != "token" or not words.endswith(_HARMLESS_TOKEN_WORDS))
    if before.endswith((" -", " --")):
        return False
    if before.endswith(("?", "&", "&amp;")):
        return len(value) >= 16 and _looks_random(value)
    if words.endswith(_KEY_WORDS):
        return not (words.endswith("api") and _matches(_APPLE_KEY_ID, value))
    if not words[-1:].isalnum() or _is_harmless(match) or len(value) < 16:
        return False
    if words.split()[-1] in _NO_OWNER or _matches(_CACHE_KEY, value):
        return False
    return _looks_random(value)


def _is_name_of_value(match: re.Match[str]) -> bool:
    """Words after the key word may say where it is for (`API_KEY_EU`), but not that the value is something about it;
    `x/token-refresh:1a2b` is an image."""
    words = re.findall(r"[a-z]+", match["more"].lower())
    if match["gap"] == ":" and words:
        return False
    if not _ABOUT.isdisjoint(words):
        return False
    return _STAGES.issuperset(words) or _is_long_and_random(match)


def _is_harmless(match: re.Match[str]) -> bool:
    """Whether the word before names a key that is no secret, or a place in a list: `cacheKey`, `next-token`."""
    name, words = match["name"].lower(), _before(match, 24).lower().rstrip(" _-")
    return (name == "key" and words.endswith(_HARMLESS_KEY_WORDS)) or (
        name in ("key", "token") and words.endswith(_HARMLESS_TOKEN_WORDS)
    )


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
    """Its first part is the bot's number in base64, or all parts mix digits with small and capital letters."""
    import binascii

    encoded = match["id"].translate({45: "+", 95: "/"})
    try:
        return binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4)).isdigit() or _is_mixed(match["secret"])
    except ValueError:
        return _is_mixed(match["secret"])


def _is_mixed(dotted: str) -> bool:
    first, _, last = dotted.split(".")
    return all(_looks_random(part) and re.search(r"\d", part) is not None for part in (first, last))


def is_authorization(match: re.Match[str]) -> bool:
    value = match["secret"]
    is_list = " " in value and _looks_random(value)  # `Credential=..., Signature=...`
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


# Names, paths, UUIDs, digests, and ids of clouds and builds: a word, a dash and some hex.
_ORDINARY = (
    r"[/.~]|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-|(?:sha\d+|md5)-|[a-z][a-z0-9-]*-(?:[0-9a-f]{8,17}|[0-9a-f]{40})\Z"
)


def is_random(match: re.Match[str]) -> bool:
    """Whether the text is random: long runs without separators, with few words or with scattered digits."""
    runs = re.findall("[A-Za-z0-9]+", match["secret"])
    text = "".join(runs)
    if len(text) < 5 * len(runs) or text.isalpha() or text.isdigit() or _matches(_ORDINARY, match["secret"]):
        return False
    if _entropy(text) < 3:
        return False
    if text != text.lower() and text != text.upper():
        return _wordiness(text) < (0.6 if len(text) >= 8 * len(runs) else 0.4)
    changes = len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d", text))
    return len(text) >= 8 * len(runs) and changes >= len(text) / (4 if len(text) < 24 else 5)


def is_aws_secret(match: re.Match[str]) -> bool:
    text = match["secret"]
    all_sorts = any(map(str.isdigit, text)) and text.lower() != text != text.upper()
    return all_sorts and text[0] != "/" and _entropy(text) >= 4.2 and _wordiness(text) < 0.6


def _looks_random(text: str) -> bool:
    """Whether a part of the text is what a generator makes: hex, scattered digits, or capitals that start no word."""
    if _matches(_UUID, text):
        return True
    parts = re.findall("[A-Za-z0-9]+", text)
    longest = max(parts, key=len, default="")
    if len(longest) < 8 and len(text) >= 20 and not all(map(str.isalpha, parts)):
        longest = "".join(parts)
    if longest.isdigit():
        return False
    if len(longest) >= 16 and _matches("[0-9a-f]+\\Z|[0-9A-F]+\\Z", longest):
        return True
    if longest.isalpha():
        return _is_unreadable(longest)
    if longest != longest.lower() and longest != longest.upper():
        return len(longest) >= 8 and _wordiness(longest) < 0.75
    return len(longest) >= 12 and len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d", longest)) >= len(longest) / 5


def _is_unreadable(text: str) -> bool:
    """Whether letters are neither a word nor words in Camel case nor an abbreviation."""
    if len(text) < 8 or text[1:] == text[1:].lower() or text == text.upper():
        return False
    vowels = len(re.findall("[aeiouyAEIOUY]", text)) / len(text)
    return _wordiness(text, 3) < 0.6 and (_wordiness(text) < 0.8 or vowels < 0.25)


def _wordiness(text: str, shortest: int = 2) -> float:
    """Return the share of the text that reads as words in lower or camel case."""
    return sum(map(len, re.findall(f"[A-Z]?[a-z]{{{shortest},}}", text))) / len(text)


def _entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    from math import log2

    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * log2(share) for share in shares)
