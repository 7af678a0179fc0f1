from __future__ import annotations

import base64
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nudge.core import limits
from nudge.security import secrets
from nudge.security.rules import RULES, Rule
from nudge.security.secrets import find_secret, find_tokens, redact
from tests.bench import guard_samples, secret_corpus
from tests.unit.security.benign_corpus import BENIGN, NOT_TOKENS, SHA1
from tests.unit.security.hostile_corpus import ALNUM, AWS_SECRET, HEX, HOSTILE, LONG, jwt, pem
from tests.unit.security.rule_samples import SAMPLED, SAMPLES

UUID = "06e8edaa-f695-432d-8508-df4eeb36b01c"
MUST = [(rule, text) for rule, samples in SAMPLED for text in samples.must_match]
MUST_NOT = [(rule, text) for rule, samples in SAMPLED for text in samples.must_not_match]
TEXTS = [
    *(text for _, its in SAMPLED for text in (*its.must_match, *its.must_not_match, *its.must_redact)),
    *BENIGN,
    *HOSTILE,
]
MUST_REDACT = [
    pytest.param(rule, text, id=f"{rule.kind}-{number}")
    for rule, samples in SAMPLED
    for number, text in enumerate(samples.must_redact)
]


def test_every_rule_is_asked_where_it_may_match() -> None:
    """A text without a clue of any rule is not searched: no rule may have a clue that is not looked for."""
    alone = {rule.kind for rule in RULES if not rule.whole and not all(map(secrets.has_clue, rule.clues))}
    assert alone == {"discord-token", "url-credentials"}
    assert {rule.kind for rule in RULES if rule.whole} == {"aws-secret-key", "bare-hex", "high-entropy"}


@given(st.lists(st.sampled_from(TEXTS) | st.text(), max_size=4), st.sampled_from((" ", "\n", "", "/", "=", '"')))
@settings(max_examples=300)
def test_what_is_not_searched_holds_nothing(parts: list[str], separator: str) -> None:
    """Looking for clues first changes no result."""
    text = separator.join(parts)
    lowered = text.lower()
    if not secrets.may_hold_secret(text, lowered):
        assert not [rule for rule in RULES if list(rule.spans(text, lowered, for_redaction=True))]


def test_a_rule_matches_its_samples() -> None:
    """Every sample that a rule must match is found, under that rule's name or, when two fit, that of the one before
    it."""
    assert [text for rule, text in MUST if not list(rule.spans(text, text.lower()))] == []
    assert [text for _, text in MUST if find_secret(text) is None] == []


def test_no_rule_matches_the_counter_samples() -> None:
    """What a rule must not match is no credential to any other rule either."""
    assert [text for rule, text in MUST_NOT if list(rule.spans(text, text.lower(), for_redaction=True))] == []
    assert [text for _, text in MUST_NOT if find_secret(text) is not None or redact(text) != text] == []


@pytest.mark.parametrize(("rule", "text"), MUST_REDACT)
def test_in_doubt_a_record_is_redacted_and_a_hint_is_not_refused(rule: Rule, text: str) -> None:
    """A word may be a password: a record loses little without it, a hint is worth nothing."""
    assert list(rule.spans(text, text.lower(), for_redaction=True))
    assert (
        find_secret(text) is None
        and f"[REDACTED:{rule.kind}]" in redact(text)
        and find_secret(text, for_redaction=True) == rule.kind
    )


def test_only_a_rule_that_doubts_redacts_more_than_it_refuses() -> None:
    """And it shows by a sample what that is."""
    assert all(bool(samples.must_redact) == (rule.may_be_secret is not None) for rule, samples in SAMPLED)


def test_every_rule_has_samples_of_both_sorts() -> None:
    """A rule without a sample and a counter-sample is not in the table."""
    assert [samples.kind for samples in SAMPLES] == [rule.kind for rule in RULES]
    assert all(samples.must_match and samples.must_not_match for samples in SAMPLES)


