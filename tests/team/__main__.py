"""`make team`: what a team is promised, on a real PostgreSQL and real machines. Each line is a promise that held, with
its figure; the first that does not hold ends the run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

from tests.team import rights, together
from tests.team.machines import REPO
from tests.team.postgres import NoPostgres, Postgres

Scenario = Callable[[Postgres], str]

SHORT: dict[str, Scenario] = {
    "a member with psql": rights.rights,
    "a fresh machine": partial(together.fresh_machine, number=60),
    "changes while offline": together.offline_edits,
    "a clock a day ahead": together.wrong_clock,
}
LONG: dict[str, Scenario] = {**SHORT}


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
    named = {name: LONG[name] for name in sys.argv[1:] if name in LONG}
    try:
        run(named or (LONG if "--long" in sys.argv else SHORT))
    except NoPostgres as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
