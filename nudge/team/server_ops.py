"""The connection to the shared database. Its library is loaded when a team is joined, and never before.

Each call is bounded by TEAM_WAIT; what the server or the network answers becomes a `TeamProblem` with a sentence.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from importlib import import_module
from typing import Any, Protocol, TypeVar

from nudge.core import limits
from nudge.core.errors import Unavailable
from nudge.team import server_sql as sql
from nudge.team.address import Address
from nudge.team.entry import Entry

T = TypeVar("T")

_MISSING = "the library for it is not installed; run: pip install 'nudge-mcp[team]'"
_DENIED = "42501"
_SENTENCES = {
    "28": "the server refuses the login; see: nudge team join",
    "3D": "there is no such database on the server",
    "3F": "the database has no shared log yet; an administrator runs: nudge team init",
    "42P01": "the database has no shared log yet; an administrator runs: nudge team init",
    _DENIED: "the server refuses it: this role has no right to the shared log",
    "25006": "the server is read-only; changes wait here",
    "57014": "the server takes too long",
    "57P": "the server is shutting down or starting",
    "53": "the server has no room or no connection left",
}


class TeamProblem(Unavailable):
    """Why the server cannot be used right now. `state` is PostgreSQL's code, empty for the network."""

    def __init__(self, message: str, state: str = "") -> None:
        super().__init__(message)
        self.state = state

    @property
    def is_read_only(self) -> bool:
        return self.state == "25006"

    @property
    def is_slow(self) -> bool:
        return self.state in ("57014", "timeout")


@dataclass(frozen=True, slots=True)
class Hello:
    """What the server says first. `ahead` is by how many seconds this machine's clock is ahead."""

    now: float
    role: str
    epoch_number: int
    epoch: str
    format: int
    read_only: bool


class Server(Protocol):
    """A connection, or what stands for one in a test."""

    async def hello(self) -> Hello: ...
    async def readable(self, projects: Sequence[str]) -> set[str]: ...
    async def register(self, origin: str) -> str | None: ...
    async def heads(self, projects: Sequence[str]) -> list[tuple[str, str, int]]: ...
    async def rows(self, cursors: Sequence[tuple[str, str, int]], most: int) -> list[Entry]: ...
    async def push(self, origin: str, epoch: int, entries: Sequence[Entry]) -> None: ...
    async def roles(self, origins: Sequence[str]) -> list[tuple[str, str]]: ...
    async def listen(self, projects: Sequence[str], wake: Callable[[], None]) -> None: ...
    async def close(self) -> None: ...


def load_library() -> Any:
    """Import the library; raises TeamProblem with how to install it. Takes 0.2 s: not on the event loop."""
    try:
        return import_module("asyncpg")
    except ImportError:
        raise TeamProblem(_MISSING) from None


async def connect(address: Address, password: str | None) -> PostgresServer:
    """Log in; without a password, with that of the environment or of `.pgpass`."""
    library = await asyncio.to_thread(load_library)
    options: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "database": address.database,
        "ssl": await asyncio.to_thread(_tls_context, address) if address.uses_tls else False,
        "timeout": limits.TEAM_WAIT,
        "command_timeout": limits.TEAM_WAIT,
        "statement_cache_size": 0,  # a pooler between may give each transaction another connection
        "server_settings": {"application_name": "nudge", "statement_timeout": str(int(limits.TEAM_WAIT * 1_000))},
    }
    if password is not None:
        options["password"] = password
    return PostgresServer(await _bounded(library.connect(**options)))


def _tls_context(address: Address) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=address.sslrootcert and os.path.expanduser(address.sslrootcert))
    if address.sslmode != "verify-full":
        context.check_hostname = False
    if address.sslmode == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


async def _bounded(answer: Awaitable[T]) -> T:
    """Wait for an answer no longer than TEAM_WAIT, and say in a sentence why there is none."""
    try:
        async with asyncio.timeout(limits.TEAM_WAIT):
            return await answer
    except TimeoutError:
        raise TeamProblem(f"the server did not answer within {limits.TEAM_WAIT} s", "timeout") from None
    except ssl.SSLError as error:
        raise TeamProblem(f"TLS with the server failed: {error.reason or 'unknown'}") from None
    except OSError as error:
        raise TeamProblem(_unreachable(error)) from None
    except Exception as error:
        raise _problem(error) from None