def test_no_false_alarm_on_ordinary_hints() -> None:
    """Of the values people keep as hints, none is refused."""
    alarms = {text: find_secret(text) for text in BENIGN if find_secret(text)}
    print(f"false alarms: {len(alarms)} of {len(BENIGN)} ({len(alarms) / len(BENIGN):.1%})")
    assert len(set(BENIGN)) >= 150
    assert not alarms


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=\nexport PATH=/usr/local/bin:/opt/Tools2024/bin",
        "API_KEY=\nAbCd1234efgh5678ijkl",
        "OPENAI_API_KEY=\n\nDATABASE_URL=postgres://localhost/app",
        "htpasswd --password path/to/file",
        "nudge-test --password ./secrets/db_pass2024",
        "ghp_xxxx",
        "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "url = 'http://user%40name:pass%40word@host:8080'",
    ],
)
def test_an_empty_key_a_path_and_a_mask_are_no_credentials(text: str) -> None:
    """An empty `API_KEY=` does not take the next line; a path to a password is none; nor is a mask or an example."""
    assert find_secret(text) is None and redact(text) == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: GenieKey " + UUID, UUID),
        ("Authorization: Splunk " + UUID, UUID),
        (f"curl -H 'Authorization: Bearer {UUID}:{HEX}' https://x", HEX),
        ("Authorization: PVEAPIToken=root@pam!mon=" + UUID, UUID),
        (f"Authorization: sso-key {ALNUM}:{LONG}", LONG),
        ("Authorization: DeepL-Auth-Key " + UUID + ":fx", UUID),
        (f"Authorization: AWS4-HMAC-SHA256 Credential=x/y, SignedHeaders=host, Signature={HEX}", HEX),
        (f"Cookie: theme=dark; session={LONG}; lang=en", LONG),
        ("echo 'sk_zJLtoTnroZYdHggwxMYimRzMphfZl6-" + "QZxGZdN43ecC' > x", "QZxGZdN43ecC"),
        (
            "https://x.logic.azure.com/invoke?sv=1.0&sig=IK7LzyksdhPlm-ykCOW8OrINAcYEkp-" + "j5Gp2R6Yo6us",
            "j5Gp2R6Yo6us",
        ),
    ],
)
def test_the_secret_itself_is_absent_after_redaction(text: str, secret: str) -> None:
    """The scheme of a header may stay, no part of the credential does."""
    assert find_secret(text) is not None
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "export SLACK_BOT_TOKEN=xoxb-not-a-real-token",
        "STRIPE_KEY=sk_test_fake_key_for_ci npm test",
        "docker run -e POSTGRES_PASSWORD=mysecretpassword -d postgres",
        "MINIO_ACCESS_KEY=minio MINIO_SECRET_KEY=minio123",
        "aws s3api head-object --bucket acme-api --key data/2a/12d1ef92807387b080527e04c06f18e1.parquet",
        "redis-cli get token:550e8400-e29b-41d4-a716-446655440000",
        "gpg --keyserver keyserver.ubuntu.com --recv-key 689942707096B410",
        "aws dynamodb list-tables --starting-token abCDeFGhiJKlmnOPqrSTuvwxYZ1aBCdEFghijK7LM51nOpq",
        "cloudpickle-2.1.0.dist-info/LICENSE,sha256=MCnqNBc-n9wjOtMV3GsQC9HqcfUpscGvl2ZKJy_cVfU,1754",
        "stripe events resend evt_1NG8Du2eZvKYlo2CUI79vXWy",
        "curl localhost:4242/checkout?session_id=cs_test_a1YS1URlnyQCN5fUUduORoQ7Pw41PJqDWkIVQCpJPqkfIhd6tVY8XB1OLY",
        "price_1MXYSdpBHbZt8lUA4PoQbTR6",
        "toolu_01nhqXA6EfPu2MuQLKmkjH09",
        "chatcmpl-SXrZsWkG7fhDQK3AbqR0ZHmQa8Brc",
        "asst_vBYKUB0XJb8g1mulZlBCPgha",
        "nonce-oNRHvMyIMqBtu41Go9mI1g==",
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "01J8Z7Q4KX3M5N6P7R8S9T0VWX",
        "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPb3x",
        "_ZN4core3fmt9Formatter16parser_index17h9e870c539084fa7aE",
    ],
)
def test_test_values_and_public_ids_are_no_credentials(text: str) -> None:
    """Values that say of themselves that they are none, entries, ids and digests are not refused."""
    assert find_secret(text) is None


