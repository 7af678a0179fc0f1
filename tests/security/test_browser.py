"""A page in the user's browser, and any other program that can reach loopback: what each may do is a matter of five
rules."""

from __future__ import annotations

import hmac
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from nudge import __version__
from nudge.interfaces import http
from tests.security.served import TOKEN, Reply, Served, rpc, served

PORT = "@"  # stands for the port the server got
OUR_HOSTS = ["127.0.0.1", "localhost:@", "[::1]:@", "127.0.0.1:@"]
ALSO_OURS = ["localhost", "[::1]", "LOCALHOST:1", "127.1.2.3:80"]
OTHER_HOSTS = ["evil.example", "evil.example:@", "127.0.0.1.evil.example", "0.0.0.0:@"]
ODD_HOSTS = [
    "localhost.evil.example:@",
    "[::]:@",
    "localhost:@@evil.example",
    "127.0.0.1:123456",
    "::1",
    "",
    "user@localhost",
    "127.1",
    "localho\u017ft",
    "127.0.0.\uff11",
]
OUR_ORIGINS: list[str | None] = [None, "http://localhost:@"]
ALSO_OUR_ORIGINS = ["http://127.0.0.1:3000", "https://localhost", "http://[::1]:@"]
OTHER_ORIGINS: list[str | None] = ["null", "http://evil.example", "https://localhost.evil.example"]
ODD_ORIGINS: list[str | None] = [
    "",
    "http://127.0.0.1.evil.example:@",
    "http://localhost:@.evil.example",
    "file://",
    "chrome-extension://abcdefgh",
    "http://0.0.0.0:@",
    "localhost",
    "http://localhost@evil.example",
    "http://localhost/",
    "ftp://localhost",
]
METHODS = ["GET", "POST", "OPTIONS", "PUT", "DELETE", "HEAD", "TRACE"]
JSON_TYPES: list[str | None] = ["application/json", "application/json; charset=utf-8"]
OTHER_TYPES: list[str | None] = ["text/plain", "application/x-www-form-urlencoded", None]
ODD_TYPES = ["multipart/form-data; boundary=x", "application/json-patch+json", "text/plain; application/json", ""]
RIGHT = f"Bearer {TOKEN}"
WRONG = [None, "Bearer " + "0" * 64]
ODD_TOKENS = [
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}x",
    f"Basic {TOKEN}",
    TOKEN,
    "Bearer",
    "Bearer ",
    f"Bearer {TOKEN.upper()}",
]
PATHS = ["/", "/mcp", "/health", "/api/v1/hints/c/k", "/nowhere"]
SERVED = {
    "/": {"POST", "GET", "HEAD"},
    "/mcp": {"POST"},
    "/health": {"GET", "HEAD"},
    "/api/v1/hints/c/k": {"PUT", "GET", "DELETE", "HEAD"},
}
_AT_ONCE = 25  # requests sent ahead of their answers


@dataclass(frozen=True)
class Attempt:
    host: str | None
    origin: str | None
    method: str
    kind: str | None
    token: str | None
    path: str

    def request(self, port: int) -> bytes:
        body = (
            b'{"value":"x"}'
            if self.path.startswith("/api")
            else rpc("nudge.set_hint", {"component": "c", "key": "k", "value": "x"})
        )
        sent = {"Host": self.host, "Origin": self.origin, "Content-Type": self.kind, "Authorization": self.token}
        lines = [f"{name}: {value.replace(PORT, str(port), 1)}" for name, value in sent.items() if value is not None]
        if self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join([f"{self.method} {self.path} HTTP/1.1", *lines]) + "\r\n\r\n"
        return head.encode() + (body if self.method in ("POST", "PUT", "PATCH") else b"")

    def expected(self) -> int:
        """The rules, in their order: whose name, whose page, whose token, what there is, in which form."""
        if self.host in OTHER_HOSTS + ODD_HOSTS:
            return 421
        if self.origin in OTHER_ORIGINS + ODD_ORIGINS:
            return 403
        is_page = self.path == "/" and self.method in ("GET", "HEAD")
        if self.path != "/health" and not is_page and self.token != RIGHT:
            return 401
        if self.path not in SERVED:
            return 404
        if self.method not in SERVED[self.path]:
            return 405
        if self.method in ("POST", "PUT") and self.kind not in JSON_TYPES:
            return 415
        return 200


def matrix() -> Iterator[Attempt]:
    """The whole product of what a page can choose; then every odd value of each, with the rest as it should be."""
    product = itertools.product(
        OUR_HOSTS + OTHER_HOSTS,
        OUR_ORIGINS + OTHER_ORIGINS,
        METHODS,
        JSON_TYPES + OTHER_TYPES,
        [*WRONG, RIGHT],
        PATHS[:1],
    )
    yield from itertools.starmap(Attempt, product)
    good = Attempt("localhost", None, "POST", "application/json", RIGHT, "/")
    odd: dict[str, Sequence[str | None]] = {
        "host": ALSO_OURS + ODD_HOSTS,
        "origin": [*ALSO_OUR_ORIGINS, *ODD_ORIGINS],
        "kind": ODD_TYPES,
        "token": ODD_TOKENS,
    }
    for (field, values), path, method in itertools.product(odd.items(), PATHS, METHODS):
        yield from (replace(good, path=path, method=method, **{field: value}) for value in values)


