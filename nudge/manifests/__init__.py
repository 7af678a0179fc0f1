"""Which commands build, test, run, lint and format a repo, as its manifests tell. Nothing is executed or imported."""

from nudge.manifests.finding import find_commands, find_commands_with_problems
from nudge.manifests.model import KEYS, Found

__all__ = ["KEYS", "Found", "find_commands", "find_commands_with_problems"]
