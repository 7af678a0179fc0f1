"""The commands that build, test, run, lint and format a repo, read from its manifests. Nothing in them is executed.

Offers `scan_repo(root, name) -> RepoScan`: its commands, the problems met, and the paths that could not be read.
"""

from nudge.manifests.commands import Command
from nudge.manifests.scan import RepoScan, scan_repo

__all__ = ["Command", "RepoScan", "scan_repo"]
