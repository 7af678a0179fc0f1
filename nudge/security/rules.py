"""The rules that find passwords and keys by the text around them; `formats` has what vendors' tokens look like.

A rule has two thresholds: refusing `DB_PASSWORD=letmein` would lose a useful hint, redacting it removes one word of a
record. Each rule carries samples that it must and must not match, in pieces, so that no secret scanner reports this
file. Every pattern is linear: it starts at a literal or a boundary, and every repetition that can fail late is bounded.
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
    `may_be_secret` does, it is redacted but not refused; `must_redact` are samples of that.

    `clues` are lower-case texts of which one must occur: searching for them is a hundred times cheaper than the
    pattern. A `whole` rule applies only to a text that is nothing but the credential.
    """

    __slots__ = (
        "_compiled",
        "clues",
        "is_secret",
        "kind",
        "may_be_secret",
        "must_match",
        "must_not_match",
        "must_redact",
        "pattern",
        "whole",
    )

    def __init__(
        self,
        kind: str,
        pattern: str,
        *,
        must_match: tuple[str, ...],
        must_not_match: tuple[str, ...],
        must_redact: tuple[str, ...] = (),
        clues: tuple[str, ...] = ("",),
        is_secret: Callable[[re.Match[str]], bool] | None = None,
        may_be_secret: Callable[[re.Match[str]], bool] | None = None,
        whole: bool = False,
    ) -> None:
        self.kind, self.pattern, self.clues, self.whole = kind, pattern, clues, whole
        self.is_secret, self.may_be_secret = is_secret, may_be_secret
        self.must_match, self.must_not_match, self.must_redact = must_match, must_not_match, must_redact
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
_HEX40 = "9fceb02d0ae598e95dc970b74767f19372d61af8"