def test_ordinary_hints_are_not_touched_by_redaction() -> None:
    """Redaction leaves text without credentials as it is, to the byte."""
    assert [redact(text) for text in BENIGN] == list(BENIGN)


def test_every_hostile_sample_is_caught() -> None:
    """No credential of the corpus passes."""
    assert len(set(HOSTILE)) >= 60
    assert [text for text in HOSTILE if find_secret(text) is None] == []


def test_nothing_is_left_to_find_after_redaction() -> None:
    """What redaction puts in a credential's place is no credential, and a second pass changes nothing."""
    once = [redact(text) for text in HOSTILE]
    assert [text for text in once if find_secret(text)] == []
    assert [redact(text) for text in once] == once


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("AKIA" + "IOSFODNN7EXAMPLE", "aws-access-key"),
        (AWS_SECRET, "aws-secret-key"),
        ("gh" + "p_" + LONG[:36], "github-token"),
        ("xox" + "b-1234567890-" + ALNUM, "slack-token"),
        ("sk_" + "live_" + ALNUM, "stripe-key"),
        ("AI" + "zaSy" + LONG[:33], "google-key"),
        ("sk-" + "proj-" + LONG, "openai-key"),
        ("sk-" + "ant-api03-" + LONG, "anthropic-key"),
        (pem("RSA "), "private-key"),
        (jwt({"alg": "HS256"}), "jwt"),
        ("redis://:" + "hunter22@cache", "url-credentials"),
        ("password=" + "hunter2", "password"),
        ("API_KEY=" + ALNUM, "key"),
        (HEX, "bare-hex"),
        (ALNUM, "high-entropy"),
    ],
)
def test_the_kind_names_what_was_found(text: str, kind: str) -> None:
    """The kind tells a person which credential it is, the most particular one when several fit."""
    assert find_secret(text) == kind


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("psql postgres://app:" + "s3cr3tpw@db/app", "psql postgres://app:[REDACTED:url-credentials]@db/app"),
        ("git clone https://me:" + "p@ss@host/r.git", "git clone https://me:[REDACTED:url-credentials]@host/r.git"),
        ("export PASSWORD=" + "hunter2; make", "export PASSWORD=[REDACTED:password]; make"),
        ('{"password": "' + 'open sesame 42", "a": 1}', '{"password": "[REDACTED:password]", "a": 1}'),
        ("x --token " + ALNUM + " y", "x --token [REDACTED:key] y"),
        ("a gh" + "p_" + LONG[:36] + " b gh" + "o_" + LONG[:36], "a [REDACTED:github-token] b [REDACTED:github-token]"),
        ("TOKEN=gh" + "p_" + LONG[:36], "TOKEN=[REDACTED:github-token]"),
        (pem("RSA ") + "after", "[REDACTED:private-key]\nafter"),
        (f"  {HEX}\n", "  [REDACTED:bare-hex]\n"),
        ("token: a password: " + "hunter22", "token: a password: [REDACTED:password]"),
        ("secret=password=" + "hunter22", "secret=password=[REDACTED:password]"),
        ("mysql -uroot -p" + "S3cretPass99 db", "mysql -uroot -p[REDACTED:password] db"),
        ("mysql -p'" + "S3cret Pass99' db", "mysql -p'[REDACTED:password]' db"),
        ("docker login -u me -p " + "MyS3cretPw99 ghcr.io", "docker login -u me -p [REDACTED:password] ghcr.io"),
        ("curl -ume:" + "S3cretPw99 https://x", "curl -ume:[REDACTED:login] https://x"),
        ("curl -u 'me:" + "Hunter 2222 foo' x", "curl -u 'me:[REDACTED:login]' x"),
        ("curl -X POST \\\n -u me:monkey x", "curl -X POST \\\n -u me:[REDACTED:login] x"),
        ("docker login -u me \\\n -p " + "Hunter2222 reg", "docker login -u me \\\n -p [REDACTED:password] reg"),
        ("DB_PASSWORD=letmein make", "DB_PASSWORD=[REDACTED:password] make"),
        (
            "curl https://api.telegram.org/bot110201543:" + "AA" + LONG[:33] + "/getMe",
            "curl https://api.telegram.org/bot[REDACTED:telegram-token]/getMe",
        ),
    ],
)
def test_redaction_takes_the_credential_and_leaves_the_rest(text: str, redacted: str) -> None:
    """Only the credential goes, so that a recorded command can still be read."""
    assert redact(text) == redacted


