"""Synthetic histories: what months of agents at work leave in the database, made in seconds.

Words, files and projects follow Zipf's law, as real ones do: a few are everywhere, most are rare.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from nudge.core.context import project_name
from nudge.storage import migrations
from nudge.storage.sqlite import open_writable

T = TypeVar("T")
Row = tuple[Any, ...]

DAYS = 80  # less than the shortest retention
PROJECTS = tuple(
    f"github.com/acme/{name}-{kind}"
    for kind in ("api", "web", "worker", "infra")
    for name in ("shop", "billing", "search", "auth", "mail")
)

_SESSION, _TURN = 60, 8  # observations in one, about
_PORTION = 50_000  # rows handed to SQLite at once
_WORDS, _FILES = 8_000, 20_000
_STARTS = (
    "pay",
    "user",
    "cart",
    "order",
    "token",
    "cache",
    "route",
    "mail",
    "price",
    "stock",
    "test",
    "build",
    "index",
    "query",
    "log",
)
_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu")
_FOLDERS = ("src", "tests", "lib", "app", "docs", "scripts")
_ENDINGS = ("py", "ts", "rs", "go", "md", "toml", "yaml")
_COMMANDS = (
    "pytest tests/test_{}.py -k {}",
    "npm run {} -- --filter {}",
    "cargo test {}::{}",
    "go test ./{}/... -run {}",
    "make {} TARGET={}",
    "docker compose logs {} | grep {}",
    "grep -rn {} src/{}",
    "git diff {} -- {}",
    "ls -la {}/{}",
    "python -m {} --{}",
    "sed -n 1,80p {}/{}.py",
)
_ERRORS = (
    "Exit code 1\nAssertionError: {} is not {}",
    "Exit code 2\nModuleNotFoundError: No module named '{}.{}'",
    "Exit code 101\nerror[E0308]: mismatched types in {}::{}",
    "Exit code 127\nbash: {}-{}: command not found",
)
_ASKED = (
    "fix the {} in {}",
    "why does {} fail when {} is empty",
    "add a {} to {} with {}",
    "rename {} to {}",
    "make {} faster, see {}",
)
_TYPES = {
    "command": 34,
    "file_read": 26,
    "file_edit": 15,
    "command_error": 7,
    "search": 7,
    "file_write": 4,
    "mcp_call": 3,
    "git_commit": 2,
    "task_spawn": 1,
    "web_fetch": 1,
}
_TOOLS = {
    "command": "Bash",
    "command_error": "Bash",
    "git_commit": "Bash",
    "file_read": "Read",
    "file_edit": "Edit",
    "file_write": "Write",
    "search": "Grep",
    "mcp_call": "mcp__nudge__nudge_get_hint",
    "task_spawn": "Agent",
    "web_fetch": "WebFetch",
}


class Zipf:
    """Draws from `items`: the second half as often as the first, the third a third as often."""

    def __init__(self, items: Sequence[Any], chance: random.Random) -> None:
        self.items, self._chance = items, chance
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, len(items) + 1)))
        self._drawn: Iterator[Any] = iter(())

    def __call__(self) -> Any:
        drawn = next(self._drawn, None)
        if drawn is None:
            self._drawn = iter(self._chance.choices(self.items, cum_weights=self._weights, k=10_000))
            drawn = next(self._drawn)
        return drawn


def words(count: int = _WORDS) -> list[str]:
    """The same for every seed, the most frequent first: a benchmark can name a common or a rare one."""
    endings = ("", *_SYLLABLES, *(a + b for a in _SYLLABLES for b in _SYLLABLES))
    longer = ["".join(parts) for parts in itertools.product(_STARTS, _SYLLABLES, endings)]
    random.Random(0).shuffle(longer)
    return [*_STARTS, *longer][:count]


def generate(path: str, observations: int, *, seed: int, end: float | None = None) -> None:
    """A new database with so many observations, the last one at `end` (now)."""
    with contextlib.closing(open_writable(path)) as connection:
        migrations.migrate(connection)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -200000")
        late = _take_out(connection)
        _fill(connection, _Past(observations, seed, int(time.time() if end is None else end)))
        for statement in late:
            connection.execute(statement)
        connection.execute("INSERT INTO observations_fts(observations_fts) VALUES ('rebuild')")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _take_out(connection: sqlite3.Connection) -> list[str]:
    """Indexes and triggers, to be made once, in the end: each row by itself costs ten times as much."""
    made = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL"
    ).fetchall()
    for kind, name, _ in made:
        connection.execute(f"DROP {kind} {name}")
    return [sql for _, _, sql in made]


def _fill(connection: sqlite3.Connection, past: _Past) -> None:
    """In portions, since all of it need not be in memory."""
    connection.execute("BEGIN")
    for portion in _portions(past.sessions(), _PORTION // _SESSION):
        for table in ("sessions", "prompts", "observations"):
            rows = [row for session in portion for row in session[table]]
            marks = ", ".join("?" for _ in rows[0])
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608
    connection.executemany("INSERT INTO events VALUES (?, ?)", past.events())
    connection.execute("COMMIT")


def _portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while portion := list(itertools.islice(iterator, size)):
        yield portion


class _Past:
    """Sessions one after the other, evenly over the days."""

    def __init__(self, observations: int, seed: int, end: int) -> None:
        self._count, self._end = observations, end
        self._begin = end - DAYS * 86_400
        self._chance = chance = random.Random(seed)
        self._word = Zipf(words(), chance)
        self._project = Zipf(PROJECTS, chance)
        self._file = {project: Zipf(self._files(), chance) for project in PROJECTS}
        self._type = iter(chance.choices(list(_TYPES), weights=list(_TYPES.values()), k=observations + 1))
        self._observation = itertools.count(1)
        self._prompt = itertools.count(1)

    def _files(self) -> list[str]:
        pick = self._chance.choice
        return [
            f"{pick(_FOLDERS)}/{self._word()}/{self._word()}.{pick(_ENDINGS)}" for _ in range(_FILES // len(PROJECTS))
        ]

    def sessions(self) -> Iterator[dict[str, list[Row]]]:
        left = self._count
        while left > 0:
            size = min(left, self._chance.randint(_SESSION // 2, _SESSION * 3 // 2))
            yield self._session(size, self._count - left)
            left -= size

    def _session(self, size: int, before: int) -> dict[str, list[Row]]:
        project, identity = self._project(), f"{self._chance.getrandbits(128):032x}"
        cwd = f"/home/dev/work/{project_name(project)}"
        prompts: list[Row] = []
        rows: list[Row] = []
        for number in range(size):
            at = self._begin + (self._end - self._begin) * (before + number + 1) // self._count
            if number % _TURN == 0:
                prompts.append(
                    (next(self._prompt), identity, None, at, "user", self._made(self._chance.choice(_ASKED)))
                )
                rows.append(self._row(identity, prompts[-1][0], at, project, "user_prompt", None, prompts[-1][5], "{}"))
            else:
                rows.append(self._action(identity, prompts[-1][0], at, project, cwd))
        summary = json.dumps({"intent": prompts[0][5], "files": [], "failed": [], "commits": [], "counts": {}})
        session = (identity, project, f"git:{project}", cwd, "claude-code", rows[0][3], rows[-1][3], summary)
        return {"sessions": [session], "prompts": prompts, "observations": rows}

    def _action(self, session: str, prompt: int, at: int, project: str, cwd: str) -> Row:
        kind = next(self._type)
        if kind.startswith("file_"):
            path = f"{cwd}/{self._file[project]()}"
            return self._row(session, prompt, at, project, kind, path, path, "{}")
        content, metadata = self._made(self._chance.choice(_COMMANDS)), '{"exit_code":0}'
        if kind == "command_error":
            metadata = json.dumps({"exit_code": 1, "error": self._made(self._chance.choice(_ERRORS))})
        elif kind == "git_commit":
            content = f"git commit -m '{self._word()} {self._word()} {self._word()}'"
        return self._row(session, prompt, at, project, kind, None, content, metadata)

    def _row(
        self, session: str, prompt: int, at: int, project: str, kind: str, path: str | None, content: str, metadata: str
    ) -> Row:
        source = (
            "UserPromptSubmit"
            if kind == "user_prompt"
            else "PostToolUseFailure"
            if kind == "command_error"
            else "PostToolUse"
        )
        return (
            next(self._observation),
            session,
            prompt,
            at,
            project,
            kind,
            source,
            _TOOLS.get(kind),
            path,
            content,
            metadata,
            0,
            "",
            None,
            None,
        )

    def _made(self, pattern: str) -> str:
        return pattern.format(self._word(), self._word(), self._word())

    def events(self) -> Iterator[Row]:
        """In the order of the table, which makes it grow at its end only."""
        names = sorted(f"{self._chance.getrandbits(128):032x}" for _ in range(self._count))
        return ((name, self._end) for name in names)


if __name__ == "__main__":
    began = time.perf_counter()
    generate(sys.argv[1], int(sys.argv[2]), seed=1)
    print(f"{int(sys.argv[2]):,} observations in {time.perf_counter() - began:.1f} s")
