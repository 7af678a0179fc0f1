"""The clients with a module, by name, in the order in which hooks try them. Written by `make handshake`."""

MODULES_OF: dict[str, str] = {
    "claude-code": "claude_code",
    "codex": "codex",
    "cursor": "cursor",
    "gemini": "gemini",
    "opencode": "opencode",
}
