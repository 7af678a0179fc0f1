"""The client of a language model: what it sends, and that whatever comes back ends in an answer or an error in time."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from nudge.core import limits
from nudge.core.errors import Conflict, Unavailable
from nudge.proposals.answers import words_in_answer
from nudge.proposals.language_model import LanguageModel
from nudge.proposals.questions import ask_for_words
from nudge.settings.config import Settings
from tests.unit.proposals.model_server import (
    NAME,
    SERVERS,
    ModelServer,
    Reply,
    asked,
    model_server,
    raw_server,
    recorded,
    saying,
)

QUERY = "flaky login test"
GOOD = {"terms": ["intermittent", "authentication"]}
WORDS = ["intermittent", "authentication"]


def model(url: str, **settings: Any) -> LanguageModel:
    return LanguageModel(Settings({"tier": "smart", "llm_url": url, "llm_model": NAME, **settings}))


async def words(client: LanguageModel, query: str = QUERY) -> list[str]:
    return await client.ask(ask_for_words(query), lambda content: words_in_answer(content, query))


def why(client: LanguageModel) -> str:
    """What one question that fails is answered with."""
    with pytest.raises(Unavailable) as failed:
        asyncio.run(words(client))
    return failed.value.message


def replies(*script: Reply) -> Callable[[dict[str, Any]], Reply]:
    """Each reply once, the last one for ever."""
    left = list(script)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


# What real servers say


@pytest.mark.parametrize("name", SERVERS)
def test_the_answer_of_each_server_is_read(server: ModelServer, name: str) -> None:
    """One request to chat/completions, with model, schema and bounds, and no login, cookie or compression."""
    server.answer = lambda _: saying(GOOD, name)
    assert asyncio.run(words(model(server.url))) == WORDS
    (request,), (path,), (headers,) = server.requests, server.paths, server.headers
    assert path == "/v1/chat/completions"
    assert (request["model"], request["stream"], request["temperature"]) == (NAME, False, 0)
    assert request["max_tokens"] == limits.MODEL_ANSWER_TOKENS
    assert request["response_format"]["json_schema"]["schema"]["required"] == ["terms"]
    assert headers["Accept-Encoding"] == "identity" and not {"Authorization", "Cookie"} & headers.keys()


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_refuses_a_schema_is_asked_for_json(server: ModelServer, name: str) -> None:
    """And from then on no schema is sent; what it says is checked all the same."""
    refusal = recorded(name, "schema_refused")
    server.answer = lambda request: (
        refusal if request["response_format"]["type"] == "json_schema" else saying(GOOD, name)
    )
    client = model(server.url)
    assert asyncio.run(words(client)) == WORDS == asyncio.run(words(client))
    forms = [request["response_format"]["type"] for request in server.requests]
    assert forms == ["json_schema", "json_object", "json_object"]
    assert [asked(request) for request in server.requests] == ["words"] * 3
    server.answer = lambda _: saying({"terms": "all of them"}, name)
    assert "no list of texts" in why(client)


def test_a_schema_is_sent_again_where_plain_json_is_refused_too(server: ModelServer) -> None:
    """The next question is asked with a schema: the refusal was about something else."""
    server.answer = lambda _: recorded("lm_studio", "object_refused")
    client = model(server.url)
    assert "status 400" in why(client)
    server.answer = lambda _: saying(GOOD, "lm_studio")
    assert asyncio.run(words(client)) == WORDS
    assert server.requests[-1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("name", "case", "told", "requests"),
    [
        ("ollama", "unknown_model", "no model of this name", 1),
        ("lm_studio", "unknown_model", "no model of this name", 1),
        ("llama_cpp", "loading", "still loads the model", 2),
    ],
)
def test_what_a_server_cannot_do_is_said(server: ModelServer, name: str, case: str, told: str, requests: int) -> None:
    """In words of ours; only what may pass by itself is tried again, once."""
    server.answer = lambda _: recorded(name, case)
    client = model(server.url)
    assert told in why(client) and len(server.requests) == requests
    report = client.report()
    assert report is not None and (report["state"], told in report["why"]) == ("silent", True)


def test_one_more_try_is_enough_for_what_passes(server: ModelServer) -> None:
    server.answer = replies(recorded("llama_cpp", "loading"), saying(GOOD, "llama_cpp"))
    client = model(server.url)
    assert asyncio.run(words(client)) == WORDS
    assert (client.report() or {})["state"] == "answers"


@pytest.mark.parametrize(
    "content",
    ["<think>They ask for words.</think>\n" + json.dumps(GOOD), f"```json\n{json.dumps(GOOD)}\n```", json.dumps(GOOD)],
)
def test_thoughts_and_fences_around_the_answer_are_left_out(server: ModelServer, content: str) -> None:
    server.answer = lambda _: saying(content)
    assert asyncio.run(words(model(server.url))) == WORDS


# What a broken or hostile server may say

DEEP = b"[" * 100_000 + b"]" * 100_000
HOSTILE = {
    "malformed": (Reply(b'{"choices": [{"mess'), "not JSON"),
    "not JSON": (Reply(b"<html>502</html>", headers={"Content-Type": "text/html"}), "not JSON"),
    "empty": (Reply(b""), "not JSON"),
    "deep": (Reply(DEEP[: limits.MAX_MODEL_ANSWER_BYTES]), "not JSON"),
    "a deep answer": (saying("[" * 5_000), "not JSON"),
    "twice the same key": (Reply(b'{"choices": [], "choices": [1]}'), "not JSON"),
    "a list": (Reply(b"[1, 2]"), "no chat completion"),
    "no choices": (Reply(b'{"choices": []}'), "no chat completion"),
    "content of a wrong type": (Reply(b'{"choices": [{"message": {"content": 7}}]}'), "no chat completion"),
    "content null": (Reply(b'{"choices": [{"message": {"content": null}}]}'), "no chat completion"),
    "cut by its own limit": (saying(GOOD, finish_reason="length"), "longer than it may be"),
    "prose": (saying("Sure! Here are some words: intermittent"), "not JSON"),
    "another object": (saying({"error": "no"}), "has no `terms`"),
    "wrong types": (saying({"terms": [1, {"a": 2}]}), "no list of texts"),
    "huge": (Reply(b" " * (limits.MAX_MODEL_ANSWER_BYTES + 1)), "longer than 128 KiB"),
    "a stream": (Reply(b'data: {"choices": []}\n\n', headers={"Content-Type": "text/event-stream"}), "not JSON"),
    "compressed": (Reply(gzip.compress(b" " * 10_000_000), headers={"Content-Encoding": "gzip"}), "compressed"),
    "refused": (Reply(b"{}", status=401), "wants a key"),
    "not there": (Reply(b"no", status=404), "no such address"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_an_answer_that_cannot_be_used_is_an_error(server: ModelServer, case: str) -> None:
    """It says what is wrong, in words of ours, and nothing is kept."""
    reply, told = HOSTILE[case]
    server.answer = lambda _: reply
    client = model(server.url)
    assert told in why(client)
    assert not client.expansions and client.is_ready


def test_a_redirect_is_not_followed(server: ModelServer) -> None:
    """What is in a note does not go where the answer points."""
    with model_server() as other:
        server.answer = lambda _: Reply(b"", status=307, headers={"Location": f"{other.url}/chat/completions"})
        assert "redirect" in why(model(server.url))
        assert (len(server.requests), other.paths) == (1, [])


def test_a_proxy_of_the_environment_is_not_used(server: ModelServer) -> None:
    """A variable of a shell must not send notes elsewhere."""
    with model_server() as other, mock.patch.dict(os.environ, {"http_proxy": other.url, "HTTP_PROXY": other.url}):
        server.answer = lambda _: saying(GOOD)
        assert asyncio.run(words(model(server.url))) == WORDS
        assert other.paths == []


def test_an_answer_that_is_cut_off_is_asked_for_once_more(server: ModelServer) -> None:
    cut = Reply(saying(GOOD).body[:40], is_cut=True)
    server.answer = replies(cut, saying(GOOD))
    assert asyncio.run(words(model(server.url))) == WORDS
    server.answer = lambda _: cut
    assert "connection failed" in why(model(server.url)) and len(server.requests) == 4


def test_no_server_is_an_error_at_once() -> None:
    with model_server() as closed:
        url = closed.url
    assert "cannot be reached" in why(model(url))


def test_silence_ends_in_time(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two tries of at most MODEL_TIMEOUT each."""
    monkeypatch.setattr(limits, "MODEL_TIMEOUT", 0.1)
    server.answer = lambda _: Reply(b"", is_silent=True)
    began = time.monotonic()
    assert "no answer within 0.1 s" in why(model(server.url))
    assert len(server.requests) == 2 and time.monotonic() - began < limits.CALL_TIMEOUT


