"""`make crash`: every scenario with its figures; exit 1 when one fails. `--soak` multiplies the long ones."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial

from tests.crash import (
    clocks,
    damage,
    descriptors,
    disks,
    foreign_servers,
    handover,
    hosts,
    journal,
    kills,
    memories,
    recorders,
    starters,
    stopped,
    storms,
    transfers,
    versions,
)
from tests.crash.writers import Figures

Scenario = Callable[[], Figures]


def scenarios(factor: int) -> dict[str, Scenario]:
    return {
        "client_closes_stdin": partial(handover.client_closes_stdin, 5 * factor),
        "sigterm_to_the_group": partial(handover.sigterm_to_the_group, 3 * factor),
        "sigkill_during_the_handover": partial(handover.sigkill_during_the_handover, 8 * factor),
        "smallest_case": partial(kills.smallest_case, 10 * factor),
        "kill_under_load": partial(kills.kill_under_load, 200 * factor),
        "killed_while_http_loads": partial(kills.killed_while_http_loads, 5 * factor),
        "killed_during_an_import": partial(transfers.killed_during_an_import, 12 * factor),
        "killed_while_agents_take_notes": partial(memories.killed_while_agents_take_notes, 15 * factor),
        "killed_without_a_retry": partial(memories.killed_without_a_retry, 12 * factor),
        "killed_during_an_import_or_sync": partial(memories.killed_during_an_import_or_sync, 12 * factor),
        "killed_while_agents_keep_the_journal": partial(journal.killed_while_agents_keep_the_journal, 15 * factor),
        "killed_at_a_step_of_an_attempt": partial(journal.killed_at_a_step_of_an_attempt, 6 * factor),
        "stopped_primary": stopped.stopped_primary,
        "force_stop_of_a_stopped_primary": stopped.force_stop_of_a_stopped_primary,
        **{f"waiting_proxies_{count}": partial(starters.waiting_proxies, count) for count in (1, 10, 40)},
        **{f"waiting_commands_{count}": partial(starters.waiting_commands, count) for count in (1, 10, 40)},
        "leaving_primary": partial(starters.leaving_primary, 20),
        "stopped_starter": starters.stopped_starter,
        "fifty_at_once": partial(storms.fifty_at_once, 20 * factor),
        "port_is_taken": foreign_servers.port_is_taken,
        "impostor_never_sees_the_token": foreign_servers.impostor_never_sees_the_token,
        "recycled_pid": foreign_servers.recycled_pid,
        "started_twice_and_for_a_moment": hosts.started_twice_and_for_a_moment,
        "does_not_read_its_stdout": hosts.does_not_read_its_stdout,
        "open_and_close": partial(storms.open_and_close, 500 * factor),
        "many_calls": partial(storms.many_calls, 100_000 * factor),
        "full_disk": disks.full_disk,
        "full_disk_at_the_start": disks.full_disk_at_the_start,
        "forget_on_a_full_disk": disks.forget_on_a_full_disk,
        "read_only_home": disks.read_only_home,
        "flipped_byte_in_the_log": partial(damage.flipped_byte_in_the_log, 4 * factor),
        "unreadable_log": damage.unreadable_log,
        "removed_database": partial(damage.removed_database, 2 * factor),
        "removed_write_ahead_log": partial(damage.removed_write_ahead_log, 2 * factor),
        "flipped_bits_of_the_database": partial(damage.flipped_bits_of_the_database, 25 * factor),
        "damaged_database": damage.damaged_database,
        "idle_connections": descriptors.idle_connections,
        "silent_connections": descriptors.silent_connections,
        "steps_of_a_day": clocks.steps_of_a_day,
        "suspend_of_a_day": clocks.suspend_of_a_day,
        "somebody_removes_the_files": hosts.somebody_removes_the_files,
        "somebody_moves_the_directory": hosts.somebody_moves_the_directory,
        "another_server_at_the_directory": hosts.another_server_at_the_directory,
        "replayed_payloads_up": partial(recorders.replayed_payloads, "up"),
        "replayed_payloads_down": partial(recorders.replayed_payloads, "down"),
        "replayed_payloads_killed": partial(recorders.replayed_payloads, "killed"),
        "eight_recorders": partial(recorders.eight_recorders, 8, 1_000 * factor),
        "newer_code_takes_over": versions.newer_code_takes_over,
        "older_code_starts_the_newer": versions.older_code_starts_the_newer,
        "newer_command_upgrades": versions.newer_command_upgrades,
        "upgraded_on_disk": versions.upgraded_on_disk,
        "log_of_a_newer_format": versions.log_of_a_newer_format,
    }


def run(name: str, scenario: Scenario) -> bool:
    began = time.monotonic()
    try:
        figures, passed = "  ".join(f"{key}={value}" for key, value in scenario().items()), True
    except Exception as error:
        figures, passed = f"{type(error).__name__}: {str(error)[:300]}", False
        traceback.print_exc()
    print(f"{'ok    ' if passed else 'FAILED'} {name:32} {time.monotonic() - began:6.1f} s  {figures}", flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--soak", action="store_true", help="five times the rounds")
    parser.add_argument("--only", help="scenarios whose name contains this")
    arguments = parser.parse_args()
    chosen = {
        name: scenario
        for name, scenario in scenarios(5 if arguments.soak else 1).items()
        if (arguments.only or "") in name
    }
    results = [run(name, scenario) for name, scenario in chosen.items()]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
