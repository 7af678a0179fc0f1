"""The ways into Nudge, behind one call: operation and parameters in, `{"result": ...}` or `{"error": ...}` out."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar
from unittest import mock
from urllib.parse import quote, urlencode

from nudge.__main__ import main
from nudge.cli.output import EXIT_NOT_FOUND, EXIT_OK, EXIT_REFUSED
from nudge.cli.verbs import all_verbs
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.errors import NudgeError
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.process import endpoint
from nudge.settings.config import Settings
from nudge.storage.database import Database
from tests.harness import TIMEOUT, Machine, Stdio
from tests.security import served as in_this_process

T = TypeVar("T")
Params = Mapping[str, Any]
Outcome = dict[str, Any]

MAX_HINTS = 12  # of every store here, so that a test can fill one
ENVIRON = {"NUDGE_MAX_HINTS": str(MAX_HINTS)}
EMPTY_STORE = {"payload": {"schema_version": "1.0", "components": {}}, "mode": "replace"}


class Way(Protocol):
    def call(self, operation: str, params: Params) -> Outcome: ...


class InProcess:
    """The application itself, with nothing in front of it; `database` is where notes and the history are."""

    def __init__(self, database: Database | None = None) -> None:
        self.app = App(open_in_memory(Settings({"max_hints": MAX_HINTS})), OPERATIONS)
        self.app.database = database

    def call(self, operation: str, params: Params) -> Outcome:
        async def answer() -> Any:
            result = await self.app.execute(operation, dict(params), Call())
            await self.app.deferred.recalls_counted()  # a loop of its own ends with each call
            return result

        try:
            return {"result": asyncio.run(answer())}
        except NudgeError as error:
            return {"error": error.to_json()}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Http:
    """A script that talks to PRIMARY over TCP."""

    def __init__(self, port: int | None, token: str | None) -> None:
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        self._authorization = {"Authorization": f"Bearer {token}"} if token else {}

    @classmethod
    def to(cls, machine: Machine) -> Http:
        return cls(machine.ready().port, endpoint.read_token(machine.runtime))

    def exchange(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """`body` is sent as it is when it is bytes, as JSON otherwise; a header's `_` stands for `-`."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        extra = {name.replace("_", "-"): text for name, text in headers.items()}
        sent = {"Content-Type": "application/json", **self._authorization, **extra}
        self._link.request(method, path, content, sent)
        with self._link.getresponse() as response:
            return Reply(
                response.status, {name.lower(): text for name, text in response.headers.items()}, response.read()
            )

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self.exchange("POST", path, body, **headers)

    def call(self, operation: str, params: Params) -> Outcome:
        """JSON-RPC."""
        reply = self.post("/", {"jsonrpc": "2.0", "id": 7, "method": operation, "params": params})
        answer = reply.json
        assert reply.status == 200 and answer.pop("jsonrpc") == "2.0" and answer.pop("id") == 7, reply
        return dict(answer)

    def close(self) -> None:
        self._link.close()