def _unreachable(error: OSError) -> str:
    if "rejected SSL" in str(error):  # the library has no type for it
        return "the server offers no TLS, so nothing was sent; it is required unless the server is on this machine"
    return f"the server cannot be reached: {error.strerror or type(error).__name__}"


def _problem(error: Exception) -> TeamProblem:
    """The sentence for an error of the library; its own text may quote a row."""
    state = str(getattr(error, "sqlstate", None) or "")
    known = next((_SENTENCES[code] for code in (state, state[:3], state[:2]) if code in _SENTENCES), None)
    if known is None and not state:
        known = f"the connection to the server failed ({type(error).__name__})"
    return TeamProblem(known or f"the server refused it (SQLSTATE {state})", state)


class PostgresServer:
    """A connection of a member."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def is_closed(self) -> bool:
        return bool(self._connection.is_closed())

    async def hello(self) -> Hello:
        row = await _bounded(self._connection.fetchrow(sql.HELLO))
        if row is None:
            raise TeamProblem("the shared log is not complete; see: nudge team init")
        return Hello(row["now"], row["role"], row["epoch_number"], row["epoch"], row["format"], row["read_only"])

    async def readable(self, projects: Sequence[str]) -> set[str]:
        """Return those of the repos that this role is let into."""
        rows = await _bounded(self._connection.fetch(sql.REPOS, list(projects)))
        return {row["project"] for row in rows}

    async def repos(self) -> list[str]:
        """Return the repos that this role is let into."""
        return [row["project"] for row in await _bounded(self._connection.fetch(sql.ALL_REPOS))]

    async def register(self, origin: str) -> str | None:
        """Make an origin this role's, unless it is somebody's; return whose it is now."""
        await _bounded(self._connection.execute(sql.REGISTER, origin))
        owner: str | None = await _bounded(self._connection.fetchval(sql.OWNER, origin))
        return owner

    async def heads(self, projects: Sequence[str]) -> list[tuple[str, str, int]]:
        """Return repo, origin and last number of each log."""
        rows = await _bounded(self._connection.fetch(sql.HEADS, list(projects)))
        return [(row["project"], row["origin"], row["n"]) for row in rows]

    async def rows(self, cursors: Sequence[tuple[str, str, int]], most: int) -> list[Entry]:
        """Return the rows behind cursors (repo, origin, number), those of one log in their order."""
        columns = [list(column) for column in zip(*cursors, strict=True)]
        rows = await _bounded(self._connection.fetch(sql.ROWS, *columns, most))
        return [Entry(*row.values()) for row in rows]

    async def push(self, origin: str, epoch: int, entries: Sequence[Entry]) -> None:
        """Append rows, all or none, and notify those who share their repos."""
        columns = [
            [getattr(entry, name) for entry in entries] for name in ("project", "n", "clock", "kind", "key", "body")
        ]
        projects = sorted({entry.project for entry in entries})

        async def run() -> None:
            async with self._connection.transaction():
                await self._connection.execute(sql.PUSH, origin, epoch, *columns)
                await self._connection.execute(sql.NOTIFY, projects)

        await _bounded(run())

    async def roles(self, origins: Sequence[str]) -> list[tuple[str, str]]:
        rows = await _bounded(self._connection.fetch(sql.ROLES, list(origins)))
        return [(row["origin"], row["role"]) for row in rows]

    async def listen(self, projects: Sequence[str], wake: Callable[[], None]) -> None:
        """Call `wake` when there may be news of one of the repos."""
        for project in projects:
            name = md5(project.encode(), usedforsecurity=False).hexdigest()
            await _bounded(self._connection.add_listener(sql.CHANNEL.format(name), lambda *_: wake()))

    async def rights(self) -> Mapping[str, Any]:
        row: Mapping[str, Any] = dict(await _bounded(self._connection.fetchrow(sql.RIGHTS)))
        return row

    async def probe(self, statement: str) -> str | None:
        """Run a statement and roll it back; return the code that it was refused with, None when it was not."""
        transaction = self._connection.transaction()
        await _bounded(transaction.start())
        try:
            await _bounded(self._connection.execute(statement))
        except TeamProblem as problem:
            return problem.state
        finally:
            await _bounded(transaction.rollback())
        return None

    async def close(self) -> None:
        try:
            async with asyncio.timeout(limits.TEAM_WAIT):
                await self._connection.close()
        except Exception:  # it ends in any case
            self._connection.terminate()
