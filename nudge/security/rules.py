"""The rules that find passwords and keys by the text around them; `formats` has what vendors' tokens look like.

A rule has two thresholds: refusing `DB_PASSWORD=letmein` would lose a useful hint, redacting it removes one word of a
record. Every pattern is linear: it starts at a literal or a boundary, and every repetition that can fail late is
bounded. Samples of each rule are in `tests/unit/security/rule_samples.py`.
"""

from __future__ import annotations

import re

from nudge.security import credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LONGEST_VALUE = 64  # characters of an unquoted value that are judged


class Rule:
    """A pattern whose group `secret`, or the whole match, is a credential when `is_secret` says so. When only
    `may_be_secret` does, it is redacted but not refused.

    `clues` are lower-case texts of which one must occur: searching for them is a hundred times cheaper than the
    pattern. A `whole` rule applies only to a text that is nothing but the credential.
    """

    __slots__ = (
        "_compiled",
        "clues",
        "is_secret",
        "kind",
        "may_be_secret",
        "pattern",
        "whole",
    )

    def __init__(
        self,
        kind: str,
        pattern: str,
        *,
        clues: tuple[str, ...] = ("",),
        is_secret: Callable[[re.Match[str]], bool] | None = None,
        may_be_secret: Callable[[re.Match[str]], bool] | None = None,
        whole: bool = False,
    ) -> None:
        self.kind, self.pattern, self.clues, self.whole = kind, pattern, clues, whole
        self.is_secret, self.may_be_secret = is_secret, may_be_secret
        self._compiled: re.Pattern[str] | None = None

    def spans(self, text: str, lowered: str, *, for_redaction: bool = False) -> Iterator[tuple[int, int]]:
        """Yield start and end of each credential."""
        if not any(clue in lowered for clue in self.clues):
            return
        at = 0
        while match := self._search(text, at):
            start, end = match.span("secret" if match.re.groups else 0)
            if self._accepts(match, for_redaction=for_redaction):
                at = _end_of_run(text, end) if end - start == _LONGEST_VALUE else end
                yield start, at
            else:
                at = max(start, match.start() + 1)  # a rejected value may contain an assignment itself

    def _accepts(self, match: re.Match[str], *, for_redaction: bool) -> bool:
        if self.is_secret is None or self.is_secret(match):
            return True
        return for_redaction and self.may_be_secret is not None and self.may_be_secret(match)

    def _search(self, text: str, at: int) -> re.Match[str] | None:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern)
        if self.whole:
            return self._compiled.fullmatch(text) if at == 0 else None
        return self._compiled.search(text, at)


def _end_of_run(text: str, at: int) -> int:
    """Return the end of a value that is longer than what its pattern matches."""
    while at < len(text) and not text[at].isspace() and text[at] not in "\"'`":
        at += 1
    return at


