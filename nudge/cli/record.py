"""`nudge record`: what clients' hooks run. `nudge record` alone never comes here (see `__main__`); help and mistakes
do."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge record < event.json",)


def configure(parser: Parser) -> None:
    """All it needs is on stdin."""


def run(arguments: Namespace) -> int:  # noqa: ARG001
    from nudge import hook as record

    return record.main(None if sys.stdin is None else sys.stdin.buffer, os.environ)
