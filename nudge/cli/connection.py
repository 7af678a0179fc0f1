"""A client as the command line asks for it. Imported by the verbs that talk to a server, and only when they do."""

from __future__ import annotations

import os

from nudge import config
from nudge.ipc.client import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace


def connect(arguments: Namespace) -> Client:
    """`--env` stands in front of the real environment, so that only names which a scope asks for leave this process."""
    env = {**os.environ, **dict(getattr(arguments, "env", None) or ())}
    return Client(env=env, port=arguments.port, autostart=config.load().autostart)


def look(arguments: Namespace) -> Client:
    """One that starts nothing, and so needs no settings: a broken one must not hide the server."""
    return Client(port=arguments.port, autostart=False)
