"""Command lines that are no work: calls of Nudge itself, and lines that only look around."""

from __future__ import annotations

from nudge.learning.shell import parse_commands

_NUDGE = frozenset(("nudge", "nudge-mcp"))
_ON_THE_WAY = frozenset(("cd", "pushd", "popd", "export", "set", "source", ".", "true", ":", ""))
_LOOKING = frozenset(("echo", "printf", "ls", "sleep", "cat", "pwd", "false", "which", "wait"))


def is_own_call(line: str) -> bool:
    """Whether a line runs `nudge` and nothing else of interest: `cd api && nudge search x | head`."""
    tools = _tools(line)
    return not tools.isdisjoint(_NUDGE) and tools <= _NUDGE | _ON_THE_WAY


def is_idle(line: str) -> bool:
    """Whether a line only looks around, so that its failure says nothing: `ls /nowhere`, `cd x && cat y`."""
    tools = _tools(line)
    return bool(tools) and tools <= _NUDGE | _ON_THE_WAY | _LOOKING


def _tools(line: str) -> frozenset[str]:
    """The tools that a line runs, without those that only read what another one prints. A line that cannot be read
    counts by its first word."""
    commands = parse_commands(line)
    tools = frozenset(one.tool for one in commands if one.preceded_by not in ("|", "|&"))
    return tools if commands else frozenset(line.split()[:1])