RULES: tuple[Rule, ...] = (
    Rule(
        "private-key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        clues=("private key",),
        must_match=(
            "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA " + "PRIVATE KEY-----",
            "-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBg",
            'echo "-----BEGIN OPENSSH ' + 'PRIVATE KEY-----" > id',
            "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----",
        ),
        must_not_match=("-----BEGIN CERTIFICATE-----\nMIID", "-----BEGIN PUBLIC KEY-----", "private key"),
    ),
    Rule(
        "aws-secret-key",
        r"""(?i)secret_?access_?key["'\s:=]{1,6}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""",
        clues=("secret",),
        must_match=("aws configure set aws_secret_access_key wJalrXUtnFEMI" + "/K7MDENG/bPxRfiCYEXAMPLEKEY",),
        must_not_match=("aws configure set aws_secret_access_key $SECRET", "aws_secret_access_key"),
    ),
    Rule(
        "aws-secret-key",
        r"""\s*["']?(?P<secret>[A-Za-z0-9/+]{40})["']?\s*""",
        is_secret=credentials.is_aws_secret,
        whole=True,
        must_match=("wJalrXUtnFEMI" + "/K7MDENG/bPxRfiCYEXAMPLEKEY",),
        must_not_match=("src/Components/Login2/ButtonGroup/index1", "/opt/Company/Product2/Release/bin/Runner"),
    ),
    Rule(
        "vault-token",
        r"(?<![\w.-])s\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![\w.(-])",
        clues=("vault",),
        must_match=("vault login s." + "1234567890abcdefghijklmn", "VAULT_TOKEN=s." + "abcdefghijklmn1234567890 make"),
        must_not_match=("vault login $TOKEN", "vault: s.readTheSecretFromTheVault()", "vault read s.1234567890"),
    ),
    Rule(
        "discord-token",
        r"(?<![\w.-])(?P<secret>(?P<id>[MNO][A-Za-z0-9_-]{22,27})\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40})(?![\w.-])",
        clues=(".",),
        is_secret=credentials.is_discord_token,
        must_match=(
            "MTA1MjY0NjM2NjA1NjQ2MjM0" + ".GxYzAb." + "abcdefghijklmnopqrstuvwxyz0123456789AB",
            "DISCORD_BOT=NkX7c0Rz4uPq9LmT2vB5yWe1" + ".G5hJ2k." + "q3W8eR5tY1uI7oP2aS9dF4gH6jK0lZx",
        ),
        must_not_match=(
            "MyVeryLongClassNameForTests.GxYzAb.someOtherVeryLongMethodNameInIt",
            "MTA1MjY0NjM2NjA1NjQ2MjM0.x.y",
        ),
    ),
    Rule(
        "jwt",
        r"(?<![A-Za-z0-9_-])(?P<secret>(?P<header>[A-Za-z0-9_-]{12,}+)(?:\.[A-Za-z0-9_-]*+){2,4})",
        clues=("eyj",),
        is_secret=credentials.is_jwt,
        must_match=(
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
            + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0"
            + ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
            "curl -H 'X-Auth: eyJhbGciOiJub25lIn0" + ".eyJzdWIiOiIxIn0" + ".'",
        ),
        must_not_match=(
            "xxxxx.yyyyy.zzzzz",
            "eyJ0eXAiOiJ4In0" + ".eyJzdWIiOiIxIn0" + ".c2ln",
            "eyJub3QganNvbg.aaaa.bbbb",
        ),
    ),
    Rule(
        "url-credentials",
        r"""://(?P<user>[^\s:/?#@"'<>`[]{0,128}):(?P<secret>[^\s/"'<>`]{1,256})@""",
        clues=("://",),
        is_secret=credentials.is_url_password,
        must_match=(
            "postgres://app:" + "s3cr3tpw@db.internal:5432/app",
            "redis://:" + "hunter22@cache:6379/0",
            "git clone https://me:" + "p@ss@host/repo.git",
            "amqp://guest:" + "guest@mq.example.com",
            "mysql://root:" + "toor@127.0.0.1/app",
        ),
        must_not_match=(
            "postgres://app:${PASS}@db/app",
            "postgres://app:<password>@db/app",
            "postgres://user:$PASS@db",
            "http://user:pass@localhost:8080",
            "mysql://root:***@db",
            "https://user:{{ password }}@host",
            "http://localhost:8080/users/me@example.com",
            "ssh://git@github.com:22/o/r.git",
            "https://host:443/@scope/pkg",
            "amqp://guest:guest@localhost:5672/",
            "psql postgresql://postgres:postgres@localhost:5432/app",
            "mysql://root:root@127.0.0.1:3306/app",
            "REDIS_URL=redis://:redis@cache:6379",
        ),
    ),
    Rule(
        "url-credentials",
        r"""://(?P<secret>[\w.~%+-]{16,256})(?::[\w-]{0,20})?@""",
        clues=("://",),
        is_secret=credentials.is_url_token,
        must_match=(
            "git clone https://4JuxiMH3JZwaEaCQtjhV" + "cyNTrlqm5gKONJ0v10BC@github.com/o/r.git",
            "pip install --index-url https://LWm7UxomaIMJ" + "0DjK0tXI@pypi.fury.io/acme/ x",
            "git clone https://4JuxiMH3JZwaEaCQtjhV" + "cyNTrlqm5gKONJ0v10BC:x-oauth-basic@github.com/o/r.git",
        ),
        must_not_match=(
            "SENTRY_DSN=https://5f4dcc3b5aa765d61d8327deb882cf99@o123456.ingest.sentry.io/42",
            "ssh://deploy-user-production@bastion.example.com",
            "https://github.com/@scope",
        ),
    ),
    Rule(
        "authorization-header",
        r"""(?i)(?:(?<![a-z])authorization["'\\]{0,3}\s{0,3}(?:[:=]\s{0,3}["'\\]{0,3}|,\s{0,3}["'](?=\w))"""
        r"""(?:[a-z][\w.-]{1,30}[ \t]{1,3}(?=\S))?|\bbearer[ \t]{1,3})"""
        rf"""(?P<secret>(?:[^\s"'`,;\\]|,[ \t]?(?=[A-Za-z_]{{2,30}}=)){{1,{_LONGEST_VALUE}}})""",
        clues=("authorization", "bearer"),
        is_secret=credentials.is_authorization,
        must_match=(
            "curl -H 'Authorization: Bearer " + "abc123def456ghi789' https://api.example.com",
            "Authorization: Basic " + "dXNlcjpwYXNz",
            '{"Authorization": "token ' + '0123456789abcdef"}',
            "Authorization: GenieKey " + "06e8edaa-f695-432d-8508-df4eeb36b01c",
            "Authorization: PVEAPIToken=root@pam!mon=" + "06e8edaa-f695-432d-8508-df4eeb36b01c",
            "Authorization: sso-key " + "RYkNPNnZk2ye_rbmAOtTUCpy:3fHVVlOn9HDhpKbI7kLtVo",
            "Authorization: AWS4-HMAC-SHA256 Credential=x/y, SignedHeaders=host, Signature=" + _HEX40,
        ),
        must_not_match=(
            'curl -H "Authorization: Bearer $TOKEN" localhost',
            "Authorization: Bearer <token>",
            "Authorization: Bearer token",
            "bearer authentication is required",
            "Authorization: Bearer ***",
            "Authorization: ApiKey ${ES_KEY}",
            "Authorization: see the section on tokens",
        ),
    ),
    Rule(
        "cookie",
        r"""(?i)(?<!\w)(?:set-)?cookie["'\\]{0,3}:[ \t]{0,3}["'\\]{0,3}"""
        r"""(?P<secret>[^\s"'`;=]{1,64}=[^"'`\n]{8,4096})""",
        clues=("cookie",),
        is_secret=credentials.is_cookie,
        must_match=(
            "Cookie: theme=dark; sessionid=" + "k9JxQ27sLm4Zt8WcB1k9JxQ27s",
            "Set-Cookie: connect.sid=s%3A" + "k9JxQ27sLm4Zt8WcB1.abcDEF012345; Path=/; HttpOnly",
        ),
        must_not_match=("Cookie: theme=dark; lang=en-US", "Cookie: session=$SESSION", "cookie: true"),
    ),
    Rule(
        "cookie",
        rf"""(?<![\w-])curl{_WORDS % "(?:-b|--cookie)"}(?:-b|--cookie)[ =]?["']?"""
        r"""(?P<secret>[^\s"'`;=]{1,64}=[^"'`\s]{8,4096})""",
        clues=("curl",),
        is_secret=credentials.is_cookie,
        must_match=("curl -b 'session=" + "k9JxQ27sLm4Zt8WcB1k9JxQ27s' https://x",),
        must_not_match=("curl -b cookies.txt -c cookies.txt http://localhost/login", "curl -b lang=en https://x"),
    ),
    Rule(
        "password",
        rf"(?i){_PASSWORD}{_GAP}{_VALUE}",
        clues=("pass", "pw", "rediscli_auth"),
        is_secret=credentials.is_assigned_password,
        may_be_secret=credentials.may_be_assigned_password,
        must_redact=(
            "DB_PASSWORD=letmein",
            "mysql --password letmein",
            '{"db_password": "letmein"}',
            "psql 'host=x password=letmein'",
            "DB_PASS=sesame",
            "dbpass=monkey",
            "DB_PWD=monkey make",
            "POSTGRES_PASSWORD: monkey",
            "redis-cli --pass monkey ping",
        ),
        must_match=(
            "password=" + "hunter2",
            'DB_PASSWORD: "' + 'correct horse battery"',
            "mysql --password " + "s3cr3t99 -e 'select 1'",
            "Server=db;Uid=sa;Pwd=" + "Str0ng!Pass;",
            '{"db_pass": "' + 'Tr0ub4dor"}',
            "REDISCLI_AUTH=" + "Hunter2222 redis-cli ping",
            "keytool -list -storepass " + "Hunter2222",
            "password=" + "CYXzvDbIibjs",
            "pw: " + "hunter22",
            "Passwort: " + "hunter22",
        ),
        must_not_match=(
            "password=$PASS",
            'print("PASS: should_skip_everything was included")',
            "password=${PASS}",
            "password: <password>",
            "password=***",
            "password=changeme1",
            "docker login --password-stdin",
            "ansible-vault view --password path/to/file",
            "API_PASSWORD=\nNODE_ENV=production4you",
            "password: string",
            "POSTGRES_PASSWORD=postgres",
            "PASSWORD_FILE=/run/secrets/db1",
            "password: process.env.DB_PASSWORD",
            'docker run -v "$PWD":/workspace1 image',
            "the password rotates2 weekly",
            "password: required",
            "password=string",
            '{"type": "password", "label": "Password"}',
            "render_pass=shadow",
            "PWD=src make",
            "OLDPWD=build make",
            "compass=north",
            "bypass=firewall",
            "Password: monkey see",
            "sed -i 's/password=.*/password=REDACTED/' app.yaml",
            "grep -E 'password=[^ ]+' config.ini",
            "openssl enc -aes-256-cbc -pass pass:$PW -in a -out b",
        ),
    ),
    Rule(
        "key",
        rf"(?i){_KEY}{_GAP}{_VALUE}",
        clues=("token", "secret", "key", "cred", "_pat=", "_pat:", "auth:", "auth=", "honeycomb", "app_certificate"),
        is_secret=credentials.is_assigned_token,
        may_be_secret=credentials.may_be_phrase,
        must_redact=('secret = "correct horse battery staple"', "jwt_secret: 'open sesame please'"),
        must_match=(
            'API_KEY: "' + 'a8f5f167f44f4964"',
            "api_key=" + "deadbeefdeadbeef",
            'acmeKey: "' + 'k9JxQ27sLm4Zt8Wc"',
            "deploy --token " + "abc123def456",
            "aws configure set aws_session_token FwoG" + "ZXIvYXdzEBYaDK1234567890abcdefghij/+=",
            "npm config set //registry.example.com/:_authToken " + "abc123def456",
            "client_secret=" + "7Fjfp0ZBr1KtDRbnfVdmIw",
            "secretKey := '" + "k3yb0ardc4t'",
            "export LOGDNA_KEY=" + "0b4c2939433dbf01a5e2bf0f552bd46d; make",
            "env DUO_SKEY=" + "bxpUrieoBmvPyUHweat1eRHs2n6qcoBmihga9mct make",
            "stripe_key: " + "k9JxQ27sLm4Zt8WcB1k9",
            "MJ_APIKEY_PRIVATE=" + "7bd064062743db3fb264607abbe3f7eb make",
            "AZURE_DEVOPS_EXT_PAT=" + "w7bhm55491hslrgkb91cj0frnjr90ov4bgnzs5ltxjkdj2vrdss8 x",
            "-H 'x-honeycomb-team: " + "pHIOcrmNMpfS01eIZGj5tb'",
            "curl -H 'X-Auth: " + "pHIOcrmNMpfS01eIZGj5tb' x",
            "MAILER_API_KEY_EU_WEST=" + "k9JxQ27sLm4Zt8WcB1k9",
            "api_keys: ['" + "k9JxQ27sLm4Zt8WcB1k9']",
            'client.setApiKey("' + 'k9JxQ27sLm4Zt8WcB1k9")',
            'acme_api_key            = "' + 'k9JxQ27sLm4Zt8WcB1k9"',
            '{"stripe": {"key": "' + 'k9JxQ27sLm4Zt8WcB1k9"}}',
            "[acme]\nkey=" + "0b4c2939433dbf01a5e2bf0f552bd46d",
            "GET /v1?key=" + "0b4c2939433dbf01a5e2bf0f552bd46d&q=1",
            "AccountKey=" + "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==",
        ),
        must_not_match=(
            "API_KEY=$API_KEY",
            "API_KEY=\nNODE_ENV=production4you",
            'sortKey: "createdAt2024AndName"',
            'primaryKey: "order_id"',
            'gh auth login --with-token < "$FILE"',
            "max_tokens=200000",
            "secretName: my-app-tls-2024",
            "docker build --secret id=npmrc1,src=.npmrc .",
            "token: ${{ secrets.GITHUB_TOKEN }}",
            "--token <your-token>",
            "--private-key ~/.ssh/id_ed25519",
            "tokenizer: bert-base-uncased-v2",
            "api_key=example-key-123456",
            "signing-key: release-2024.asc",
            "set token lifetime2h in the config",
            "secret: the words of a sentence",
            "ANTHROPIC_API_KEY=sk-ant-...",
            "GITHUB_TOKEN=ghp_************************************",
            "sed -i 's/^API_KEY=.*/API_KEY=/' .env",
            'publicKey: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE5c1"',
            'cacheKey: "9f86d081884c7d659a2feaa0c55ad015"',
            ': "${API_KEY:?API_KEY must be set}"',
            "const token = req.headers.authorization?.split(' ')[1]",
            "kubectl annotate pod x checksum/secret=" + (_HEX40 * 2)[:64],
            "xcrun altool --apiKey A1B2C3D4E5 --apiIssuer 69a6de70-03db-47e3-e053-5b8c7c11a4d1",
            "service-key: svc-2024-a1",
            '{"object": {"key": "k9JxQ27sLm4Zt8WcB1k9"}}',
            "acme:\n  key: " + _HEX40,
            "Cache restored from key: Linux-node-" + _HEX40,
            "api_key_hash: 0b4c2939433dbf01a5e2bf0f552bd46d",
            "TOKEN_ID=k9JxQ27sLm4Zt8WcB1k9",
            "private_key: Ed25519PrivateKey | Ed448PrivateKey",
            "isinstance(private_key, rsa.RSAPrivateKey)",
            "JWT_SECRET=super-secret-jwt-token-with-at-least-32-characters-long",
        ),
    ),
    Rule(
        "login",
        rf"""(?P<option>\s-[A-Za-z]{{0,8}}?[uUa]|--(?:(?:proxy-)?user|auth))(?P<gap>=|{_BLANK}{{0,24}}+)"""
        rf"""(?P<quote>["'])?(?!\[)[^\s:"'$]{{1,64}}:(?P<secret>(?(quote)(?!\s)(?:(?!(?P=quote))[^\n])+|[^\s"'`]{{1,{_LONGEST_VALUE}}}))""",
        clues=(" -u", "\t-u", "\n-u", "--user", " -a", "\t-a", "\n-a", "--auth", "curl", "wget"),
        is_secret=credentials.is_login,
        may_be_secret=credentials.may_be_login,
        must_redact=(
            "curl -u me:letmein https://x.example",
            "http -a me:sesame localhost",
            "curl -X POST \\\n  -u me:monkey x",
            "curl 'https://x?a=1&b=2' -u me:monkey",
            'curl -d "a;b" -u me:monkey x',
            "curl -sSLu me:monkey x",
            "curl -U p:monkey x",
        ),
        must_match=(
            "curl -u admin:" + "s3cr3tpw https://x.example",
            "curl --user 'bob:" + "hunter22' x",
            "curl -s -ume:" + "S3cretPw99 https://x.example",
            "http -a me:" + "S3cretPw99 localhost",
            "xh --auth=me:" + "S3cretPw99 localhost",
            "curl -su me:" + "Hunter2222 x",
            "curl --proxy-user p:" + "Hunter2222 x",
            "curl -u 'me:" + "Hunter 2222 foo' x",
        ),
        must_not_match=(
            "podman run -u 100000:100000 x",
            "run --user node:node x",
            "docker exec -u app:staff x",
            "curl -u me:$PASS x",
            "-u $(id -u):$(id -g)",
            "rsync -a build1:/srv/Data2024x web1:/srv",
            "rsync -a host:Data2024x .",
            "sort -uk1:Field22x",
            "docker run -u 'app: the Group2 of all' x",
            "curl x; docker run -u app:staff x",
            "ls -lau a:Field22x",
            "pip install -U git+ssh:Field22x",
        ),
    ),
    Rule(
        "login",
        rf"""(?P<option>\s-[A-Za-z]{{0,8}}?u|--user)(?:=|{_BLANK}{{0,24}}+)["']?(?P<secret>[\w.~+/=-]{{20,256}}):""",
        clues=("curl", "wget"),
        is_secret=credentials.is_login_token,
        must_match=(
            "curl -u 0b4c2939433dbf01a5e2bf0f552bd46d" + ":x https://api.example.com",
            "curl -s --user 'k9JxQ27sLm4Zt8WcB1k9" + ":' https://api.example.com",
        ),
        must_not_match=(
            "curl -u deployment-service-user:$PASS https://x",
            "curl x; docker run -u 0b4c2939433dbf01a5e2bf0f552bd46d:0 y",
        ),
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:mysql\w{{0,12}}|mariadb(?:-\w{{1,12}})?|7za?){_WORDS % '-p'}-p{_VALUE}",
        clues=("mysql", "mariadb", "7z"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
        must_redact=("mysql -uroot -pletmein db", "mysql -e 'select 1; select 2' -pletmein db"),
        must_match=(
            "mysql -uroot -p" + "S3cretPass99 db",
            "mysqldump -h db -u root -p'" + "S3cret Pass99' app > a.sql",
            "7z x -p" + "Hunter2222 a.7z",
            "mysql -u root \\\n  -p" + "Hunter2222 appdb",
            "mysql -u root\\\r\n\t-p" + "Hunter2222 appdb",
        ),
        must_not_match=(
            "mysql -u root -p app_test2024",
            "mysql -u root\ncp -pHunter2222 x",
            "mysql -uroot -p$MYSQL_PASSWORD db",
            'mysql -uroot -p"${PW}" db',
            "mysql -uroot -proot app_test",
            "docker run --name mysql -p3306:3306 mysql:8",
        ),
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
        must_redact=(
            "docker login -u me -p letmein",
            "sshpass -p letmein ssh x",
            "sshpass -p 12345 ssh x",
            "sshpass -p \\\n 12345 ssh x",
        ),
        must_match=(
            "sshpass -p " + "Hunter2222 ssh me@host",
            "sshpass -p" + "Hunter2222 ssh me@host",
            "docker login -u me -p " + "MyS3cretPw99 registry.example.com",
            "mongosh -u admin -p '" + "Hunter2222' db",
            "sshpass \\\n -p " + "Hunter2222 ssh x",
            "docker login -u me \\\n -p " + "Hunter2222 reg",
            "docker --config x login -u me -p " + "Hunter2222",
            "twine upload -u me -p " + "Hunter2222 dist/*",
        ),
        must_not_match=(
            'sshpass -p "$PASS" ssh me@host',
            "sshpass -e ssh me@host -p 2222",
            'docker login -u me -p "$(cat ~/.token)"',
            "docker login; docker run -p 8080:80 nginx",
            "mongod -p 27017",
            "docker --debug run --name login1 -p 127.0.0.1:80:80 nginx",
            "docker run --name mongo -p 27017:27017 mongo",
        ),
    ),
    Rule(
        "password",
        rf"(?<![\w-])redis-cli{_WORDS % '-a'}-a{_BLANKS}{_VALUE}",
        clues=("redis-cli",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
        must_redact=("redis-cli -h cache -a letmein ping",),
        must_match=("redis-cli -a " + "MyS3cretPw99 ping", "redis-cli -h x \\\n -a " + "Hunter2222"),
        must_not_match=("redis-cli -a $REDIS_PASSWORD ping", "redis-cli -h cache info"),
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:(?P<ldap>ldap\w{{1,12}})|unzip|zip|sqlcmd|bcp|mosquitto_(?:pub|sub))"
        rf"{_WORDS % '(?(ldap)-w|-P)'}(?(ldap)-w|-P)"
        rf"{_BLANK}{{0,24}}+{_VALUE}",
        clues=("ldap", "zip", "sqlcmd", "bcp", "mosquitto_"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
        must_redact=("unzip -P sesame a.zip",),
        must_match=(
            "ldapsearch -x -D cn=admin -w " + "Hunter2222 uid=me",
            "sqlcmd -S db -U sa -P '" + "Str0ng!Pass' -Q 'select 1'",
            "sqlcmd -U sa -P" + "Hunter2222! -Q x",
        ),
        must_not_match=("ldapsearch -x -W -D cn=admin", "unzip -P $PW a.zip", "zip -r a.zip dir"),
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:mysqladmin{_WORDS % 'password'}password{_BLANKS}|-pass(?:in|out)?{_BLANKS}[\"']?pass:){_VALUE}",
        clues=("mysqladmin", "pass:"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=("openssl rsa -in a.pem -passin pass:monkey", "mysqladmin -u root password monkey"),
        must_match=("mysqladmin -u root password " + "Hunter2222", "openssl enc -d -pass 'pass:" + "Hunter2222' -in a"),
        must_not_match=(
            "mysqladmin -u root password $PW",
            "openssl rsa -passin pass:$PW",
            "openssl rsa -passin env:PW",
        ),
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:echo|printf)(?:{_BLANKS}-[a-z]{{1,3}}|{_BLANKS}[\"']?%s[^\s|]{{0,8}})?{_BLANKS}[\"']?"
        r"(?P<user>[\w.-]{1,32}:)?(?P<secret>[^\s\"'|$:]{4,64})[\"']?[ \t]{0,3}\|[ \t]{0,3}"
        r"(?:sudo[ \t]{1,3})?(?(user)(?:/usr)?(?:/sbin/)?chpasswd|sudo[ \t]{1,3}-S)",
        clues=("chpasswd", "sudo -s"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=("echo root:monkey | chpasswd",),
        must_match=(
            "echo 'root:" + "azGGn00j41' | sudo chpasswd",
            "echo " + "xDNRkiRnis9! | sudo -S apt update",
        ),
        must_not_match=("echo $PW | sudo -S apt update", 'echo "root:$PW" | chpasswd'),
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:(?P<net>net){_BLANKS}user{_BLANKS}[\w.@-]{{1,64}}{_BLANKS}|(?:smb\w{{1,12}}|rpcclient|mount\.cifs)"
        rf"{_WORDS % '-U'}-U{_BLANK}{{0,3}}[\"']?[^\s%\"']{{1,64}}%){_VALUE}",
        clues=("net user", "smb", "rpcclient", "mount.cifs"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=("smbclient //srv/share -U me%monkey",),
        must_match=("net user bob " + "QlVe4Fm39! /add", "smbclient //srv/share -U user%" + "jKkNGEHWab9"),
        must_not_match=('smbclient -U "user%$PASS" //srv/share', "net user bob /delete", "net user bob *"),
    ),
    Rule(
        "password",
        rf"(?<![\w-])gh{_BLANKS}secret{_BLANKS}set{_WORDS % '(?:-b|--body)'}(?:--body|-b)(?:=|{_BLANKS}){_VALUE}",
        clues=("gh secret",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=("gh secret set FOO --body monkey",),
        must_match=("gh secret set FOO --body " + "ivDTC3A0yaonMabbVbVLXJvxM2mYfHfQ",),
        must_not_match=("gh secret set FOO < token.txt", 'gh secret set FOO --body "$FOO"'),
    ),
    Rule(
        "password",
        rf"(?i)convertto-securestring{_BLANKS}(?:-string{_BLANKS})?{_VALUE}",
        clues=("convertto-securestring",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=('ConvertTo-SecureString "monkey" -AsPlainText',),
        must_match=('ConvertTo-SecureString "' + 'CRtYsjnfdkMD" -AsPlainText -Force',),
        must_not_match=("ConvertTo-SecureString $pw -AsPlainText -Force",),
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?:security{_BLANKS}[a-z-]{{4,40}}{_WORDS % '-[pw]'}-[pw]"
        rf"|lftp{_WORDS % '-u'}-u{_BLANKS}[^\s,]{{1,64}},"
        rf"|ipmitool{_WORDS % '-P'}-P|(?:xfreerdp|signtool){_WORDS % '/p'}/p:?){_BLANK}{{0,3}}{_VALUE}",
        clues=("keychain", "generic-password", "internet-password", "lftp", "ipmitool", "xfreerdp", "signtool"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_option,
        must_redact=("lftp -u me,monkey sftp://host",),
        must_match=(
            "security unlock-keychain -p " + "Hunter2222 build.keychain",
            "xfreerdp /u:me /p:" + "Hunter2222 /v:host",
            "ipmitool -H bmc -U root -P " + "Hunter2222 power on",
        ),
        must_not_match=(
            'security unlock-keychain -p "$PW" build.keychain',
            "security find-generic-password -s app -w",
            "signtool sign /f cert.pfx /p %CERT_PW% app.exe",
        ),
    ),
    Rule(
        "password",
        r"(?i)\bmachine\s{1,4}[^\s]{1,200}\s{1,8}login\s{1,4}[^\s]{1,200}\s{1,8}password\s{1,4}(?P<secret>[^\s\"']{1,200})",
        clues=("password",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=("machine github.com login me password monkey",),
        must_match=("machine api.heroku.com login me@x.io password " + "264f145e-baa8-4ae5-bb3d-b123c8812df1",),
        must_not_match=('echo "machine x login y password $PW" > ~/.netrc', "machine learning login page"),
    ),
    Rule(
        "password",
        r"(?i)<(?P<tag>\w{0,24}(?:password|passphrase|passwd|secret|api_?key|token))>\s{0,8}(?P<secret>[^<>\s]{6,256})\s{0,8}</",
        clues=("password>", "passphrase>", "passwd>", "secret>", "key>", "token>"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=("<password>monkey</password>",),
        must_match=(
            "<password>" + "hfLkqP9Mmhob</password>",
            "<ClearTextPassword>" + "hfLkqP9Mmhob9</ClearTextPassword>",
        ),
        must_not_match=("<password>${db.password}</password>", "<Token></Token>", "<secret>{{ secret }}</secret>"),
    ),
    Rule(
        "password",
        r"(?i)(?:key|name)=[\"'][\w.:-]{0,40}?(?:password|passwd|secret|api_?key|token)[\"']\s{1,4}value=[\"'](?P<secret>[^\"'\n]{6,256})",
        clues=("passw", "secret", "key", "token"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=('<add key="Password" value="monkey" />',),
        must_match=('<add key="ApiKey" value="' + 'c9m3qdQr2HuUggJFQWoNUFJxbghJN1sn" />',),
        must_not_match=('<add key="ApiKey" value="%API_KEY%" />', '<input name="token" value="" />'),
    ),
    Rule(
        "password",
        r"""(?i)\bdefine\(\s{0,4}["']\w{0,40}(?:password|secret|key|salt|token)["']\s{0,4},\s{0,4}"""
        r"""["'](?P<secret>[^"'\n]{6,256})""",
        clues=("define(",),
        is_secret=credentials.is_password,
        must_match=("define('DB_PASSWORD', '" + "zwRQ9htGX9YfVn');",),
        must_not_match=("define('DB_PASSWORD', 'password_here');", "define('SECRET_KEY', getenv('KEY'));"),
    ),
    Rule(
        "password",
        rf"""(?i)\b(?:identified\s{{1,3}}(?:with\s{{1,3}}\S{{1,40}}\s{{1,3}})?by|(?:with|encrypted) password)"""
        rf"""\s{{1,3}}(?=\\{{0,2}}["']){_VALUE}""",
        clues=("identified", "with password", "encrypted password"),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=("mysql -e \"ALTER USER me IDENTIFIED BY 'monkey'\"",),
        must_match=(
            "CREATE USER me IDENTIFIED WITH sha2 BY '" + "Hunter2222'",
            "create role app with password '" + "Hunter2222'",
        ),
        must_not_match=(
            "CREATE USER me IDENTIFIED BY '$PW'",
            "alter role app with password 'postgres'",
        ),
    ),
    Rule(
        "password",
        rf"(?<![\w-])htpasswd{_BLANKS}(?:-(?=[A-Za-z]{{0,6}}n)[A-Za-z]{{1,8}}(?:{_BLANKS}[^\s-]\S{{0,100}})"
        rf"|-(?=[A-Za-z]{{0,6}}b)[A-Za-z]{{1,8}}(?:{_BLANKS}[^\s-]\S{{0,100}}){{2}}){_BLANKS}{_VALUE}",
        clues=("htpasswd",),
        is_secret=credentials.is_password,
        may_be_secret=credentials.may_be_password,
        must_redact=("htpasswd -b .htpasswd me monkey", "htpasswd -nbB me monkey"),
        must_match=("htpasswd -b users.db bob " + "Hunter2222", "htpasswd -bc /etc/nginx/pw bob " + "s3cr3tpw"),
        must_not_match=("htpasswd -b users.db bob $PW", "htpasswd -c users.db bob"),
    ),
    Rule(
        "password",
        r"(?i)\b(?:pass(?:wor[dt]|phrase|code|wd)|pwd?)\b[^\n.:=]{0,40}?\s(?:is|was|to|be)\s{1,2}(?:now\s)?"
        r"""["'`]?(?P<secret>[^\s"'`,;()]{6,64})""",
        clues=("passwor", "passphrase", "passcode", "passwd", "pw"),
        is_secret=credentials.is_spoken_password,
        must_match=("the password is " + "hunter22", "set the admin password to '" + "Tr0ub4dor' please"),
        must_not_match=(
            "the password is required",
            "the password is stored in vault2",
            "change the password to something longer",
            "password is 8 characters",
            "the password is $ADMIN_PASSWORD",
            "the password is in 1password-cli.txt",
            "the password is sha256 hashed",
        ),
    ),
    Rule(
        "password",
        r"(?i)\b(?:use|using|with|enter|try|type|has|the|its)\s{1,2}(?:the\s{1,2})?(?:[a-z]{2,12}\s{1,2})?"
        r"""(?:password|passphrase|passcode|pw)\s{1,2}["'`]?(?P<secret>[^\s"'`,;()]{6,64})""",
        clues=("password", "passphrase", "passcode", "pw"),
        is_secret=credentials.is_named_in_passing,
        must_match=("Use password " + "72DxVJiaXVNC for the staging admin", "log in with password " + "Hunter2222"),
        must_not_match=(
            "the password rotates2 weekly",
            "use password v2024 hashing",
            "the password bcrypt12 cost",
            "use the password from 1Password",
        ),
    ),
    Rule(
        "password",
        r"""(?i)(?<!\S)["'`]?(?P<secret>[^\s"'`,;()]{6,64})["'`]?\s{1,2}as\s{1,2}(?:the|your|my|its|a)\s{1,2}"""
        r"(?:[a-z]{2,12}\s{1,2})?(?:password|passphrase|passcode)\b",
        clues=("password", "passphrase", "passcode"),
        is_secret=credentials.is_spoken_password,
        must_match=("use " + "hunter22 as the password",),
        must_not_match=("use $PW as the password", "treat utf8 as the password encoding", "keep it as the password"),
    ),
    Rule(
        "password",
        r"(?i)\blog\s?in\s{1,2}(?:is|with|as)\s{1,2}[\w.@-]{1,40}\s?/\s?(?P<secret>[^\s\"'`,;()/]{6,64})",
        clues=("login", "log in"),
        is_secret=credentials.is_spoken_password,
        must_match=("login with admin / " + "hunter22",),
        must_not_match=("the default login is admin/admin123", "login is at https://x.example/login2"),
    ),
    Rule(
        "key",
        r"(?i)(?P<name>key|token|secret|credential)s?(?:(?:(?!key|token|secret)[^\n.:=]){0,40}?\s(?:is|was|to|be|are)\s{1,2}(?:now\s)?"
        r"""|\s{1,2})["'`]?(?P<secret>[^\s"'`,;()]{16,512})""",
        clues=("key", "token", "secret", "credential"),
        is_secret=credentials.is_spoken_token,
        must_match=(
            "my api key is " + "ivDTC3A0yaonMabbVbVLXJvxM2mYfHfQ",
            "the token is " + "ivDTC3A0yaonMabbVbVLXJvxM2mYfHfQ.",
            "set ACME_API_KEY to " + "7bd064062743db3fb264607abbe3f7eb and rerun",
            "[acme] using acme key " + "7bd064062743db3fb264607abbe3f7eb",
        ),
        must_not_match=(
            "the token is passed in the Authorization header",
            "the secret is rotated every 90d by rotate-keys.yml",
            "api key is read from $API_KEY",
            "kubectl create token build-bot --duration=1h",
            "the cache key is 9f86d081884c7d659a2feaa0c55ad015",
            "the key is 9f86d081884c7d659a2feaa0c55ad015",
            "gpg: using EDDSA key 9FCEB02D0AE598E95DC970B74767F19372D61AF8",
            "vault kv get secret production/api/v2/database-credentials",
        ),
    ),
    Rule(
        "key",
        rf"(?i)(?<![\w-])--(?:value|body|data|plaintext|secret-(?:string|value|data|binary))(?:=|{_BLANKS}){_VALUE}",
        clues=("key", "token", "secret", "passw", "cred"),
        is_secret=credentials.is_value_of_option,
        must_match=(
            "aws ssm put-parameter --name /x/acme-token --type SecureString --value "
            + "7bd064062743db3fb264607abbe3f7eb",
            "aws secretsmanager create-secret --name x --secret-string '" + "k9JxQ27sLm4Zt8WcB1k9'",
        ),
        must_not_match=(
            "aws ssm put-parameter --name /x/commit --value 9fceb02d0ae598e95dc970b74767f19372d61af8",
            'aws secretsmanager create-secret --name x --secret-string "$TOKEN"',
            "curl --data @token.json https://x",
        ),
    ),
    Rule(
        "key",
        rf"(?<![\w-])(?:echo|printf)(?:{_BLANKS}-[a-z]{{1,3}}|{_BLANKS}[\"']?%s[^\s|]{{0,8}})?{_BLANKS}[\"']?"
        r"(?P<secret>[^\s\"'|$]{16,512})[\"']?[ \t]{0,3}\|(?=[^\n|]{0,120}?(?i:secret|token|passw|login|key))",
        clues=("secret", "token", "passw", "login", "key"),
        is_secret=credentials.is_random_literal,
        must_match=(
            "echo " + "7bd064062743db3fb264607abbe3f7eb | acme secrets set ACME_TOKEN",
            "echo '" + "k9JxQ27sLm4Zt8WcB1k9' | docker login -u me --password-stdin",
        ),
        must_not_match=(
            "echo $TOKEN_OF_THE_REGISTRY | docker login --password-stdin",
            "echo 9fceb02d0ae598e95dc970b74767f19372d61af8 | cut -c1-7 | tee key",
            "echo /etc/ssl/private/acme.key.2024.pem | xargs ssh-keygen -lf",
        ),
    ),
    Rule(
        "bare-hex",
        r"""\s*["']?(?P<secret>(?:0x(?![0-9a-fA-F]{40}\b))?(?!\d+["']?\s*\Z)[0-9a-fA-F]{32,64})["']?\s*""",
        whole=True,
        must_match=(_HEX40, "5f4dcc3b5aa765d61d8327deb882cf99", (_HEX40 * 2)[:64].upper()),
        must_not_match=("git checkout " + _HEX40, "sha256:" + (_HEX40 * 2)[:64], _HEX40[:12], "0x" + _HEX40),
    ),
    Rule(
        "high-entropy",
        r"""\s*["']?(?P<secret>[A-Za-z0-9+/_-]{20,512}={0,3})["']?\s*""",
        is_secret=credentials.is_random,
        whole=True,
        must_match=(
            "x8Kd0LpQz7VbN3mRtY6wHs2JcF9gAeUi",
            "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg==",
            "q7w3k9z1m4x8c2v6b5n0p3l7",
        ),
        must_not_match=(
            "sha512-" + "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
            "550e8400-e29b-41d4-a716-446655440000",
            "src/components/LoginForm/index2",
            "my-service-7d4b9c6f5d-x2x9z",
            "ami-0abcdef1234567890",
            "parseUtf8StringToBase64Encoded",
            "us-central1-docker-pkg-dev-project1",
        ),
    ),
)