@pytest.mark.parametrize("size", [63, 64, 65, 300, 5_000])
def test_a_long_credential_goes_whole(size: int) -> None:
    """However long a value is, no tail of it stays behind."""
    value = (LONG * 200)[:size]
    assert redact(f"--token {value} end") == "--token [REDACTED:key] end"
    assert redact(f'password: "{value}" end') == 'password: "[REDACTED:password]" end'
    assert redact(f"Authorization: Bearer {value} end") == "Authorization: Bearer [REDACTED:authorization-header] end"
    assert redact("gh" + f"p_{value} end") == "[REDACTED:github-token] end"


def test_a_token_is_found_alone_and_in_text() -> None:
    """Every published format is refused as a hint and redacted from a record, in each place where tokens turn up."""
    missed = []
    for kind, template in guard_samples.kinds():
        source = random.Random(kind)
        for place in guard_samples.PLACES:
            token = guard_samples.make(template, source)
            text = place.format(token)
            if find_secret(text) is None or token in redact(text):
                missed.append((kind, text))
    assert missed == []


def test_a_credential_without_a_format_is_found_by_its_place() -> None:
    """Headers, cookies, variables, sentences, files and commands show that a value is a credential."""
    texts = [guard_samples.make(template, random.Random(template)) for template in guard_samples.contexts()]
    assert [text for text in texts if find_secret(text) is None or redact(text) == text] == []


@pytest.mark.parametrize("half", [secret_corpus.OPEN, secret_corpus.HELD_OUT])
def test_a_secret_of_any_vendor_is_found_by_the_name_before_it(half: str) -> None:
    """In JSON, YAML, shell lines, headers, URLs, logs and code the name says that a random value is a secret: 95 of a
    hundred are found, and are not in what a hook writes; 97 of a hundred with nothing around them."""
    alone, in_text = list(secret_corpus.alone(half)), list(secret_corpus.in_text(half))[::4]
    readable = [
        each
        for number, each in enumerate(in_text)
        if secret_corpus.is_readable(each.secret, secret_corpus.on_disk(each, number))
    ]
    assert sum(find_secret(each.text) is None for each in alone) <= 0.03 * len(alone)
    assert sum(find_secret(each.text) is None for each in in_text) <= 0.05 * len(in_text)
    assert len(readable) <= 0.05 * len(in_text)


@pytest.mark.parametrize("half", [secret_corpus.OPEN, secret_corpus.HELD_OUT])
def test_of_a_thousand_everyday_texts_at_most_one_is_refused(half: str) -> None:
    """Commands of agents, digests, ids, paths, code and sentences about keys are no secrets."""
    texts = secret_corpus.everyday(half) + secret_corpus.agents_commands(half)
    assert sum(find_secret(text) is not None for text in texts) <= len(texts) // 1000


@pytest.mark.parametrize("before", ["\\n", "\\t", "\\u003d", "q%3D", "a%20", "\x1b[32m", "\x1b[1;31m"], ids=ascii)
def test_a_token_behind_an_escape_is_found(before: str) -> None:
    """The last letter of an escape of JSON, of a URL or of a terminal is no part of the token behind it."""
    for token in ("AKIA" + "X7Q2M9K4B8N1C5V0", "gh" + "p_" + LONG[:36], "r8_" + LONG[:37]):
        text = f"a {before}{token} b"
        assert find_secret(text) is not None and token not in redact(text)


KNOWN = {
    "dynatrace": "dt0c01." + LONG[:24] + "." + LONG,
    "fly": "fo1_" + LONG[:43],
    "cloudflare-ca": "v1.0-" + HEX[:24] + "-" + (HEX * 5)[:146],
    "launchdarkly": "api-" + UUID,
    "zoho": "1000." + HEX[:32] + "." + HEX[:32],
    "mapbox": "sk.eyJ" + (ALNUM * 3)[:60] + "." + ALNUM[:22],
    "zapier": "https://hooks.zapier.com/hooks/standard/1234567/" + HEX[:32],
    "newrelic": HEX[:32] + "FFFFNRAL",
    "pulumi": "pul-" + (HEX * 2)[:40],
    "square": "EAAA" + LONG[:30],
    "figma": "figp_" + LONG[:40],
    "terraform": "Ab1Cd2Ef3Gh4Ij" + ".atlasv1." + LONG[:60],
    "aws": "A3T" + "X7Q2M9K4B8N1C5V0Z",
    "artifactory": "AKCp8" + (ALNUM * 3)[:64],
    "discord": "NkX7c0Rz4uPq9LmT2vB5yWe1" + ".G5hJ2k." + "q3W8eR5tY1uI7oP2aS9dF4gH6jK",
    "hex": HEX[:32],
    "base62": ALNUM,
}


