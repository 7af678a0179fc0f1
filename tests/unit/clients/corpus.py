"""Configuration files as people and programs write them. None has anything of ours but those that say so."""

from __future__ import annotations

HOOK_OF_ANOTHER = '{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo hi", "timeout": 9}]}'

JSON = {
    "empty object": "{}",
    "empty object and newline": "{}\n",
    "spaced empty object": "{ }\n",
    "two spaces": '{\n  "model": "opus",\n  "mcpServers": {\n    "other": {\n      "command": "cat"\n    }\n  }\n}\n',
    "four spaces": '{\n    "theme": "dark",\n    "env": {\n        "A": "1"\n    }\n}\n',
    "tabs": '{\n\t"a": [\n\t\t1,\n\t\t2\n\t],\n\t"mcpServers": {\n\t\t"x": {}\n\t}\n}\n',
    "no newline at the end": '{\n  "a": 1\n}',
    "carriage returns": '{\r\n  "a": 1,\r\n  "mcpServers": {\r\n    "x": {"command": "c"}\r\n  }\r\n}\r\n',
    "one line": '{"a": 1, "mcpServers": {"x": {"command": "c"}}}',
    "one line, packed": '{"a":1,"hooks":{},"mcpServers":{}}',
    "empty containers": '{\n  "hooks": {},\n  "mcpServers": {}\n}\n',
    "empty list of an event": '{\n  "hooks": {\n    "PostToolUse": []\n  }\n}\n',
    "hooks of others": (
        f'{{\n  "hooks": {{\n    "PostToolUse": [\n      {HOOK_OF_ANOTHER}\n    ],\n    '
        f'"Stop": [{HOOK_OF_ANOTHER}]\n  }}\n}}\n'
    ),
    "hooks of others on one line": (
        f'{{"hooks": {{"PostToolUse": [{HOOK_OF_ANOTHER}], "SessionStart": [{HOOK_OF_ANOTHER}]}}}}\n'
    ),
    "line comments": (
        '// mine\n{\n  // first\n  "a": 1, // after\n  "mcpServers": {\n    "x": {} // last\n  }\n  // end\n}\n// bye\n'
    ),
    "block comments": '/* mine */ { /* a */ "a": /* b */ 1 /* c */ , "mcpServers": { /* none */ } /* d */ }\n',
    "trailing commas": '{\n  "a": 1,\n  "mcpServers": {\n    "x": {"args": ["y",],},\n  },\n}\n',
    "comment at the end of one line": '{"a": 1 // one\n}\n',
    "only comments": "// nothing yet\n",
    "only a comment, no newline": "/* nothing yet */",
    "space and newlines": "\n  \n",
    "nothing": "",
    "odd indentation": '{\n"a": 1,\n       "mcpServers": {\n "x": {}}}\n',
    "not ASCII": '{\n  "näme": "ü — 漢字 \\u00fc \\ud83d\\ude00",\n  "path": "C:\\\\x"\n}\n',
    "byte order mark": '\ufeff{\n  "a": 1\n}\n',
    "the same name twice": '{"mcpServers": {"a": {}}, "b": 1, "mcpServers": {"c": {}}}',
}

OLD_HOOK = '{"hooks": [{"type": "command", "command": "/old/bin/nudge record", "timeout": 60}]}'
OLD_JSON = {
    "old server": (
        '{\n  "mcpServers": {\n    "nudge": {\n      "command": "/old/nudge",\n      '
        '"env": {"NUDGE_DB": "/d"}\n    }\n  }\n}\n'
    ),
    "old hook": f'{{\n  "hooks": {{\n    "PostToolUse": [\n      {OLD_HOOK}\n    ]\n  }}\n}}\n',
    "old hook of an event that is wired no more": f'{{"hooks": {{"Notification": [{OLD_HOOK}]}}}}',
    "old hook in the group of another": (
        '{"hooks": {"PostToolUse": [{"hooks": [{"command": "a"}, {"command": "nudge record"}, {"command": "b"}]}]}}'
    ),
}

TOML = {
    "nothing": "",
    "newline": "\n",
    "only a comment": "# mine\n",
    "no newline at the end": 'model = "m"',
    "a table": '# top\nmodel = "m" # why\n\n[tui]\ntheme = "dark"\n',
    "servers of others": (
        '[mcp_servers.other]\ncommand = "cat"\nargs = ["a", "b"]\n\n[mcp_servers.other.env]\nA = "1"\n'
    ),
    "parent written out": "[mcp_servers]\n\n[mcp_servers.x]\ncommand = 'c'\n",
    "carriage returns": 'model = "m"\r\n\r\n[tui]\r\ntheme = "x"\r\n',
    "blank lines at the end": 'model = "m"\n\n\n',
    "array of tables": "[[rules]]\na = 1\n[[rules]]\na = 2\n",
    "multi-line string": 'text = """\n[mcp_servers.fake]\n# not a comment\n"""\n[x]\ny = [\n  [1],\n  [2],\n]\n',
    "tabs and comments": "\t# x\n[a]\n\tb = 1\t# c\n\n# about what follows\n[c]\n",
    "quoted keys": '[mcp_servers."my server"]\ncommand = "c"\n[projects."/home/u/nudge"]\ntrust_level = "trusted"\n',
    "nested inline": 'a = { b = { c = [1, 2] } }\n[mcp_servers.y]\nurl = "http://x"\n',
}

OLD_TOML = {
    "old table": (
        'model = "m"\n\n[mcp_servers.nudge]\ncommand = "/old/nudge"\nargs = [\n  "serve",\n]\n\n[tui]\ntheme = "x"\n'
    ),
    "old table with its own": (
        '[mcp_servers.nudge]\ncommand = "nudge"\n[mcp_servers.nudge.env]\nA = "1"\n# about tui\n[tui]\n'
    ),
    "quoted": '[mcp_servers."nudge"]\ncommand = "nudge"\n',
    "one mark lost": '[mcp_servers.nudge]\ncommand = "n"\n\n[mcp_servers.zzz]\ncommand = "c"\n# <<< nudge\n',
    "a table between the marks": (
        '# >>> nudge\n[mcp_servers.nudge]\ncommand = "n"\n\n[projects."/p"]\ntrust_level = "trusted"\n# <<< nudge\n'
    ),
}
