"""`nudge serve`: MCP on stdio; the first one also serves HTTP and holds the hints."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace, _ArgumentGroup
    from collections.abc import Callable

    from nudge.cli.parsing import Parser
    from nudge.config import Setting

EXAMPLES = ("nudge serve", "nudge serve --http-only --port 9000", "claude mcp add nudge -- nudge serve")


def configure(parser: Parser) -> None:
    from argparse import SUPPRESS

    from nudge import config

    parser.add_argument("--http-only", action="store_true", help="serve HTTP until Ctrl-C, without MCP on stdio")
    parser.add_argument("--detach", action="store_true", help="serve on without a client; ends when nobody needs it")
    parser.add_argument("--no-auth", action="store_true", help="let anyone on this machine in over TCP (not advised)")
    parser.add_argument("--successor", metavar="GENERATION", help=SUPPRESS)
    group = parser.add_argument_group("settings (each is a variable too: NUDGE_MAX_HINTS)")
    for setting in config.SETTINGS:
        if setting.whose != config.HOOK and setting.name != "port":
            _add_setting(group, setting)


def _add_setting(group: _ArgumentGroup, setting: Setting) -> None:
    """The text is kept as it was given, as the variable would have it; whether it can be meant is seen at once."""
    if setting.is_switch:
        words = f"do not {setting.meaning}" if setting.default else setting.meaning
        group.add_argument(
            setting.flag, action="store_const", const=str(int(not setting.default)), dest=setting.name, help=words
        )
    else:
        unit = setting.name.rpartition("_")[2].upper()
        group.add_argument(
            setting.flag, type=_checked_by(setting), dest=setting.name, metavar=unit, help=setting.meaning
        )


def _checked_by(setting: Setting) -> Callable[[str], str]:
    def check(text: str) -> str:
        from argparse import ArgumentTypeError

        try:
            setting.parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None
        return text

    return check


def run(arguments: Namespace) -> int:
    from nudge.server import role

    return role.serve(arguments)
