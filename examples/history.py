"""What one agent did, the next one finds: hook events in, a search and a trace out.

A client's hook pipes one JSON object into `nudge record` for each event; here a short session is told that way, looked
up, and deleted.

    .venv/bin/python examples/history.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

SESSION = "example-history"


def nudge(*words: str, stdin: str = "") -> str:
    """The output of `nudge ...`, also where the command is not on PATH."""
    return subprocess.run(
        [sys.executable, "-m", "nudge", *words], check=True, capture_output=True, text=True, input=stdin
    ).stdout


def record(event: str, **facts: Any) -> None:
    nudge("record", stdin=json.dumps({"session_id": SESSION, "cwd": os.getcwd(), "hook_event_name": event, **facts}))


def settle() -> None:
    """A hook never waits for a busy server: its event is put aside, and taken in within a moment."""
    while json.loads(nudge("status", "--json"))["spool"]["files"]:
        time.sleep(0.1)


def tell_a_session() -> None:
    record("UserPromptSubmit", prompt="Make the frobnicator pass its tests")
    record(
        "PostToolUseFailure",
        tool_name="Bash",
        tool_input={"command": "frobnicate --test"},
        error="Exit code 3\nno device",
    )
    record(
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "FAKE_DEVICE=1 frobnicate --test"},
        tool_response={"stdout": "ok"},
    )
    settle()


def look_it_up() -> None:
    failure = json.loads(nudge("search", "frobnicate", "--type", "command_error", "--full", "--json"))[0]
    print("failed before:", failure["content"], "- exit code", failure["metadata"]["exit_code"])
    prompt = json.loads(nudge("trace", failure["session_id"], "--json"))["prompts"][0]
    print("it was about: ", prompt["content"])
    print("what worked:  ", prompt["observations"][-1]["content_preview"])


def main() -> None:
    nudge("sessions")  # starts a server if there is none; `record` never waits for one
    try:
        tell_a_session()
        look_it_up()
    finally:
        # Your history is real; this was not.
        gone = json.loads(nudge("purge", "--session", SESSION, "--confirm", "--json"))
        print("cleaned up:   ", gone["total"], "observations")


if __name__ == "__main__":
    main()
