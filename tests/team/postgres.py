"""A PostgreSQL of this run: its own cluster in a temporary directory, on a free port of 127.0.0.1, not as root."""

# ruff: noqa: S608 - of this run's own names
from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.harness import eventually, free_port

_USERS = ("postgres", "nobody")
_DEBIAN = "/usr/lib/postgresql/*/bin"
_PACKAGE = "postgresql"


class NoPostgres(Exception):
    """There is no PostgreSQL here, and neither apt nor PyPI gave one."""


def find_binaries() -> Path | None:
    """Where `initdb` and `postgres` are: Debian's package, the PATH, or the package `pgserver`."""
    candidates = [*sorted(glob.glob(_DEBIAN), reverse=True)]
    if found := shutil.which("initdb"):
        candidates.append(os.path.dirname(os.path.realpath(found)))
    try:
        import pgserver  # type: ignore[import-not-found, unused-ignore]

        candidates.append(str(Path(pgserver.__file__).parent / "pginstall" / "bin"))
    except ImportError:
        pass
    return next((Path(one) for one in candidates if os.access(f"{one}/initdb", os.X_OK)), None)


def require_binaries() -> Path:
    """Find PostgreSQL, or install it: from apt where this is root, else from PyPI. Raises NoPostgres."""
    found = find_binaries()
    for command in [] if found else _installations():
        print(f"no PostgreSQL here; trying: {' '.join(command)}", flush=True)
        subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=300,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
        found = find_binaries()
        if found:
            break
    if found is None:
        raise NoPostgres(
            "`make team` needs PostgreSQL: neither `apt-get install postgresql` nor `pip install pgserver` gave one."
            " Install PostgreSQL 13 or newer, then run it again."
        )
    return found


def _installations() -> list[list[str]]:
    by_pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "pgserver"]
    if os.geteuid() or not shutil.which("apt-get"):
        return [by_pip]
    # Without a cluster of Debian's own: one of this run is enough.
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", _PACKAGE]
    return [install, ["apt-get", "update", "-qq"], install, by_pip]


def _unprivileged_user() -> pwd.struct_passwd | None:
    """The user that PostgreSQL runs as; None: this one, which is not root."""
    if os.geteuid():
        return None
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoPostgres("PostgreSQL does not run as root, and there is no user `postgres` or `nobody` for it")


class Postgres:
    """One cluster and its server."""

    superuser = "postgres"

    def __init__(self) -> None:
        self.binaries = require_binaries()
        self._user = _unprivileged_user()
        self.base = Path(tempfile.mkdtemp(prefix="nudge-team-pg-"))
        self.data, self.port = self.base / "data", free_port()
        self.base.chmod(0o755)
        if self._user is not None:
            os.chown(self.base, self._user.pw_uid, self._user.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        options = ["-A", "trust", "-U", self.superuser, "-N", "-E", "UTF8", "--no-locale"]
        self._run("initdb", "-D", str(self.data), *options)
        self.start()

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.binaries / program), *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd="/",
            **self._as_user(),
        )
        if done.returncode:
            raise AssertionError(f"{program}: {done.stderr}")
        return str(done.stdout)

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    @property
    def has_tls(self) -> bool:
        """Whether this PostgreSQL was built with TLS; that of `pgserver` was not."""
        return (self.binaries / "pg_config").exists() and "openssl" in self._run("pg_config", "--configure")

    def write(self, name: str, text: str) -> Path:
        """Write a file that only the server's user may read."""
        file = self.base / name
        file.touch(mode=0o600)
        file.write_text(text)
        if self._user is not None:
            os.chown(file, self._user.pw_uid, self._user.pw_gid)
        return file

    def start(self, *options: str) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.base),
            "shared_buffers": "64MB",
            "max_connections": "60",
            "logging_collector": "off",
        }
        named = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.base / "log", "ab") as log:
            self._process = subprocess.Popen(
                [str(self.binaries / "postgres"), "-D", str(self.data), *named, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **self._as_user(),
            )
        eventually(self._answers, "PostgreSQL answers")

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, (self.base / "log").read_text()[-2_000:]
        done = self.psql("SELECT 1", check=False)
        return done.returncode == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(2)  # fast: open connections end
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.base, ignore_errors=True)

    def url(self, role: str, database: str = "team", port: int | None = None) -> str:
        return f"postgresql://{role}@127.0.0.1:{port or self.port}/{database}"

    def psql(
        self, sql: str, *, role: str = superuser, database: str = "postgres", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run SQL as psql does, each statement by itself until one fails."""
        arguments = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"]
        done = subprocess.run(
            [str(self.binaries / "psql"), *arguments, "-f", "-", self.url(role, database)],
            input=sql,
            check=False,
            capture_output=True,
            text=True,
            timeout=900,
        )
        if check and done.returncode:
            raise AssertionError(f"psql: {done.stderr}")
        return done

    def rows(self, sql: str, *, role: str = superuser, database: str = "team") -> list[list[str]]:
        out = self.psql(sql, role=role, database=database).stdout
        return [line.split("|") for line in out.splitlines()]

    def dump(self, file: Path, database: str = "team") -> None:
        """Back up a database, as of now."""
        self._run("pg_dump", "-Fc", "-f", str(file), self.url(self.superuser, database))

    def restore(self, file: Path, database: str = "team") -> None:
        """Put a database back to a backup, as an administrator would."""
        self.psql(f"DROP DATABASE {database} WITH (FORCE); CREATE DATABASE {database}")
        self._run("pg_restore", "-d", self.url(self.superuser, database), str(file))

    def drop_team(self) -> None:
        """Remove every database and role that a scenario made."""
        for (name,) in self.rows(
            "SELECT datname FROM pg_database WHERE datname NOT LIKE 'template%'", database="postgres"
        ):
            if name != "postgres":
                self.psql(f'DROP DATABASE "{name}" WITH (FORCE)')
        roles = "SELECT rolname FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%' AND rolname <> 'postgres'"
        for (name,) in self.rows(roles, database="postgres"):
            self.psql(f'DROP ROLE "{name}"')

    def make_team(self, members: Sequence[str], repos: Sequence[str], database: str = "team") -> None:
        """A database with the log in it, and roles that are let into repos by a role of each repo."""
        self.psql(f"CREATE DATABASE {database}")
        from nudge.team.server_sql import INIT

        self.psql(INIT, database=database)
        for member in members:
            self.psql(f"CREATE ROLE {member} LOGIN; GRANT nudge_team TO {member}")
        for number, repo in enumerate(repos):
            self.psql(f"CREATE ROLE repo_{number} NOLOGIN")
            self.psql(f"INSERT INTO nudge_team.repos VALUES ('{repo}', 'repo_{number}')", database=database)
            for member in members:
                self.psql(f"GRANT repo_{number} TO {member}")
