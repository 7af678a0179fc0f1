"""Faults, for real: processes killed, stopped, raced and starved. `make crash` prints each scenario with its figures.

A scenario is a function that does the thing, asserts what must hold, and returns its figures. The quick half of them
runs in
`make test` too, with smaller numbers.
"""
