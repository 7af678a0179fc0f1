"""`nudge serve`: MCP on stdio; the first one also serves HTTP and holds the hints."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.interfaces.cli.parsing import Parser

EXAMPLES = ("nudge serve", "nudge serve --http-only --port 9000", "claude mcp add nudge -- nudge serve")


def configure(parser: Parser) -> None:
    from argparse import SUPPRESS

    parser.add_argument("--http-only", action="store_true", help="serve HTTP until Ctrl-C, without MCP on stdio")
    parser.add_argument("--detach", action="store_true", help="serve on without a client; ends when nobody needs it")
    parser.add_argument("--no-auth", action="store_true", help="let anyone on this machine in over TCP (not advised)")
    parser.add_argument("--tools", metavar="NAMES", help="MCP tools to list: default, all, or names with commas")
    parser.add_argument("--no-secret-guard", action="store_true", help="accept values that look like credentials")
    parser.add_argument("--successor", metavar="GENERATION", help=SUPPRESS)


def run(arguments: Namespace) -> int:
    from nudge.runtime import role

    return role.serve(arguments)
