"""What the outcomes of commands teach.

Read `scan` (words and operators of a shell line), then `command` (a simple command, which is a part of its line), then
`shell` (the commands of a line). `store` keeps what was learned, `ops` has the operations.
"""
