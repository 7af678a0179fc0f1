"""Credentials as they turn up in commands, files and logs. All invented, and joined from pieces so that no scanner
alarms."""

from __future__ import annotations

import base64
import json

ALNUM = "q7W3k9Z1m4X8c2V6b5N0p3L7"
LONG = ALNUM * 2
HEX = "8f14e45fceea167a5a36dedd4bea2543"


def jwt(header: dict[str, str], payload: str = "eyJzdWIiOiIxIn0", signature: str = "c2lnbmF0dXJl") -> str:
    return ".".join((base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("="), payload, signature))


def pem(kind: str) -> str:
    return f"-----BEGIN {kind}" + "PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\n" + f"-----END {kind}" + "PRIVATE KEY-----\n"


AWS_SECRET = "wJalrXUtnFEMI" + "/K7MDENG/bPxRfiCYEXAMPLEKEY"

HOSTILE = (
    # Amazon
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "QWERTYUIOPASDFGH",
    "aws configure set aws_access_key_id AKIA" + "Z7Q3XK2M5N8P1R4T",
    "AWS_SECRET_ACCESS_KEY=" + AWS_SECRET,
    "aws_secret_access_key = " + AWS_SECRET,
    "aws configure set aws_secret_access_key " + AWS_SECRET,
    AWS_SECRET,
    f"'{AWS_SECRET}'",
    "AKIA" + "Z7Q3XK2M5N8P1R4T:" + AWS_SECRET,
    # GitHub and GitLab
    *(f"gh{letter}_" + LONG[:36] for letter in "pousr"),
    "github_" + "pat_" + LONG[:22] + "_" + LONG,
    "git remote set-url origin https://gh" + f"p_{LONG[:36]}@github.com/a/b",
    "gh auth login --with-token <<< gh" + f"o_{LONG[:36]}",
    "gl" + "pat-" + ALNUM[:20],
    # Slack, Stripe, Google, OpenAI, Anthropic, others
    "xox" + "b-1234567890-1234567890123-" + ALNUM,
    "xox" + "p-1234567890-" + ALNUM,
    "SLACK=xapp" + "-1-A0123456789-1234567890123-" + HEX,
    "https://hooks.slack" + ".com/services/T0123ABCD/B0123ABCD/" + ALNUM,
    "sk_" + "live_" + ALNUM,
    "rk_" + "live_" + ALNUM,
    "whsec" + "_" + ALNUM + ALNUM[:8],
    "AI" + "zaSy" + LONG[:33],
    "curl 'https://maps.example.com/api?key=AI" + "zaSy" + LONG[:33] + "'",
    "sk-" + LONG,
    "sk-" + "proj-" + LONG,
    "OPENAI=sk-" + "svcacct-" + LONG,
    "sk-" + "ant-api03-" + LONG + "-AA",
    "export ANTHROPIC_API_KEY=sk-" + "ant-" + LONG,
    "npm" + "_" + LONG[:36],
    "hf" + "_" + LONG[:34],
    "SG" + "." + ALNUM[:22] + "." + LONG[:43],
    # Keys and tokens by shape
    pem("RSA "),
    pem(""),
    pem("EC "),
    pem("OPENSSH "),
    "key: |\n  " + pem("ENCRYPTED "),
    "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nlQOYBF\n",
    jwt({"alg": "HS256", "typ": "JWT"}),
    jwt({"typ": "JWT", "alg": "RS256", "kid": "1"}),
    jwt({"alg": "none"}, signature=""),
    "curl -b session=" + jwt({"alg": "ES256"}) + " localhost",
    # URLs
    "postgres://app:" + "s3cr3tpw@db.internal:5432/app",
    "postgresql+asyncpg://app:" + "Tr0ub4dor&3@db/app",
    "mongodb+srv://admin:" + "hunter2@cluster0.ab1cd.mongodb.net",
    "redis://:" + "p4ssw0rd@cache:6379/0",
    "https://deploy:" + "letmein99@git.example.com/a.git",
    "git clone https://oauth2:" + ALNUM + "@gitlab.example.com/a/b.git",
    "DATABASE_URL=mysql://root:" + "toor@127.0.0.1/app rails s",
    "amqp://user:" + "p%40ss@mq:5672/vhost",
    # Assignments, flags and headers
    "password=" + "hunter2",
    "DB_PASSWORD='" + "S3cure-Pass!'",
    "PGPASSWORD=" + "correcthorsebatterystaple psql -h db",
    '{"user": "me", "password": "' + 'open sesame 42"}',
    '{\\"password\\": \\"' + 'hunter22\\"}',
    "passwd: " + "Winter2024!",
    "ansible_become_pass: " + "Zx81spectrum",
    "Server=tcp:db;User ID=sa;Pwd=" + "Str0ng!Pass;Encrypt=true",
    "mysqldump --password=" + "s3cr3t99 app",
    "mysql --password " + "s3cr3t99 app",
    'API_KEY: "' + ALNUM + '"',
    "apiKey=" + HEX,
    "x-api-key: " + HEX,
    "client_secret=" + ALNUM,
    "SECRET_KEY_BASE=" + HEX * 2,
    "DJANGO_SECRET_KEY='" + "django-insecure-9f!k2@x7'",
    "vault login --token " + ALNUM,
    "npx wrangler --api-token=" + ALNUM,
    "//registry.npmjs.org/:_authToken=" + HEX,
    "AccountName=acme;AccountKey=" + LONG + "==;",
    "curl -H 'Authorization: Bearer " + ALNUM + "' https://api.example.com",
    'curl -H "Authorization: Basic ' + 'dXNlcjpwYXNzd29yZA==" x',
    '{"headers": {"Authorization": "token ' + HEX + '"}}',
    "curl -u admin:" + "s3cr3tpw https://jenkins.example.com",
    "curl --user 'me@example.com:" + "hunter22' https://jira.example.com",
    # Options that only some programs take a password with
    "mysql -uroot -p" + "S3cretPass99 db",
    "docker compose exec db mysqldump -h db -p'" + "S3cret Pass99' app",
    "sshpass -p " + "Hunter2222 ssh me@host uptime",
    "docker login -u me -p " + "MyS3cretPw99",
    "redis-cli -a " + "MyS3cretPw99 ping",
    "mongosh -u admin -p " + "Hunter2222 app",
    "ldapsearch -x -w " + "Hunter2222 uid=me",
    "curl -ume:" + "S3cretPw99 https://x.example",
    "http -a me:" + "S3cretPw99 localhost:8080",
    "aws configure set aws_session_token FwoG" + LONG + "/+=",
    "vault login s." + "1234567890abcdefghijklmn",
    "MTA1MjY0NjM2NjA1NjQ2MjM0" + ".GxYzAb." + LONG[:38],
    "110201543:" + "AA" + LONG[:33],
    # Whole values
    HEX,
    HEX.upper() + HEX,
    HEX + HEX[:8],
    f'"{HEX}"',
    LONG,
    "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg==",
    "dGhpc19pc19hX3ZlcnlfbG9uZ19zZWNyZXQ",
    "k3J9-xQ2_vT7wLpR5nB8sYdF4hG6mZc1",
)
