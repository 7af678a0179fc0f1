"""The list of clients. A new client with hooks gets a module of its own and a line here."""

from __future__ import annotations

from nudge.clients.client import AgentClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Name and module, in the order in which a hook tries them. Modules are imported one at a time, so that a hook of the
# first client loads no other.
_MODULES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "cursor": "cursor",
}


def get(name: str) -> AgentClient:
    """Return the client of that name. Raises KeyError when there is none."""
    return _load(name) if name in _MODULES else _without_hooks()[name]


def all_clients() -> tuple[AgentClient, ...]:
    return (*with_hooks(), *_without_hooks().values())


def with_hooks() -> tuple[AgentClient, ...]:
    """Return the clients that have a module of their own."""
    return tuple(map(_load, _MODULES))


def names() -> tuple[str, ...]:
    return (*_MODULES, *_without_hooks())


def detect(payload: Mapping[str, Any], environ: Mapping[str, str]) -> AgentClient:
    """Return the client that sent a hook's payload. When that cannot be told, the client is called `unknown` and
    understands the names of all clients."""
    name = payload.get("client")
    if isinstance(name, str) and name in _MODULES:
        return _load(name)
    for client in map(_load, _MODULES):
        if client.recognizes(payload, environ):
            return client
    return next((client for client in map(_load, _MODULES) if client.recognizes_environ(environ)), None) or _unknown()


def _load(name: str) -> AgentClient:
    # Not `importlib.import_module`: a hook would load importlib's package for it.
    client = __import__(f"nudge.clients.{_MODULES[name]}", None, None, ["CLIENT"]).CLIENT
    assert isinstance(client, AgentClient)
    return client


def _unknown() -> AgentClient:
    client = AgentClient()
    client.tools, client.arguments, client.prompt_blocks = {}, {}, ()
    for other in map(_load, _MODULES):
        client.prompt_blocks = tuple(dict.fromkeys((*client.prompt_blocks, *other.prompt_blocks)))
        client.tools = {**client.tools, **other.tools}
        client.arguments = {**client.arguments, **other.arguments}
    return client


def _without_hooks() -> dict[str, AgentClient]:
    from nudge.clients import print_only

    return print_only.CLIENTS
