"""A machine without a team has nothing of it."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys
import nudge.process.primary, nudge.interfaces.operations
print(sorted(name for name in sys.modules if name.startswith(("nudge.team.", "asyncpg"))))
"""


def test_a_server_without_a_team_loads_two_modules_for_it() -> None:
    """The operations, and nothing that they would need: no connection, no library, no store."""
    done = subprocess.run([sys.executable, "-c", _LOADED], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "['nudge.team.ops']"