# Before `pass` must be something that has a password: `compass` and `bypass` do not count.
_OPENED = "(?:db|sql|mysql|pg|root|user|admin|smtp|mail|ftp|proxy|ldap|redis|(?:src|dest)?(?:store|key))"
_STAGE = r"(?:[_-](?:private|secret|prod|production|live|test|dev|staging|v?\d{1,2})){0,2}"
_PASSWORD = rf"(?:(?:passw(?:or)?[dt]|passphrase|(?<![a-z]){_OPENED}?(?:pass|pw)){_STAGE}|(?<!\$)pwd|rediscli_auth)"
_KEY = (
    r"(?P<name>token|secret(?:[_-]?access)?(?:[_-]?key)?(?:[_-]?base)?|credential|creds?|key|(?<=[_-])pat|bearer"
    r"|(?<![a-z])auth|honeycomb-team|app_certificate)(?:(?<=key)s|(?<=token)s)?(?P<more>(?:[_-][A-Za-z0-9]{1,16}){0,3})"
)
# Between a name and its value: `TOKEN=`, `"token": `, `token: &str = `, `["TOKEN"] ||= `, `token (staging) = `;
# `"token", "value": `; `token: |` and a new line; a blank. In `setHeader("Token", `, `<token>`, `| token | ` and
# `token("` the separator is weak: `credentials` asks more of the value.
_CLOSED = r"""["'`\\\])}*]{0,5}(?:%22|&quot;)?"""
_TYPE = (
    r"(?:(?:[ \t]?:[ \t]?|(?<=\w)[ \t])&?(?:'static )?[A-Za-z][\w.<>\[\]?]{0,24}(?=[ \t]{0,3}=)"
    r"|[ \t]\([\w ,-]{1,24}\))"
)
_OPERATOR = r"""(?:=>|:{1,3}=|[?+.]=|={1,3}|\|{1,2}=?|\?\?=?|<-|->|\u2192|<<<|%3[ad]|[:,>]|\((?=["'`]))"""
_GAP = (
    rf"""(?P<gap>{_CLOSED}(?:,?\s{{0,40}}["'\\]{{0,4}}value["'\\]{{0,4}}[ \t]{{0,3}}[:=][ \t]{{0,3}}"""
    rf"""|{_TYPE}?[ \t]{{0,24}}{_OPERATOR}[ \t]{{0,24}}(?:[|>][+-]?[ \t]{{0,3}}\n[ \t]{{1,24}}|(?<=>)\s{{1,24}}"""
    rf"""|[\[(](?=["'`])|(?:%22|&quot;))?)|(?:[ \t]|\\\r?\n){{1,24}})"""
)
_VALUE = (
    rf"""\\{{0,4}}["'`]?(?P<secret>(?<=")[^"\n]+(?=")|(?<=')[^'\n]+(?=')|[^\s"'`,;&|<>)\]}}]{{1,{_LONGEST_VALUE}}})"""
)
_BLANK = r"(?:[ \t]|\\\r?\n)"  # a command may continue on the next line
_BLANKS = _BLANK + "{1,24}+"
_WORD = r"""(?:"[^"\n]{0,100}+"(?=\s)|'[^'\n]{0,100}+'(?=\s)|(?:[^\s;|&\\]|\\(?!\r?\n)){1,100}+)"""
# The words of a command before its option; possessive, so that no word is tried twice.
_WORDS = rf"(?:{_BLANKS}(?!%s){_WORD}){{0,12}}+{_BLANKS}"
_OPTIONS = rf"(?:{_BLANKS}-[^\s;|&]{{1,60}}+(?:{_BLANKS}(?!login)[^\s;|&-][^\s;|&]{{0,60}}+)?){{0,3}}"