def replies(server: Served, attempts: list[Attempt]) -> Iterator[tuple[Attempt, int, Reply]]:
    """Many on one connection, which has a few seconds to show the token. A hint that is not there is an answer to a
    call that was made."""
    for start in range(0, len(attempts), _AT_ONCE):
        group = attempts[start : start + _AT_ONCE]
        with server.tcp() as link:
            link.send(b"".join(attempt.request(server.port) for attempt in group))
            for attempt in group:
                reply = link.reply(head_only=attempt.method == "HEAD")
                made = reply.status == 404 and reply.headers.get("content-type") == "application/json"
                yield attempt, 200 if made else reply.status, reply


def check(server: Served, attempts: list[Attempt]) -> Counter[int]:
    seen: Counter[int] = Counter()
    for attempt, status, reply in replies(server, attempts):
        assert status == attempt.expected(), (attempt, reply)
        allowed = {name for name in reply.headers.get("allow", "").split(", ") if name}
        assert allowed == (SERVED[attempt.path] if status == 405 else set())
        assert reply.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
        assert not [name for name in reply.headers if name.startswith("access-control")], attempt
        seen[status] += 1
    return seen


def test_the_matrix(server: Served) -> None:
    """Host x Origin x method x content type x token: each attempt gets what the rules say, no answer ever has a CORS
    header,
    and nothing changes but by a request that passed all of them."""
    refused = [attempt for attempt in matrix() if attempt.expected() != 200]
    before = server.state()
    seen = check(server, refused)
    assert server.state() == before
    seen += check(server, [attempt for attempt in matrix() if attempt.expected() == 200])
    assert set(seen) == {200, 401, 403, 404, 405, 415, 421}
    print(f"\n{seen.total()} attempts: {dict(sorted(seen.items()))}")


def test_a_request_without_a_host(server: Served) -> None:
    """HTTP/1.1 needs a Host; HTTP/1.0 has none, and then nobody knows by which name we were called."""
    with server.tcp() as link:
        assert link.ask(b"GET /health HTTP/1.1\r\n\r\n").status == 400
    with server.tcp() as link:
        assert link.ask(b"GET /health HTTP/1.0\r\n\r\n").status == 421
    with server.tcp() as link:
        assert link.ask(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n").status == 400


def test_a_preflight_is_no_invitation(server: Served) -> None:
    """What a browser asks before it lets a page send JSON is answered with a refusal: so it never sends it."""
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
        "Access-Control-Request-Private-Network": "true",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in asked.items())
    with server.tcp() as link:
        for origin in ("http://evil.example", f"http://localhost:{server.port}", "null"):
            reply = link.ask(f"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n{lines}\r\n".encode())
            assert reply.status in (401, 403)
            assert not any(name.startswith("access-control") for name in reply.headers)


def test_without_auth_pages_are_still_kept_out() -> None:
    """--no-auth opens the server to programs, not to pages: host, origin and content type are checked as ever."""
    with served(auth=False) as server:
        before = server.state()
        refused = [
            attempt for attempt in matrix() if attempt.expected() in (403, 415, 421) and attempt.method == "POST"
        ]
        for attempt, status, _ in replies(server, [replace(attempt, token=None) for attempt in refused]):
            assert status == replace(attempt, token=RIGHT).expected(), attempt
        assert server.state() == before
        honest = Attempt("localhost", None, "POST", "application/json", None, "/")
        assert [status for _, status, _ in replies(server, [honest])] == [200]


def test_health_says_who_and_nothing_else(server: Served) -> None:
    """The one page without a token: that it is up, name, version, role; no header tells more."""
    with server.tcp() as link:
        reply = link.ask(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert reply.json == {"status": "healthy", "name": "nudge", "version": __version__, "role": "PRIMARY"}
    assert set(reply.headers) == {"content-type", "content-length", "date", "server"}
    assert reply.headers["server"] == "nudge"


class Uncompared(str):
    """A token that notices when somebody compares it character by character."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared with ==")

    def startswith(self, *_: object) -> bool:
        raise AssertionError("compared with startswith")


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a refusal takes says nothing about how much of a guess was right: every guess is compared by the
    library, as a whole."""
    compared: list[bytes] = []

    def compare_digest(shown: bytes, token: bytes) -> bool:
        compared.append(shown)
        return hmac.compare_digest(shown, token)

    monkeypatch.setattr(http, "hmac", SimpleNamespace(compare_digest=compare_digest))
    for guess in ("", "0", TOKEN[:-1], TOKEN[:-1] + "0", TOKEN):
        assert http.shows_token(f"Bearer {guess}", Uncompared(TOKEN)) == (guess == TOKEN)
    assert compared == [b"", b"0", TOKEN[:-1].encode(), TOKEN[:-1].encode() + b"0", TOKEN.encode()]


def test_tokens_that_are_no_text(server: Served) -> None:
    """Bytes beyond ASCII, none, or very many are a wrong token, not a failure."""
    with server.tcp() as link:
        for shown in (b"\xff" * 64, "\u017f".encode() * 64, b"", b"a" * 8_000, b" ", b"\x80"):
            head = (
                b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nAuthorization: Bearer "
                + shown
                + b"\r\n\r\n{}"
            )
            assert link.ask(head).status == 401