@pytest.mark.parametrize("secret", KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize(
    "place",
    [
        'acmeKey: "{}"',
        "ACME_API_TOKEN={}",
        '{{"acme": {{"api_token": "{}"}}}}',
        "acme_secret: {}",
        "X-Acme-Token: {}",
        "https://api.acme.dev/v1?api_key={}&v=2",
        'os.Setenv("ACME_TOKEN", "{}")',
        "<acmeToken>{}</acmeToken>",
        "- name: ACME_TOKEN\n  value: {}",
    ],
)
def test_name_then_key_then_value(place: str, secret: str) -> None:
    """A vendor's name with a key word, then the value, whatever is between them."""
    text = place.format(secret)
    assert find_secret(text) is not None
    assert secret[-12:] not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "alias pwd='pwd -P && ls2'",
        "alias pwd='print -P %~'",
        "tool --password PATH",
        "tool --password DOMAIN/USER",
        "secretsdump.py -no-pass DOMAIN/USER@HOST",
        "smbclient.py -no-pass ACME/guest@fs12.acme.local",
        "aws secretsmanager describe-secret --secret-id arn:aws:secretsmanager:eu-west-1:1234:secret:app/db-Ab1dEf",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "git config user.signingkey 4AEE18F83AFDEB23",
        "HEROKU_SLUG_COMMIT=9fceb02d0ae598e95dc970b74767f19372d61af8",
        'let api_key = std::env::var("ACME_API_KEY")?;',
    ],
)
def test_an_alias_a_metavariable_and_an_option_without_a_value_are_no_secrets(text: str) -> None:
    """Nor are the ids of keys and the names of secrets; records keep them too."""
    assert find_secret(text) is None and redact(text) == text


def test_everyday_commands_raise_no_alarm() -> None:
    """Commands, configuration and sentences with ids, digests, variables, masks and defaults are no credentials."""
    texts = guard_samples.everyday(2, random.Random(8))
    assert len(texts) >= 800
    assert [(find_secret(text), text) for text in texts if find_secret(text) is not None] == []


@pytest.mark.parametrize("text", NOT_TOKENS)
def test_what_only_starts_like_a_token_is_none(text: str) -> None:
    """Variables, masks, file names and identifiers are not tokens."""
    assert list(find_tokens(text)) == []


def test_a_token_is_redacted_whole_and_its_neighbours_stay() -> None:
    """The text around a token is kept to the byte."""
    token = "gl" + "pat-" + ALNUM[:20]
    assert redact(f"git clone https://ci:{token}@gitlab.com/a/b.git") == (
        "git clone https://ci:[REDACTED:gitlab-token]@gitlab.com/a/b.git"
    )
    assert redact(f"Use {token}.") == "Use [REDACTED:gitlab-token]."
    npm = "np" + f"m_{LONG[:36]}"
    assert redact(f"{npm}-backup.txt {npm}_2") == "[REDACTED:npm-token]-backup.txt [REDACTED:npm-token]_2"


@pytest.mark.parametrize("prefix", ["np" + "m_", "jin" + "a_", "gs" + "k_", "h" + "f_", "gh" + "p_", "pplx" + "-"])
@pytest.mark.parametrize("rest", ["-nKwqUddH2zy1", "_4-SMhtn-0x4JkXAH", "-EzU3ZOh_"])
def test_a_token_with_more_characters_than_its_format_is_redacted_whole(prefix: str, rest: str) -> None:
    """Vendors change their alphabets: no readable tail is left behind a dash or an underscore."""
    token = prefix + LONG[:44] + rest
    for text in (token, f"export KEY={token}", f'{{"key": "{token}", "a": 1}}', f"curl 'https://x/?key={token}&a=1'"):
        assert rest.strip("-_") not in redact(text)


