"""Agent clients. Everything that is known about one client is in the module of its name (the format of
Claude Code's transcripts in `claude_transcripts`), which `make handshake` writes into `MODULES_OF`.

`registry`      which clients there are, which of them sent a hook event, and what the caller of a tool says
`client`        `AgentClient`, the description that each module fills in, and `Home`, where a user's files are
`executable`    the installed `nudge`, as clients start it
`plan`          what connecting and disconnecting change in a client's files, and how that is undone
`config_files`  the kinds of files that are changed, and the servers, hooks and plugins in them, ours and others';
                `json_edit`, `toml_edit` and `text_edit` change their text
"""

MODULES_OF: dict[str, str] = {
    "claude-code": "claude_code",
    "codex": "codex",
    "cursor": "cursor",
    "gemini": "gemini",
    "opencode": "opencode",
}
"""The clients with a module, by name, in the order in which hooks try them. Written by `make handshake`, into a module
that a hook loads anyway."""
