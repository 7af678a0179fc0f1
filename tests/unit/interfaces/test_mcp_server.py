"""A call that needs variables of its caller's environment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nudge.core.call import Call
from nudge.interfaces.mcp_server import McpCaller, run_with_env


def test_a_call_is_run_again_with_the_variables_it_needs() -> None:
    """However often it turns out to need more; a value that is known stays."""
    asked: list[Sequence[str]] = []

    async def run(caller: McpCaller) -> dict[str, str | None] | None:
        caller.call.env_values(frozenset(("CI",)))
        return caller.call.env_values(frozenset(("CI", "LANG")))

    def ask(names: Sequence[str]) -> dict[str, str | None]:
        asked.append(names)
        return dict.fromkeys(names, f"answer {len(asked)}")

    env = asyncio.run(run_with_env(run, McpCaller(Call(env={})), ask))
    assert env == {"CI": "answer 1", "LANG": "answer 2"}
    assert asked == [["CI"], ["CI", "LANG"]]