@pytest.mark.parametrize(
    "text", ["6ccb9691-0bf1-e8a2-468e7ca9124d-b3f6-f122", "5f2b-9c41d7e08a36-4b1f90c2-7de3a8b15c64"]
)
def test_hex_in_groups_that_are_no_uuid_is_a_key(text: str) -> None:
    """Where it stands alone; a UUID may be anything."""
    assert find_secret(text) is not None and find_secret(UUID) is None


def test_a_private_key_without_an_end_goes_to_the_end() -> None:
    """A key that was cut off is redacted as far as the text goes."""
    assert redact("x\n" + pem("EC ")[:50]) == "x\n[REDACTED:private-key]"


def test_hex_and_entropy_count_for_whole_values_only() -> None:
    """A digest-like word inside a text is most often a commit; alone it is most often a key."""
    assert find_secret(SHA1) == "bare-hex"
    assert find_secret(f"git checkout {SHA1}") is None
    assert find_secret(f"see {ALNUM} there") is None
    assert redact(f"see {SHA1} there") == f"see {SHA1} there"


@pytest.mark.parametrize("header", ["not json", "[]", '{"typ": "JWT"}', '"alg"', "{" * 20, "\xff\xfe"])
def test_a_jwt_needs_a_header_that_names_an_algorithm(header: str) -> None:
    """Three dotted words are no JWT unless the first decodes to an object with `alg`."""
    encoded = base64.urlsafe_b64encode(header.encode("latin-1")).decode().rstrip("=")
    assert find_secret(f"see eyJ.{encoded}.eyJzdWIiOiIxIn0.c2ln") is None


def test_a_jwt_is_found_behind_an_escaped_newline() -> None:
    """In JSON text a letter of the escape may stand right before the token."""
    assert find_secret("log: \\n" + jwt({"alg": "HS256", "typ": "JWT"})) == "jwt"


REPEATED = (
    *("eyJ", "eyJ.", "a" * 14 + ".", "-----BEGIN PRIVATE " + "KEY----", "-----BEGIN " + "A" * 39, "-----END "),
    *(
        "token=",
        "token:",
        "token ",
        'token="',
        "token='token=\"",
        "--token ",
        "token=${",
        "token:a.b.c_d-",
        "token=a.a.a.a",
    ),
    *("password=$", "password= ", "pwd:pwd", "passphrase: '", "secret_access_key", "secret_access_key:", "api_key = "),
    *(
        "bearer ",
        "authorization: ",
        "authorization=basic ",
        "://",
        "://a:",
        "://:::",
        "://a:$b@",
        " -u a:",
        "--user a:$",
    ),
    *(
        "AKIA",
        "ghp_",
        "github_pat_",
        "sk-",
        "sk-proj-",
        "xoxb-",
        "hooks.slack.com/services/",
        "AIza",
        "SG." + "a" * 30 + ".",
    ),
    *(
        "mysql ",
        "mysql -p",
        "mysql -p$",
        "mysql a b c -pab ",
        "docker login ",
        "docker login -p a ",
        "az acr login ",
        "sshpass -p ",
    ),
    *(
        "mongo -p ",
        "redis-cli x ",
        "redis-cli -a ",
        "ldapx -w ",
        "zip -P ",
        "7z ",
        "curl -u a:",
        " -a b:c1d2e3f4 ",
        " -u b:letmein ",
    ),
    *("http -a b:letmein ", "mysql \\\n", "mysql 'a;b' ", "mysql 'a ", 'mysql "', "docker -a b ", "docker login \\\n"),
    *("curl -sSLu 'a:$", "curl 'a;' -u b:c"),
    *(
        " -uuuuuuuu",
        "mysqladmin a ",
        "mysqladmin password ",
        "-passin pass:$",
        "identified by '$",
        "with password '",
        "\\\n",
    ),
    *("config set token ", "config set password letmein ", "password=letmein ", "password=abc ", "secret='a b' "),
    *(
        "MTA1MjY0NjM2NjA1NjQ2MjM0.",
        "MTA1MjY0NjM2NjA1NjQ2MjM0.abcdef.",
        "1234567890:AA",
        "vault s.",
        "vault s.a1",
        "/webhooks/",
    ),
    *("Authorization: a ", "authorization: a b, c=d, ", "cookie: a=b", "cookie: a=b; ", "curl -b a=", "token is "),
    *("machine a login b password ", "echo a | sudo -S ", "echo root:a | ", "use password ", "hunter22 as the "),
    *("<password>aaaaaaa", 'key="apikey" value="', "net user a ", "smbclient -U a%", "gh secret set a --body $"),
    *(
        "PuTTY-User-Key-File-2:",
        "x:5432:a:b:",
        "acme_live_" + "aB3" * 14 + "_",
        "aB3-" * 8,
        "sk-aB3-",
        "_pat=",
        "key=.*",
        "key_a_b_c",
        "key_a-b_c=aB3dE5fG7hJ9kL2mN4",
        "token string ",
        "token: a.b<c> ",
        "token (staging) ",
        'token", ',
        'token", "value": ',
        "token>\n ",
        "token: |\n ",
        'token("',
        'token=["',
        "token \\\n",
        "token" + " " * 24,
        "key.key.key",
        'acme: {"key": ',
        "acme\n  key: ",
        "token %22",
        "token&quot;",
        "--value aB3dE5fG7hJ9kL2mN4 ",
        "echo aB3dE5fG7hJ9kL2mN4 | ",
        "curl -u aB3dE5fG7hJ9kL2mN4oP:",
        "https://aB3dE5fG7hJ9kL2mN4:",
        "alias pwd",
        "acme key to ",
        "s.aB3dE5fG7hJ9kL2mN4oP6qR8",
        "1000." + "0a" * 16 + ".",
        "NkX7c0Rz4uPq9LmT2vB5yWe1.G5hJ2k.",
    ),
    *("a", "aA1", " ", '"', "\\", "-", "\0", "\u0130", "é", "0123456789abcdef", "://a:" + "b" * 200),
)


