"""Security: checks of what comes from outside.

* `secrets`: finding and redacting credentials, with `credentials` (is a value one?) and `formats` (vendors' tokens).
* `paths`: absolute paths; `globs` and `regex`: patterns of users, at bounded cost.
"""
