"""The command line for people. `app.main` runs a line with click; `plain` has get, set and bump without it."""