def test_an_answer_that_drips_ends_in_time(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """MODEL_TIMEOUT is that of the whole answer, not of a piece."""
    monkeypatch.setattr(limits, "MODEL_TIMEOUT", 0.2)
    server.answer = lambda _: Reply(b" ", is_endless=True, pause=0.02)
    assert "no answer within 0.2 s" in why(model(server.url))


def test_an_answer_without_an_end_is_not_read_to_it(server: ModelServer) -> None:
    server.answer = lambda _: Reply(b" " * 10_000, is_endless=True)
    assert "longer than 128 KiB" in why(model(server.url)) and len(server.requests) == 1


def test_headers_without_an_end_are_refused(server: ModelServer) -> None:
    server.answer = lambda _: Reply(saying(GOOD).body, headers={"X-Long": "x" * 100_000})
    assert "connection failed" in why(model(server.url))


BAD_PROTOCOL = {
    "no status line": b"hello\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "binary": bytes(range(256)) * 8,
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "chunks of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "a chunk without an end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n{}",
    "another protocol instead": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "a status of no number": b"HTTP/1.1 OK\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("case", BAD_PROTOCOL)
def test_what_is_no_http_is_an_error(case: str) -> None:
    """Of a server that says these bytes and closes the connection."""
    with raw_server(BAD_PROTOCOL[case]) as url:
        client = model(url)
        assert why(client)
        assert not client.expansions and (client.report() or {})["state"] == "silent"


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n", b"X: y\r\n", b"x"]
)
def test_what_is_said_without_an_end_ends_in_time(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MODEL_TIMEOUT", 0.3)
    with raw_server(said, is_endless=True) as url:
        began = time.monotonic()
        assert why(model(url))
        assert time.monotonic() - began < limits.CALL_TIMEOUT


def test_an_error_does_not_repeat_what_the_server_said(server: ModelServer) -> None:
    """The body of a refusal may quote the note that was sent."""
    server.answer = lambda request: Reply(json.dumps(request).encode(), status=500)
    assert QUERY not in why(model(server.url))


# One at a time, and left alone when it fails


def test_one_question_at_a_time(server: ModelServer) -> None:
    """The others wait their turn."""
    server.answer = lambda _: saying(GOOD)

    async def ask_many() -> list[list[str]]:
        client = model(server.url)
        return await asyncio.gather(*(words(client) for _ in range(5)))

    assert asyncio.run(ask_many()) == [WORDS] * 5
    assert server.most_at_once == 1 and len(server.requests) == 5


def test_a_question_does_not_wait_for_ever_for_another_one(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MODEL_TIMEOUT", 0.5)
    monkeypatch.setattr(limits, "MODEL_WAIT", 0.05)
    server.answer = lambda _: Reply(b"", is_silent=True)

    async def ask_two() -> tuple[object, ...]:
        client = model(server.url)
        return await asyncio.gather(words(client), words(client), return_exceptions=True)

    messages = [str(error) for error in asyncio.run(ask_two())]
    assert "no answer within" in messages[0] and "busy with another question" in messages[1]


def test_a_question_that_nobody_waits_for_any_more_frees_the_model(server: ModelServer) -> None:
    server.answer = lambda _: Reply(b"", is_silent=True)

    async def give_up() -> bool:
        client = model(server.url)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(words(client), 0.1)
        return client.is_ready

    assert asyncio.run(give_up())


def test_a_model_that_fails_is_left_alone_for_a_while(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After MODEL_FAILURES in a row no request is sent until MODEL_REST is over; then one that succeeds ends it."""
    server.answer = lambda _: Reply(b"{}", status=404)
    client = model(server.url)
    for _ in range(limits.MODEL_FAILURES):
        assert client.is_ready
        why(client)
    sent = len(server.requests)
    assert not client.is_ready and "not asked again for" in why(client) and len(server.requests) == sent
    late = time.monotonic() + 10 * limits.MODEL_REST
    monkeypatch.setattr("nudge.proposals.language_model.boot_seconds", lambda: late)
    server.answer = lambda _: saying(GOOD)
    assert client.is_ready and asyncio.run(words(client)) == WORDS
    assert (client.report() or {})["state"] == "answers"


def test_questions_that_wait_are_not_sent_to_a_model_that_failed(server: ModelServer) -> None:
    """Those that waited for their turn are refused as well."""
    server.answer = lambda _: Reply(b"{}", status=404)

    async def ask_many() -> list[object]:
        client = model(server.url)
        return await asyncio.gather(*(words(client) for _ in range(8)), return_exceptions=True)

    errors = asyncio.run(ask_many())
    assert all(isinstance(error, Unavailable) for error in errors)
    assert len(server.requests) == limits.MODEL_FAILURES


# Where it may be


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1/v1", "http://models.example/v1", "http://127.0.0.1.example/v1", "http://0.0.0.0:1/v1"]
)
def test_another_machine_needs_to_be_allowed(url: str) -> None:
    """Nothing is sent there, and the reason says what would leave this machine."""
    client = model(url)
    with pytest.raises(Conflict, match=r"names another machine.*[Tt]itles and texts of notes.*llm_remote"):
        asyncio.run(words(client))
    assert not client.is_ready and (client.report() or {})["state"] == "off"
    allowed = model(url, llm_remote=True)
    assert allowed.is_ready and allowed.is_remote
    assert "titles and texts of notes" in (allowed.report() or {})["sends"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1"])
def test_this_machine_needs_no_permission(url: str) -> None:
    assert model(url).is_ready and model(url).sends is None


def test_localhost_is_not_looked_up(server: ModelServer) -> None:
    """A resolver could point it elsewhere."""
    server.answer = lambda _: saying(GOOD)
    with mock.patch("socket.getaddrinfo", side_effect=AssertionError("looked up")):
        assert asyncio.run(words(model(server.url.replace("127.0.0.1", "localhost")))) == WORDS


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "no language model is used"),
        ({"tier": "semantic"}, "no language model is used"),
        ({"tier": "smart"}, "llm_url is not set"),
        ({"tier": "autonomous", "llm_url": "http://127.0.0.1:1/v1"}, "llm_model is not set"),
    ],
)
def test_without_a_model_the_reason_is_said(settings: dict[str, Any], told: str) -> None:
    client = LanguageModel(Settings(settings))
    with pytest.raises(Conflict, match=told):
        asyncio.run(words(client))
    assert not client.is_ready


def test_aiohttp_is_loaded_with_the_first_question() -> None:
    """A server that never asks a model does not pay for it."""
    code = (
        "import sys\nfrom nudge.core.app import App\nfrom nudge.proposals import review_ops\n"
        "assert 'aiohttp' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
