"""`make team`: what a team is promised, on a real PostgreSQL and real machines. Each line is a promise that held, with
its figure; the first that does not hold ends the run."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from functools import partial

from tests.team import connections, kills, load, rights, together, trouble
from tests.team.machines import REPO
from tests.team.postgres import NoPostgres, Postgres

Scenario = Callable[[Postgres], str]

SHORT: dict[str, Scenario] = {
    "a member with psql": rights.rights,
    "a fresh machine": partial(together.fresh_machine, number=60),
    "four machines at once": together.four_machines,
    "changes while offline": together.offline_edits,
    "a clock a day ahead": together.wrong_clock,
    "kill -9": partial(kills.kills, number=22),
    "a server that is away": trouble.away,
    "a server that was restored": trouble.restored,
    "a role that is revoked": trouble.revoked,
    "a machine that was away": trouble.long_away,
    "a month offline": trouble.month_away,
    "TLS": connections.tls,
    "passwords": connections.passwords,
    "2,000 notes": partial(load.first_join, notes=2_000, hints=400),
    "a log of many origins": partial(load.scale, rows=50_000, repos=5, origins=100),
}
LONG: dict[str, Scenario] = {
    **SHORT,
    "a fresh machine": partial(together.fresh_machine, number=500),
    "kill -9": partial(kills.kills, number=200),
    "50,000 notes": partial(load.first_join, notes=50_000, hints=5_000),
    "a large log": partial(load.scale, rows=10_000_000, repos=50, origins=100),
}


def run(scenarios: dict[str, Scenario]) -> None:
    postgres = Postgres()
    try:
        for name, scenario in scenarios.items():
            began = time.monotonic()
            postgres.make_team(together.ROLES, [REPO])
            found = scenario(postgres)
            postgres.drop_team()
            print(f"{name}: {found} ({time.monotonic() - began:.1f} s)", flush=True)
    finally:
        postgres.close()


def main() -> int:
    unknown = set(sys.argv[1:]) - {"--long"} - set(LONG)
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; known: --long, {', '.join(LONG)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started ends with this process
    named = {name: LONG[name] for name in sys.argv[1:] if name in LONG}
    try:
        run(named or (LONG if "--long" in sys.argv else SHORT))
    except NoPostgres as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
