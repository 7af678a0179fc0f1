"""The commands that build, test, run, lint and format a repo, read from its manifests. Nothing in them is executed.

Offers `scan_repo(root, name) -> RepoScan`: its commands, the problems met, and the paths that could not be read;
`root_component(root, name)`: the component of a repo's root; `job_invocation(cmd)`: which job a command line does;
`uses_same_tool(cmd, other)`: whether two of them run the same tool; `defined_targets(file, text)`: the targets or
scripts of a Makefile, justfile or package.json.
"""

from nudge.manifests.commands import Command, job_invocation, uses_same_tool
from nudge.manifests.scan import RepoScan, defined_targets, root_component, scan_repo

__all__ = [
    "Command",
    "RepoScan",
    "defined_targets",
    "job_invocation",
    "root_component",
    "scan_repo",
    "uses_same_tool",
]
