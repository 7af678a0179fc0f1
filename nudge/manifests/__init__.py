"""Which commands build, test, run, lint and format a repo, as its manifests tell. Nothing is executed or imported."""

from nudge.manifests.finding import Reading, find_commands, read_manifests
from nudge.manifests.model import KEYS, Found

__all__ = ["KEYS", "Found", "Reading", "find_commands", "read_manifests"]