RULES: tuple[Rule, ...] = (
    Rule(
        "private-key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        clues=("private key",),
    ),
    Rule(
        "aws-secret-key",
        r"""(?i)secret_?access_?key["'\s:=]{1,6}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""",
        clues=("secret",),
    ),
    Rule(
        "aws-secret-key",
        r"""\s*["']?(?P<secret>[A-Za-z0-9/+]{40})["']?\s*""",
        is_secret=credentials.is_aws_secret,
        whole=True,
    ),
    Rule(
        "vault-token",
        r"(?<![\w.-])s\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![\w.(-])",
        clues=("vault",),
    ),
    Rule(
        "discord-token",
        r"(?<![\w.-])(?P<secret>(?P<id>[MNO][A-Za-z0-9_-]{22,27})\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40})(?![\w.-])",
        clues=(".",),
        is_secret=credentials.is_discord_token,
    ),
    Rule(
        "jwt",
        r"(?<![A-Za-z0-9_-])(?P<secret>(?P<header>[A-Za-z0-9_-]{12,}+)(?:\.[A-Za-z0-9_-]*+){2,4})",
        clues=("eyj",),
        is_secret=credentials.is_jwt,
    ),
    Rule(
        "url-credentials",
        r"""://(?P<user>[^\s:/?#@"'<>`[]{0,128}):(?P<secret>[^\s/"'<>`]{1,256})@""",
        clues=("://",),
        is_secret=credentials.is_url_password,
    ),
    Rule(
        "url-credentials",
        r"""://(?P<secret>[\w.~%+-]{16,256})(?::[\w-]{0,20})?@""",
        clues=("://",),
        is_secret=credentials.is_url_token,
    ),
    Rule(
        "authorization-header",
        r"""(?i)(?:(?<![a-z])authorization["'\\]{0,3}\s{0,3}(?:[:=]\s{0,3}["'\\]{0,3}|,\s{0,3}["'](?=\w))"""
        r"""(?:[a-z][\w.-]{1,30}[ \t]{1,3}(?=\S))?|\bbearer[ \t]{1,3})"""
        rf"""(?P<secret>(?:[^\s"'`,;\\]|,[ \t]?(?=[A-Za-z_]{{2,30}}=)){{1,{_LONGEST_VALUE}}})""",
        clues=("authorization", "bearer"),
        is_secret=credentials.is_authorization,
    ),
    Rule(
        "cookie",
        r"""(?i)(?<!\w)(?:set-)?cookie["'\\]{0,3}:[ \t]{0,3}["'\\]{0,3}"""
        r"""(?P<secret>[^\s"'`;=]{1,64}=[^"'`\n]{8,4096})""",
        clues=("cookie",),
        is_secret=credentials.is_cookie,
    ),
    Rule(
        "cookie",
        rf"""(?<![\w-])curl{_WORDS % "(?:-b|--cookie)"}(?:-b|--cookie)[ =]?["']?"""
        r"""(?P<secret>[^\s"'`;=]{1,64}=[^"'`\s]{8,4096})""",
        clues=("curl",),
        is_secret=credentials.is_cookie,
    ),
    Rule(
        "password",
        rf"(?i){_PASSWORD}{_GAP}{_VALUE}",
        clues=("pass", "pw", "rediscli_auth"),
        is_secret=credentials.is_assigned_password,
        may_be_secret=credentials.may_be_assigned_password,
    ),
    Rule(
        "key",
        rf"(?i){_KEY}{_GAP}{_VALUE}",
        clues=("token", "secret", "key", "cred", "_pat=", "_pat:", "auth:", "auth=", "honeycomb", "app_certificate"),
        is_secret=credentials.is_assigned_token,
        may_be_secret=credentials.may_be_phrase,
    ),
    Rule(
        "login",
        rf"""(?P<option>\s-[A-Za-z]{{0,8}}?[uUa]|--(?:(?:proxy-)?user|auth))(?P<gap>=|{_BLANK}{{0,24}}+)"""
        rf"""(?P<quote>["'])?(?!\[)[^\s:"'$]{{1,64}}:(?P<secret>(?(quote)(?!\s)(?:(?!(?P=quote))[^\n])+|[^\s"'`]{{1,{_LONGEST_VALUE}}}))""",
        clues=(" -u", "\t-u", "\n-u", "--user", " -a", "\t-a", "\n-a", "--auth", "curl", "wget"),
        is_secret=credentials.is_login,
        may_be_secret=credentials.may_be_login,
    ),
    Rule(
        "login",
        rf"""(?P<option>\s-[A-Za-z]{{0,8}}?u|--user)(?:=|{_BLANK}{{0,24}}+)["']?(?P<secret>[\w.~+/=-]{{20,256}}):""",
        clues=("curl", "wget"),
        is_secret=credentials.is_login_token,
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:mysql\w{{0,12}}|mariadb(?:-\w{{1,12}})?|7za?){_WORDS % '-p'}-p{_VALUE}",
        clues=("mysql", "mariadb", "7z"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
    ),
    Rule(
        "password",
        r"(?<![\w-])(?:sshpass|mongo\w{0,12}|cqlsh"
        rf"|(?:docker|podman|nerdctl|buildah|skopeo|oras|helm registry|oc|az|az"
        rf" acr|cf){_OPTIONS}{_BLANKS}login|twine{_BLANKS}upload)"
        rf"{_WORDS % '-p'}-p{_BLANK}{{0,24}}+{_VALUE}",
        clues=("sshpass", "mongo", "cqlsh", "login", "twine"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
    ),
    Rule(
        "password",
        rf"(?<![\w-])redis-cli{_WORDS % '-a'}-a{_BLANKS}{_VALUE}",
        clues=("redis-cli",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:(?P<ldap>ldap\w{{1,12}})|unzip|zip|sqlcmd|bcp|mosquitto_(?:pub|sub))"
        rf"{_WORDS % '(?(ldap)-w|-P)'}(?(ldap)-w|-P)"
        rf"{_BLANK}{{0,24}}+{_VALUE}",
        clues=("ldap", "zip", "sqlcmd", "bcp", "mosquitto_"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:mysqladmin{_WORDS % 'password'}password{_BLANKS}|-pass(?:in|out)?{_BLANKS}[\"']?pass:){_VALUE}",
        clues=("mysqladmin", "pass:"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:echo|printf)(?:{_BLANKS}-[a-z]{{1,3}}|{_BLANKS}[\"']?%s[^\s|]{{0,8}})?{_BLANKS}[\"']?"
        r"(?P<user>[\w.-]{1,32}:)?(?P<secret>[^\s\"'|$:]{4,64})[\"']?[ \t]{0,3}\|[ \t]{0,3}"
        r"(?:sudo[ \t]{1,3})?(?(user)(?:/usr)?(?:/sbin/)?chpasswd|sudo[ \t]{1,3}-S)",
        clues=("chpasswd", "sudo -s"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:(?P<net>net){_BLANKS}user{_BLANKS}[\w.@-]{{1,64}}{_BLANKS}|(?:smb\w{{1,12}}|rpcclient|mount\.cifs)"
        rf"{_WORDS % '-U'}-U{_BLANK}{{0,3}}[\"']?[^\s%\"']{{1,64}}%){_VALUE}",
        clues=("net user", "smb", "rpcclient", "mount.cifs"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        rf"(?<![\w-])gh{_BLANKS}secret{_BLANKS}set{_WORDS % '(?:-b|--body)'}(?:--body|-b)(?:=|{_BLANKS}){_VALUE}",
        clues=("gh secret",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        rf"(?i)convertto-securestring{_BLANKS}(?:-string{_BLANKS})?{_VALUE}",
        clues=("convertto-securestring",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:security{_BLANKS}[a-z-]{{4,40}}{_WORDS % '-[pw]'}-[pw]"
        rf"|lftp{_WORDS % '-u'}-u{_BLANKS}[^\s,]{{1,64}},"
        rf"|ipmitool{_WORDS % '-P'}-P|(?:xfreerdp|signtool){_WORDS % '/p'}/p:?){_BLANK}{{0,3}}{_VALUE}",
        clues=("keychain", "generic-password", "internet-password", "lftp", "ipmitool", "xfreerdp", "signtool"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
    ),
    Rule(
        "password",
        r"(?i)\bmachine\s{1,4}[^\s]{1,200}\s{1,8}login\s{1,4}[^\s]{1,200}\s{1,8}password\s{1,4}(?P<secret>[^\s\"']{1,200})",
        clues=("password",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        r"(?i)<(?P<tag>\w{0,24}(?:password|passphrase|passwd|secret|api_?key|token))>\s{0,8}(?P<secret>[^<>\s]{6,256})\s{0,8}</",
        clues=("password>", "passphrase>", "passwd>", "secret>", "key>", "token>"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        r"(?i)(?:key|name)=[\"'][\w.:-]{0,40}?(?:password|passwd|secret|api_?key|token)[\"']\s{1,4}value=[\"'](?P<secret>[^\"'\n]{6,256})",
        clues=("passw", "secret", "key", "token"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        r"""(?i)\bdefine\(\s{0,4}["']\w{0,40}(?:password|secret|key|salt|token)["']\s{0,4},\s{0,4}"""
        r"""["'](?P<secret>[^"'\n]{6,256})""",
        clues=("define(",),
        is_secret=credentials.is_password,
    ),
    Rule(
        "password",
        rf"""(?i)\b(?:identified\s{{1,3}}(?:with\s{{1,3}}\S{{1,40}}\s{{1,3}})?by|(?:with|encrypted) password)"""
        rf"""\s{{1,3}}(?=\\{{0,2}}["']){_VALUE}""",
        clues=("identified", "with password", "encrypted password"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        rf"(?<![\w-])htpasswd{_BLANKS}(?:-(?=[A-Za-z]{{0,6}}n)[A-Za-z]{{1,8}}(?:{_BLANKS}[^\s-]\S{{0,100}})"
        rf"|-(?=[A-Za-z]{{0,6}}b)[A-Za-z]{{1,8}}(?:{_BLANKS}[^\s-]\S{{0,100}}){{2}}){_BLANKS}{_VALUE}",
        clues=("htpasswd",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
    ),
    Rule(
        "password",
        r"(?i)\b(?:pass(?:wor[dt]|phrase|code|wd)|pwd?)\b[^\n.:=]{0,40}?\s(?:is|was|to|be)\s{1,2}(?:now\s)?"
        r"""["'`]?(?P<secret>[^\s"'`,;()]{6,64})""",
        clues=("passwor", "passphrase", "passcode", "passwd", "pw"),
        is_secret=credentials.is_spoken_password,
    ),
    Rule(
        "password",
        r"(?i)\b(?:use|using|with|enter|try|type|has|the|its)\s{1,2}(?:the\s{1,2})?(?:[a-z]{2,12}\s{1,2})?"
        r"""(?:password|passphrase|passcode|pw)\s{1,2}["'`]?(?P<secret>[^\s"'`,;()]{6,64})""",
        clues=("password", "passphrase", "passcode", "pw"),
        is_secret=credentials.is_named_in_passing,
    ),
    Rule(
        "password",
        r"""(?i)(?<!\S)["'`]?(?P<secret>[^\s"'`,;()]{6,64})["'`]?\s{1,2}as\s{1,2}(?:the|your|my|its|a)\s{1,2}"""
        r"(?:[a-z]{2,12}\s{1,2})?(?:password|passphrase|passcode)\b",
        clues=("password", "passphrase", "passcode"),
        is_secret=credentials.is_spoken_password,
    ),
    Rule(
        "password",
        r"(?i)\blog\s?in\s{1,2}(?:is|with|as)\s{1,2}[\w.@-]{1,40}\s?/\s?(?P<secret>[^\s\"'`,;()/]{6,64})",
        clues=("login", "log in"),
        is_secret=credentials.is_spoken_password,
    ),
    Rule(
        "key",
        r"(?i)(?P<name>key|token|secret|credential)s?(?:(?:(?!key|token|secret)[^\n.:=]){0,40}?\s(?:is|was|to|be|are)\s{1,2}(?:now\s)?"
        r"""|\s{1,2})["'`]?(?P<secret>[^\s"'`,;()]{16,512})""",
        clues=("key", "token", "secret", "credential"),
        is_secret=credentials.is_spoken_token,
    ),
    Rule(
        "key",
        rf"(?i)(?<![\w-])--(?:value|body|data|plaintext|secret-(?:string|value|data|binary))(?:=|{_BLANKS}){_VALUE}",
        clues=("key", "token", "secret", "passw", "cred"),
        is_secret=credentials.is_value_of_option,
    ),
    Rule(
        "key",
        rf"(?<![\w-])(?:echo|printf)(?:{_BLANKS}-[a-z]{{1,3}}|{_BLANKS}[\"']?%s[^\s|]{{0,8}})?{_BLANKS}[\"']?"
        r"(?P<secret>[^\s\"'|$]{16,512})[\"']?[ \t]{0,3}\|(?=[^\n|]{0,120}?(?i:secret|token|passw|login|key))",
        clues=("secret", "token", "passw", "login", "key"),
        is_secret=credentials.is_random_literal,
    ),
    Rule(
        "bare-hex",
        r"""\s*["']?(?P<secret>(?:0x(?![0-9a-fA-F]{40}\b))?(?!\d+["']?\s*\Z)[0-9a-fA-F]{32,64})["']?\s*""",
        whole=True,
    ),
    Rule(
        "high-entropy",
        r"""\s*["']?(?P<secret>[A-Za-z0-9+/_-]{20,512}={0,3})["']?\s*""",
        is_secret=credentials.is_random,
        whole=True,
    ),
)
