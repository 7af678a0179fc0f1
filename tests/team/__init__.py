"""A team of four machines and a real PostgreSQL, on loopback only.

`make team` runs it, and docs/team.md has its figures.
"""
