"""Write the end of `nudge/clients/__init__.py`: the names of the clients that have a module, each with its module."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

FILE = Path(__file__).parents[1] / "nudge" / "clients" / "__init__.py"
_START = "\nMODULES_OF: dict[str, str] = {\n"
_END = '''}
"""The clients with a module, by name, in the order in which hooks try them. Written by `make handshake`, into a module
that a hook loads anyway."""
'''
_FIRST = "claude-code"  # most hooks are its own: a hook imports clients one at a time until one knows the event


def text() -> str:
    """Return the file as it should be: a module of a client is one that has a `CLIENT`."""
    modules = [path.stem for path in FILE.parent.glob("*.py") if "\nCLIENT = " in path.read_text()]
    clients = [(import_module(f"nudge.clients.{module}").CLIENT.name, module) for module in modules]
    clients.sort(key=lambda client: (client[0] != _FIRST, client[0]))
    before, start, _ = FILE.read_text().partition(_START)
    return before + start + "".join(f'    "{name}": "{module}",\n' for name, module in clients) + _END


if __name__ == "__main__":
    FILE.write_text(text())
