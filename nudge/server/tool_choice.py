"""Which MCP tools a client lists. The choice is checked before anybody speaks MCP, so the SDK is not needed here."""

from __future__ import annotations

from nudge.errors import Invalid
from nudge.limits import MAX_NAME_CHARS
from nudge.server.operations import OPERATIONS

_ALL = tuple(operation.tool for operation in OPERATIONS.values())
_LISTED = tuple(operation.tool for operation in OPERATIONS.values() if operation.listed)


def chosen_tools(choice: str) -> list[str]:
    """`default`, `all`, or names separated by commas; every tool stays callable."""
    if choice in ("all", "default"):
        return list(_ALL if choice == "all" else _LISTED)
    return list(dict.fromkeys(_known(name.strip()) for name in choice.split(",")))


def _known(name: str) -> str:
    """`nudge_get_hint`, `nudge.get_hint` or `get_hint`: which of them have the prefix nobody need remember."""
    bare = name.replace(".", "_").removeprefix("nudge_")
    found = next((tool for tool in (f"nudge_{bare}", bare) if tool in _ALL), None)
    if found is None:
        known = ", ".join(tool.removeprefix("nudge_") for tool in _ALL)
        raise Invalid(f"there is no {name[:MAX_NAME_CHARS]!a}; there are: {known}", field="tools")
    return found
