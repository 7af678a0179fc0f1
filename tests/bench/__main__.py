"""`python -m tests.bench`: measure every budget and say which is missed."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator

from tests.bench import (
    budgets,
    decisions,
    failure_pairs,
    guard,
    handover,
    hostile,
    moments,
    notes,
    observations,
    page,
    prompts,
    queries,
    replay,
    report,
    retrieval,
    spools,
    start_texts,
    starts,
    throughput,
)
from tests.bench.report import Row
from tests.harness import Machine

GROUPS: dict[str, Callable[[Machine], Iterator[Row]]] = {
    "get": starts.commands,
    "proxy": starts.proxy,
    "primary": starts.primary,
    "http": throughput.requests,
    "query": queries.by_index,
    "kill": handover.killed,
    "handover": handover.graceful,
    "hostile": hostile.requests,
    "spool": spools.taking_in,
    "record": observations.recording,
    "moments": moments.hooks,
    "injection": observations.injection,
    "insert": observations.inserting,
    "find": observations.finding,
    "find-large": observations.finding_large,
    "guard": guard.recall,
    "retrieval": retrieval.recall,
    "retrieval-large": retrieval.large,
    "search-questions": retrieval.search,
    "replay": replay.telling,
    "failure-pairs": failure_pairs.answers,
    "notes": notes.flat,
    "recall-mcp": notes.over_mcp,
    "toon": notes.toon_tokens,
    "prompts": prompts.answers,
    "decisions": decisions.prompts,
    "decisions-files": decisions.touches,
    "decisions-carried": decisions.carried,
    "start-texts": start_texts.texts,
    "page": page.views,
}


def main() -> int:
    options = _options()
    rows = [row for name in options.only or GROUPS for row in _measured(name, quiet=options.json)]
    print(report.as_json(rows) if options.json else report.table(rows))
    return 0 if all(row.ok for row in rows) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="Measure every budget; exit 1 when one is missed."
    )
    parser.add_argument(
        "--only", action="append", choices=GROUPS, metavar="NAME", help=f"one group: {', '.join(GROUPS)} (repeatable)"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    return parser.parse_args()


def _measured(name: str, *, quiet: bool) -> list[Row]:
    if not quiet:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
    machine = Machine()
    rows: list[Row] = []
    try:
        rows.extend(GROUPS[name](machine))
    except Exception as error:  # the other groups are measured all the same
        traceback.print_exc()
        rows.append(Row(name, f"stopped by {type(error).__name__}", 1, budgets.FAILED, "", note=str(error)[:100]))
    finally:
        machine.close()
    return rows


if __name__ == "__main__":
    sys.exit(main())