class Rest:
    """A script that uses the REST routes."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def call(self, operation: str, params: Params) -> Outcome:
        verb, template = OPERATIONS[operation].route
        path = template.format_map({name: quote(str(value), safe="") for name, value in params.items()})
        rest_of = {name: value for name, value in params.items() if f"{{{name}}}" not in template}
        if verb in ("GET", "DELETE"):
            texts = {name: _query_text(value) for name, value in rest_of.items()}
            reply = self._http.exchange(verb, f"{path}?{urlencode(texts)}")
        else:
            reply = self._http.exchange(verb, path, rest_of)
        if reply.status in (200, 201):
            return {"result": reply.json}
        body = reply.json
        assert body.pop("error") == body["message"]
        return {"error": body}


def _query_text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


class Mcp:
    """An agent on stdio."""

    def __init__(self, stdio: Stdio) -> None:
        self.stdio = stdio

    def call(self, operation: str, params: Params) -> Outcome:
        result = self.stdio.tool(operation.replace(".", "_"), **params)
        told = result["structuredContent"]
        text = result["content"][0]["text"]
        as_text = None if result.get("isError") else OPERATIONS[operation].as_text
        rendered = None if as_text is None else as_text(params, told)
        assert (json.loads(text) == told) if rendered is None else (text == rendered), (text, rendered)
        if not result.get("isError"):
            return {"result": told}
        error = dict(told["error"])
        return {"error": {"code": error.pop("code"), "message": error.pop("message"), "data": error}}


class Cli:
    """`nudge ... --json`, run inside this process: a process for each step would take most of the time."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def call(self, operation: str, params: Params) -> Outcome:
        words, stdin = command_line(operation, params)
        return outcome_of(*self.run(words, stdin))

    def run(self, words: list[str], stdin: str = "") -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        out, err = io.StringIO(), io.StringIO()
        typed = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        environ = mock.patch.dict(os.environ, self._machine.environ, clear=True)
        with (
            chdir(self._machine.base),
            environ,
            mock.patch("sys.stdin", typed),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = main(words)
        return code, out.getvalue(), err.getvalue()


class CliProcess(Cli):
    """The same, each step a process of its own."""

    def run(self, words: list[str], stdin: str = "") -> tuple[int, str, str]:
        done = self._machine.cli(*words, stdin=stdin)
        return done.returncode, done.stdout, done.stderr


def outcome_of(code: int, out: str, err: str) -> Outcome:
    """What the CLI said; its exit code must say the same."""
    answer = json.loads(out or "null")
    assert isinstance(answer, dict), f"exit code {code}: {err}"
    if "error" not in answer:
        assert code == EXIT_OK
        return {"result": answer}
    expected = EXIT_NOT_FOUND if answer["error"]["data"]["reason"] == "E_NOT_FOUND" else EXIT_REFUSED
    assert code == expected
    return answer


# A command line for an operation's parameters

_POSITIONAL = {
    "nudge.set_hint": ("component", "key"),
    "nudge.get_hint": ("component", "key"),
    "nudge.bump": ("component", "key"),
    "nudge.delete_hint": ("component", "key"),
    "nudge.list_components": ("component",),
}
_VERB_OF = {operation: verb.name for verb in reversed(all_verbs()) for operation in verb.operations}
_VALUE_TEXT = {"command": "cmd", "path": "abs", "template": "body"}


def command_line(operation: str, params: Params) -> tuple[list[str], str]:
    """The words, and what is typed into stdin."""
    rest = dict(params)
    words = [str(rest.pop(name)) for name in _POSITIONAL.get(operation, ()) if name in rest]
    flags: list[str] = []
    stdin = ""
    if "value" in rest:
        flags += _value_flags(value := rest.pop("value"))
        words.append(_value_text(value))
    if "payload" in rest:
        stdin = json.dumps(rest.pop("payload"))
        words.append("-")
    flags += _context_flags(rest.pop("context", {})) + _scope_flags(rest.pop("scope", None))
    meta = dict(rest.pop("meta", {}))
    flags += _scope_flags(meta.pop("scope", None))
    flags += _plain_flags({**meta, **rest})
    return [*_VERB_OF[operation].split(), *flags, "--json", *(["--", *words] if words else [])], stdin


def _value_flags(value: Any) -> list[str]:
    if isinstance(value, str):
        return []
    extra = {name: value[name] for name in ("shell", "format", "os") if name in value}
    defaults = [f"--default={name}={text}" for name, text in value.get("defaults", {}).items()]
    return [f"--type={value['type']}", *_plain_flags(extra), *defaults]


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value["data"]) if value["type"] == "json" else str(value[_VALUE_TEXT[value["type"]]])


def _context_flags(context: Params) -> list[str]:
    env = [f"--env={name}={text}" for name, text in context.get("env", {}).items()]
    return _plain_flags({name: text for name, text in context.items() if name != "env"}) + env


