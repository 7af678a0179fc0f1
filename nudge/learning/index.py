"""The facts of one project, found by the tools that they are about and by the failures that they answer.

Each command of a session is compared with them: among two thousand only a few can have to do with it.
"""

from __future__ import annotations

from collections import defaultdict

from nudge.learning.cure import PATH
from nudge.learning.shell import parse_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nudge.learning.cure import Cure
    from nudge.learning.fact import Fact, Key
    from nudge.learning.failures import Failure
    from nudge.learning.outcome import Call

_ANY_TOOL = ""
_TOOL_IS_MISSING = "tool"  # the one family of which a project may have hundreds, each with another program


class FactIndex:
    """`facts` are indexed when a command is compared with them for the first time: a session's start only lists them,
    and reading their commands takes longer than all else that it does."""

    def __init__(self) -> None:
        self.facts: dict[Key, Fact] = {}
        self._new: list[Fact] = []
        """Those that are not indexed yet."""
        self._by_tool: dict[str, dict[Key, Fact]] = defaultdict(dict)
        self._by_failure: dict[str, dict[Key, Fact]] = defaultdict(dict)
        self._tools: dict[str, int] = defaultdict(int)
        """The tools of facts about a whole command, and the number of these facts."""

    def add(self, fact: Fact) -> Fact:
        """Add a fact, unless it is there; return the one that is there then."""
        if (held := self.facts.get(fact.key)) is not None:
            return held
        self.facts[fact.key] = fact
        self._new.append(fact)
        return fact

    def prepare(self) -> None:
        """Index the facts that are not indexed yet."""
        for fact in self._new:
            for tool in _tools(fact.cure):
                self._by_tool[tool][fact.key] = fact
            self._by_failure[_failure_key(fact.cure.failure)][fact.key] = fact
            for tool in fact.tools:
                self._tools[tool] += 1
        self._new.clear()

    def is_about(self, tool: str) -> bool:
        """Whether a fact is about a whole command of the tool."""
        self.prepare()
        return self._tools.get(tool, 0) > 0

    def remove(self, key: Key) -> bool:
        self.prepare()
        fact = self.facts.pop(key, None)
        if fact is None:
            return False
        for tool in _tools(fact.cure):
            self._by_tool[tool].pop(key, None)
        self._by_failure[_failure_key(fact.cure.failure)].pop(key, None)
        for tool in fact.tools:
            self._tools[tool] -= 1
        return True

    def of_tools(self, calls: Iterable[Call]) -> list[Fact]:
        """The facts whose failing command or answer runs one of the tools of these calls, and those about paths."""
        return list(self._of_tools({call.tool for call in calls}).values())

    def of_failing_tool(self, tool: str) -> list[Fact]:
        """The facts about failures of a tool."""
        self.prepare()
        return [fact for fact in self._by_tool.get(tool, {}).values() if fact.cure.tool == tool]

    def alike(self, failure: Failure, calls: Iterable[Call]) -> list[Fact]:
        """The facts that may answer a failure: of its family, or about a tool of the calls."""
        found = self._of_tools({call.tool for call in calls})
        return list({**self._by_failure.get(_failure_key(failure), {}), **found}.values())

    def _of_tools(self, tools: set[str]) -> dict[Key, Fact]:
        self.prepare()
        found: dict[Key, Fact] = {}
        for tool in (_ANY_TOOL, *tools):
            found.update(self._by_tool.get(tool, {}))
        return found


def _tools(cure: Cure) -> Iterator[str]:
    yield cure.tool
    if cure.kind == PATH:
        yield _ANY_TOOL
    else:
        yield from {command.tool for command in parse_known(cure.answer)} - {cure.tool}


def _failure_key(failure: Failure) -> str:
    return f"{failure.family} {failure.detail}" if failure.family == _TOOL_IS_MISSING else failure.family
