"""The client of a language model behind an OpenAI-compatible address: Ollama, llama.cpp, LM Studio.

One request at a time, 5 seconds, one more try where that can help. After three failures in a row the model is left
alone for a minute. Nothing but the question that was asked waits for it. No redirect is followed, no proxy used, no
cookie kept, and of an answer only so many bytes are read; what it says is left to `answers`. aiohttp is loaded with the
first question.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from nudge.core import limits, strict_json
from nudge.core.clock import boot_seconds
from nudge.core.errors import Conflict, Unavailable
from nudge.proposals.answers import BadAnswer, content_of
from nudge.proposals.questions import Question
from nudge.settings.config import Settings
from nudge.settings.table import AUTONOMOUS, SMART

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

_SMART_TIERS = (SMART, AUTONOMOUS)
_SHOWN_BY_STATUS = {
    401: "wants a key",
    403: "refuses the request",
    404: "has no such address, or no model of this name",
    503: "is busy, or still loads the model",
}
_WORTH_ANOTHER_TRY = frozenset((408, 425, 429, 500, 502, 503, 504))
_SCHEMA_REFUSED = frozenset((400, 415, 422, 501))


class _Failed(Exception):
    """A request that failed. The text says how, and quotes nothing that the server said: it could repeat a note."""

    def __init__(self, text: str, *, try_again: bool = False, status: int | None = None) -> None:
        super().__init__(text)
        self.try_again, self.status = try_again, status


class LanguageModel:
    """The model of one server, if there is one. `ask` raises Conflict where the settings name none, Unavailable where
    it does not answer."""

    def __init__(self, settings: Settings) -> None:
        self._tier, self._url, self._name = settings.tier, settings.llm_url, settings.llm_model
        self._problem = _problem_of(settings)
        self.is_remote = bool(self._url) and not _is_loopback(self._url)
        self._one_at_a_time = asyncio.Lock()
        self._takes_schemas = True
        self._failures = 0
        self._rest_until = 0.0
        self._last_failure: str | None = None
        self._has_answered = False
        self.expansions: OrderedDict[str, list[str]] = OrderedDict()
        """The words that it said for recent queries, the oldest query first."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def is_wanted(self) -> bool:
        return self._tier in _SMART_TIERS

    @property
    def is_autonomous(self) -> bool:
        return self._tier == AUTONOMOUS

    @property
    def is_ready(self) -> bool:
        """Whether a question would be sent at once."""
        return self._problem is None and not self._one_at_a_time.locked() and boot_seconds() >= self._rest_until

    async def ask(self, question: Question, read: Callable[[str], T]) -> T:
        """Return what `read` makes of the answer. It raises BadAnswer for one that it cannot use."""
        # A task of its own: a call on the wire is none, and a timeout needs one.
        return await asyncio.ensure_future(self._ask(question, read))

    async def _ask(self, question: Question, read: Callable[[str], T]) -> T:
        if self._problem is not None:
            raise Conflict(self._problem)
        self._refuse_while_resting()
        try:
            async with asyncio.timeout(limits.MODEL_WAIT):
                await self._one_at_a_time.acquire()
        except TimeoutError:
            raise Unavailable("the language model is busy with another question") from None
        try:
            self._refuse_while_resting()
            answer = read(await self._ask_twice(question))
        except (_Failed, BadAnswer) as error:
            self._note_failure(f"its answer {error}" if isinstance(error, BadAnswer) else str(error))
            raise self._unavailable() from None
        finally:
            self._one_at_a_time.release()
        self._failures, self._rest_until, self._last_failure, self._has_answered = 0, 0.0, None, True
        return answer

    def _refuse_while_resting(self) -> None:
        if boot_seconds() < self._rest_until:
            raise self._unavailable()

    def _note_failure(self, text: str) -> None:
        self._failures += 1
        self._last_failure = text
        if self._failures >= limits.MODEL_FAILURES:
            self._rest_until = boot_seconds() + limits.MODEL_REST

    def _unavailable(self) -> Unavailable:
        rest = self._rest_until - boot_seconds()
        again = f"; it is not asked again for {rest:.0f} s" if rest > 0 else ""
        return Unavailable(f"the language model at {self._url} gave no answer: {self._last_failure}{again}")

    async def _ask_twice(self, question: Question) -> str:
        try:
            return await self._ask_once(question)
        except _Failed as error:
            if not error.try_again:
                raise
        return await self._ask_once(question)

    async def _ask_once(self, question: Question) -> str:
        library = await _load_aiohttp()
        try:
            async with asyncio.timeout(limits.MODEL_TIMEOUT):
                return content_of(await self._in_its_form(library, question))
        except TimeoutError:
            raise _Failed(f"no answer within {limits.MODEL_TIMEOUT:g} s", try_again=True) from None

    async def _in_its_form(self, library: Any, question: Question) -> bytes:
        """Ask with a schema; a server that refuses it is asked for plain JSON from then on."""
        if self._takes_schemas:
            try:
                return await self._post(library, question, with_schema=True)
            except _Failed as error:
                if error.status not in _SCHEMA_REFUSED:
                    raise
        body = await self._post(library, question, with_schema=False)
        self._takes_schemas = False
        return body

    async def _post(self, library: Any, question: Question, *, with_schema: bool) -> bytes:
        request = question.request(self._name, f"DATA-{os.urandom(16).hex()}", with_schema=with_schema)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        address = _literal(f"{self._url}/chat/completions")
        try:
            async with (
                library.ClientSession(cookie_jar=library.DummyCookieJar(), auto_decompress=False) as session,
                session.post(
                    address, data=strict_json.encode(request), headers=headers, allow_redirects=False
                ) as response,
            ):
                return await _body_of(response)
        except (library.ClientError, OSError, ValueError) as error:
            raise _Failed(_transport_text(error), try_again=True) from None

    def report(self) -> dict[str, Any] | None:
        """For status, doctor and capabilities; None where no model is wanted."""
        if not self.is_wanted:
            return None
        why = self._problem or self._last_failure
        state = "off" if self._problem else "silent" if why else "answers" if self._has_answered else "not asked yet"
        shown = {"state": state, "url": self._url, "name": self._name, "why": why, "sends": self.sends}
        return {name: value for name, value in shown.items() if value}

    @property
    def sends(self) -> str | None:
        """What leaves this machine; None where nothing does."""
        if self._problem is not None or not self.is_remote:
            return None
        return f"titles and texts of notes, and queries that find little, are sent to {self._url} (llm_remote)"


