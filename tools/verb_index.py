"""Write `nudge/cli/verb_index.py`: the names of the verbs, each with the module that has it."""

from __future__ import annotations

from pathlib import Path

from nudge.cli.verbs import modules_by_name

FILE = Path(__file__).parents[1] / "nudge" / "cli" / "verb_index.py"


def text() -> str:
    """Return the file as it should be."""
    lines = ['"""The names of the verbs, each with the module to import for it. Written by `make handshake`."""', ""]
    lines += ["MODULES_OF: dict[str, str] = {"]
    lines += [f'    "{name}": "{module}",' for name, module in modules_by_name().items()]
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    FILE.write_text(text())