def _scope_flags(scope: Params | None) -> list[str]:
    if not scope:
        return [] if scope is None else ["--global"]
    if scope.get("repo") == []:
        return ["--global", *_scope_flags({name: condition for name, condition in scope.items() if name != "repo"})]
    flags = {
        "--scope-cwd-glob": "cwd_glob",
        "--scope-repo": "repo",
        "--scope-branch": "branch",
        "--scope-os": "os",
        "--scope-env": "env_required",
    }
    words = [f"{flag}={_listed(scope[name])}" for flag, name in flags.items() if name in scope]
    return words + [
        f"--scope-env-match={name}={_listed(allowed)}" for name, allowed in scope.get("env_match", {}).items()
    ]


def _plain_flags(params: Params) -> list[str]:
    named = {"--" + name.replace("_", "-"): value for name, value in params.items()}
    return [
        flag if value is True else f"{flag}={_listed(value)}" for flag, value in named.items() if value is not False
    ]


def _listed(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


# What may differ between two runs

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_OF_THIS_RUN = 3_600.0
_FREE = re.compile(r"[\d.,]+ [KMGT]?i?B free")


def normalized(node: Any, name: str = "") -> Any:
    """The same with the session's name, the times of this run, the room on the disk and the last digits of scores made
    equal, and without the note on scope and lifetime that an agent gets for a hint that it sets."""
    if isinstance(node, dict):
        return {key: normalized(value, key) for key, value in node.items() if not _is_set_note(key, value)}
    if isinstance(node, list):
        return [normalized(item, name) for item in node]
    if isinstance(node, float):
        return round(node, 3)
    if name == "session_id":
        return "<session>"
    if isinstance(node, str) and _FREE.fullmatch(node):
        return "<free>"
    return "<now>" if isinstance(node, str) and _TIME.fullmatch(node) and _is_recent(node) else node


def _is_set_note(name: str, value: Any) -> bool:
    return name == "note" and isinstance(value, str) and value.startswith("scope: ")


def _is_recent(moment: str) -> bool:
    return abs(datetime.fromisoformat(moment).timestamp() - time.time()) < _OF_THIS_RUN


# From nothing to a way


@contextmanager
def in_process() -> Iterator[Way]:
    yield InProcess()


@contextmanager
def mcp_primary() -> Iterator[Way]:
    with _machine() as machine:
        yield Mcp(connected(machine))


@contextmanager
def jsonrpc_over_tcp(machine: Machine) -> Iterator[Way]:
    script = Http.to(machine)
    yield script
    script.close()


@contextmanager
def mcp_proxy(machine: Machine) -> Iterator[Way]:
    yield Mcp(connected(machine))


@contextmanager
def cli_in_process(machine: Machine) -> Iterator[Way]:
    yield Cli(machine)


ALONE = {"in-process": in_process, "mcp-primary": mcp_primary}
TO_A_PRIMARY = {"json-rpc": jsonrpc_over_tcp, "mcp-proxy": mcp_proxy, "cli": cli_in_process}
WAYS = [*ALONE, *TO_A_PRIMARY]


def connected(machine: Machine, *arguments: str, cwd: str | None = None, **environ: str) -> Stdio:
    """An MCP client that has shaken hands, once there is a PRIMARY: the handshake is answered before a server tries to
    become one, so that the next client's could be faster."""
    stdio = machine.serve(*arguments, cwd=cwd, **environ)
    stdio.initialize()
    machine.ready()
    return stdio


@dataclass(frozen=True)
class Served:
    """An application behind HTTP."""

    app: App
    port: int | None
    token: str

    @contextmanager
    def script(self, *, authorized: bool = True) -> Iterator[Http]:
        opened = Http(self.port, self.token if authorized else None)
        yield opened
        opened.close()


@contextmanager
def served(database: Database | None = None) -> Iterator[Served]:
    """A real HTTP server in a thread of this process, so that a test can reach what is behind it."""
    with in_this_process.served(**ENVIRON) as server:
        server.app.database = database
        yield Served(server.app, server.port, in_this_process.TOKEN)


@contextmanager
def busy_machine() -> Iterator[Machine]:
    """A machine whose PRIMARY belongs to no client: whatever comes is a guest of it."""
    with _machine() as machine:
        machine.prepared_server()
        yield machine


@contextmanager
def _machine() -> Iterator[Machine]:
    machine = Machine(**ENVIRON)
    try:
        yield machine
    finally:
        machine.close()