def _problem_of(settings: Settings) -> str | None:
    """Why there is no model to ask."""
    if settings.tier not in _SMART_TIERS:
        return "no language model is used: start the server with --tier smart, --llm-url and --llm-model"
    for name in ("llm_url", "llm_model"):
        if not getattr(settings, name):
            return f"the tier {settings.tier} has no language model: {name} is not set"
    if not _is_loopback(settings.llm_url) and not settings.llm_remote:
        return (
            f"llm_url names another machine: {settings.llm_url}. Titles and texts of notes would be sent there; that"
            " needs llm_remote = true"
        )
    return None


def _is_loopback(url: str) -> bool:
    """Whether a URL names this machine, by an address that needs no look-up."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _literal(url: str) -> str:
    """The URL with an address in place of `localhost`, which a resolver could point elsewhere."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.hostname != "localhost":
        return url
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"127.0.0.1{port}").geturl()


async def _load_aiohttp() -> Any:
    """On a thread: it takes 0.2 s."""
    from importlib import import_module

    return await asyncio.to_thread(import_module, "aiohttp")


async def _body_of(response: aiohttp.ClientResponse) -> bytes:
    if 300 <= response.status < 400:
        raise _Failed("it answers with a redirect, which is not followed", status=response.status)
    if response.status != 200:
        text = _SHOWN_BY_STATUS.get(response.status, "refuses the request" if response.status < 500 else "has failed")
        again = response.status in _WORTH_ANOTHER_TRY
        raise _Failed(f"the server {text} (status {response.status})", try_again=again, status=response.status)
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise _Failed("its answer is compressed, which nobody asked for")
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limits.MAX_MODEL_ANSWER_BYTES:
            raise _Failed(f"its answer is longer than {limits.MAX_MODEL_ANSWER_BYTES // limits.KIB} KiB")
    return bytes(body)


def _transport_text(error: Exception) -> str:
    """What failed between this process and the server; the kind of an error that could quote what was sent."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return f"it cannot be reached ({os.strerror(error.errno)})"
    return f"the connection failed ({type(error).__name__})"
