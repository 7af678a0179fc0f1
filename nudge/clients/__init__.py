"""Wiring clients: the MCP server and the hooks written into their configuration, and taken out again to the byte."""
