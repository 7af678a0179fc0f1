"""The commands that build, test, run, lint and format a repo, read from its manifests. Nothing in them is executed.

* `scan_repo(root, name)`: the commands of a repo, the problems met, and the paths that could not be read.
* `commands_of_directory(directory)`: those of one directory. `recipe_of(directory, command)`: what a target runs.
* `root_component(root, name)`: the component of a repo's root.
* `job_invocation(cmd)`: which job a command line does. `uses_same_tool(cmd, other)`: whether two run the same tool.
* `defined_targets(file, text)`: the targets or scripts of a Makefile, justfile or package.json.
"""

from nudge.manifests.commands import Command, job_invocation, uses_same_tool
from nudge.manifests.scan import RepoScan, commands_of_directory, defined_targets, recipe_of, root_component, scan_repo

__all__ = [
    "Command",
    "RepoScan",
    "commands_of_directory",
    "defined_targets",
    "job_invocation",
    "recipe_of",
    "root_component",
    "scan_repo",
    "uses_same_tool",
]