def test_hostile_text_costs_no_more_than_ordinary_text() -> None:
    """No input of the largest size takes many times what ordinary text of that size takes: nothing backtracks."""
    ordinary = _fill(
        "docker compose up api  # token budget, secret name, password prompt, key=on, https://host/x -u me\n"
    )
    base = min(_seconds(ordinary) for _ in range(5))
    assert [unit for unit in REPEATED if not _takes_at_most(12 * base, _fill(unit))] == []


GROWING = (
    "token:",
    "token string ",
    'token", "value": ',
    'acme: {"key": ',
    "eyJ",
    "-----BEGIN PRIVATE " + "KEY-----",
    "://a:",
    'token="',
    "password=$",
    "mysql ",
    "curl -u a:",
    "curl -u 'a:$",
)


@pytest.mark.parametrize("unit", GROWING)
def test_cost_grows_with_the_text_and_no_faster(unit: str) -> None:
    """Sixteen times the text takes about sixteen times as long; a square law would show as 256."""
    small = min(_seconds(_fill(unit)) for _ in range(5))
    assert _takes_at_most(small * 64 + 0.001, _fill(unit, 16))


def _fill(unit: str, times: int = 1) -> str:
    size = limits.MAX_VALUE_BYTES * times
    return (unit * (size // len(unit) + 1))[:size]


def _takes_at_most(seconds: float, text: str) -> bool:
    """In the best of some rounds: a busy machine can stretch one of them, hardly all."""
    return any(_seconds(text) <= seconds for _ in range(5))


def _seconds(text: str) -> float:
    start = time.thread_time()
    redact(text)
    return time.thread_time() - start


def test_importing_compiles_nothing_and_loads_no_heavy_module() -> None:
    """A hook imports this on every event: patterns wait for their first use, and only small modules are loaded."""
    heavy = "asyncio|dataclasses|http|inspect|logging|pathlib|re2|shutil|subprocess|tempfile|typing|urllib"
    program = (
        "import sys, re; calls = []; compile = re.compile\n"
        "re.compile = lambda *given: calls.append(given) or compile(*given)\n"
        f"import nudge.security.secrets; print(len(calls), sorted(set(sys.modules) & set('{heavy}'.split('|'))))"
    )
    root = Path(limits.__file__).parents[2]
    ran = subprocess.run([sys.executable, "-S", "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert ran.stdout.split(maxsplit=1) == ["0", "[]\n"]
