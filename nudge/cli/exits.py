"""What the exit code says."""

DONE = 0
NOTHING_FOUND = 1
USAGE = 2
REFUSED = 3
NO_SERVER = 4
INTERRUPTED = 130  # as a shell reports SIGINT
BROKEN_PIPE = 141  # as a shell reports SIGPIPE
