"""What the outcomes of commands teach.

Read `scan` (words and operators of a shell line), `command` (a simple command, which is a part of its line) and
`shell` (the commands of a line); then `outcome` (what a command did), `failures` (why it failed, by `families`) and
`trail` (the commands of a session in order). `attempt` is a failure with a success, `cures` says whether the one
answers the other and what helped, by `call_cures`, `option_cures` and `step_cures`; `told_span` cuts what is told out
of the line that ran, `poison` says whether it may be. `matching` says which cure answers the next failure,
`refutation` which fact no longer holds. `facts` has all facts of all projects, `store` keeps them, `ops` has the
operations.
"""
