#!/usr/bin/env bash
# Run what Nudge knows, then tell it how that went: a hook, a git alias or a CI step in five lines.
#
#     examples/hook_pipeline.sh COMPONENT KEY
#     PATH="$PWD/.venv/bin:$PATH" examples/hook_pipeline.sh        (a hint of its own, to try it)
#
# Nudge itself never runs anything. This script does, because you asked it to; its exit code is the command's.
# Without a hint that is for here it ends with 1, and stderr says why.
set -u

if [ $# -eq 0 ]; then
    set -- hook-pipeline greet
    nudge set "$1" "$2" 'echo "hello from a hint"' --type command --ttl PT5M --global >/dev/null || exit
fi

command=$(nudge get "$1" "$2" --value-only) || exit

if bash -c "$command"; then
    nudge bump "$1" "$2"
else
    failure=$?
    nudge bump "$1" "$2" --delta -1
    exit "$failure"
fi
