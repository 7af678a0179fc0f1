"""The budgets, one line each. Times are ratios to a baseline of the same run where one exists, since machines
differ."""

from __future__ import annotations

COMMAND = 3.5  # x a bare interpreter: a plain get, set or bump line
CLICK_COMMAND = 8.0  # x a bare interpreter: any other verb
PROXY_START = 4.0  # x a bare interpreter, to the first `tools/list`
PROXY_MEMORY = 25.0  # MB
PRIMARY_START = 5.0  # x the same
PRIMARY_MEMORY = 100.0  # MB
HTTP_REQUESTS = 0.45  # x the requests a second of an empty aiohttp handler, at least: measured 0.48 to 0.65
WIRE_REQUESTS = 0.8  # the same, over the private wire
FLATNESS = 1.3  # x the cost of one `get` among 50 hints, among 5,000
QUERY_BY_INDEX = 5.0  # x `get_hint`: by component, keys, tags or words
QUERY_BY_QUESTION = 8.0  # hints with some of the words, prefixes, phrases: more work for each of ten results
QUERY_BY_REGEX = 25.0  # x the same
FAILOVER = 2.0  # x the start of a bare core (`serve --detach` to its first answer), through a PROXY or a command
FAILOVER_OF_MANY = 3.0  # x the same, until the last of 20 PROXYs that wait has its answer
CALL_IN_HANDOVER = 0.5  # seconds
LEAVING = 1.5  # seconds from end of file to the end of the process
LOOP_HELD = 20.0  # milliseconds
SPOOL_SECONDS = 40.0  # for 150 MB
FAILED = 0.0
STARTS = 1.0  # servers, however many wait for one
GUARD_RECALL = 95.0  # % of formatted tokens that the secret guard finds, at least
ALONE = 97.0  # the same, of secrets that are the whole text
FALSE_ALARMS = 0.1  # % of everyday commands
