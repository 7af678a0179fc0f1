"""What is asked of any repository: a prompt that means nearly this is about none of its notes.

The closest note to "sort the imports" is the one that says something about imports, and was not meant. How close a
prompt is to these is taken from how close it is to a note.
"""

from __future__ import annotations

EVERYDAY = (
    "rename this variable",
    "fix the typo in the comment",
    "format the file",
    "add type hints here",
    "write a docstring for this function",
    "explain what this line does",
    "run the tests again",
    "which tests failed",
    "commit and push",
    "write a commit message",
    "undo the last change",
    "update the readme",
    "sort the imports",
    "remove the unused code",
    "fix the lint warnings",
    "split this function in two",
    "move this into its own file",
    "add a unit test for this",
    "what does this error mean",
    "make the button bigger",
    "change the color of the header",
    "align the text in the table",
    "fix the layout on small screens",
    "replace the logo on the home page",
    "put a link in the footer",
    "translate the labels",
    "bump the dependency to the next version",
    "why is the build slow",
    "show me the diff",
    "open a pull request",
    "clean up the branch",
    "print the version of the tool",
    "list the files in this directory",
    "add a line to the log",
    "delete the old files",
    "rename the file",
    "where is this function used",
    "make the error message clearer",
    "thanks, that works",
    "go on",
    "stop, wait a moment",
    "what do you think",
    "try it the other way",
)
NEAREST = 3
"""Of these a prompt is compared with the mean of so many that are nearest."""
