"""`nudge unpin`: let retention have an observation again."""

from __future__ import annotations

from nudge.cli import pin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

EXAMPLES = ("nudge unpin 42", "nudge unpin 42 43 44")

configure = pin.configure


def run(arguments: Namespace) -> int:
    return pin.change(arguments, pinned=False)
