"""The verbs `on` and `off`, which turn recording and telling on and off."""

from __future__ import annotations

import os

from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK
from nudge.cli.params import option
from nudge.cli.plain import Invocation
from nudge.cli.verbs import HISTORY
from nudge.core import paths
from nudge.core.context import project_name, resolve
from nudge.core.errors import Invalid
from nudge.core.text import escape
from nudge.settings import switches as switch


@verb(
    "off",
    "nudge off",
    "nudge off --all",
    "NUDGE_OFF=1 claude",
    group=HISTORY,
    summary="turn off recording and telling in this repo",
)
@option("--all", "everywhere", is_flag=True, help="Turn it off in all repos.")
def off(invocation: Invocation, everywhere: bool) -> int:
    """Hooks record nothing and agents are told nothing until `nudge on`. Set NUDGE_OFF=1 to turn it off for one run."""
    here = resolve()
    if not everywhere and switch.project_key(here) is None:
        raise Invalid("the current directory does not exist; cd to the repo, or use: nudge off --all")
    switches = switch.turn_off(paths.runtime_dir(), None if everywhere else here)
    where = "everywhere" if everywhere else f"for {escape(project_name(here.project or 'this repo'))}"
    undo = f"; turn them on with: {escape(reason.fix)}" if (reason := switches.why(here)) else ""
    styler = invocation.console.styler
    result = {"recording": False, **switches.to_json()}
    invocation.console.result(result, [styler.done(f"recording and telling are off {where}{undo}")])
    return EXIT_OK


@verb(
    "on",
    "nudge on",
    "nudge on --all",
    group=HISTORY,
    summary="turn on recording and telling in this repo",
)
@option(
    "--all",
    "everywhere",
    is_flag=True,
    help="Turn it on in all repos, including those that were turned off one by one.",
)
def on(invocation: Invocation, everywhere: bool) -> int:
    """Undoes `nudge off`. Fails when NUDGE_OFF or a setting keeps it off, and says which."""
    here = resolve()
    if off := switch.why_off_for_this_run(os.environ) or switch.why_off_by_settings(os.environ, here):
        raise switch.still_off(off)
    switches = switch.turn_on(paths.runtime_dir(), None if everywhere else here)
    where = "every repo" if everywhere else escape(project_name(here.project or "this repo"))
    styler = invocation.console.styler
    result = {"recording": True, **switches.to_json()}
    invocation.console.result(result, [styler.done(f"recording and telling are on for {where}")])
    return EXIT_OK
