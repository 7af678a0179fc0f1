"""Which line of an error says most about its cause."""

from __future__ import annotations

import re

_CAUSE = re.compile(
    r"\w(?:Error|Exception)\b|(?i:\b(?:error|fatal|panic)\b)"
    r"|(?i:\b(?:not found|no such|cannot|can't|undefined|refused|denied|missing|required|not set)\b)"
)
# Lines that say only that something failed, or what is run.
_NOT_A_CAUSE = re.compile(
    r"\s*(?:$|Exit code \d+|[>$+] |make(?:\[\d+\])?: (?:\*\*\* \[|Entering|Leaving)"
    r"|npm (?:ERR!|error) (?:code|errno|A)\b|(?:error )?Command failed with exit code|.*ELIFECYCLE"
    r"|task: \[|task: Failed to run task|error: Recipe )"
)
_MAKE_FAILED = re.compile(r"^g?make(?:\[\d+\])?: \*\*\* \[", re.MULTILINE)
_RECIPE = re.compile(r"(?:\w+=\S* )*(?:[\w./-]+ )*(?:&& |\|\| |-[\w-]+(?:[ =]|$))")


def error_line(error: str) -> str:
    """The line of an error that says most about its cause."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    causes = [line for line in lines if not _NOT_A_CAUSE.match(line)]
    if _MAKE_FAILED.search(error):  # make prints each command of the recipe before it runs it
        causes = [line for line in causes[1:] if not _RECIPE.match(line)] or causes
    named = (line for line in causes if _CAUSE.search(line))
    return next(named, causes[0] if causes else (lines[0] if lines else ""))
