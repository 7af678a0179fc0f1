"""The verbs that describe the program: man, help, version, and completion, which prints the script for a shell."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from nudge import __version__
from nudge.cli import app, completion, output
from nudge.cli.app import Root, verb
from nudge.cli.output import EXIT_OK, Usage
from nudge.cli.plain import Invocation
from nudge.cli.verbs import GROUPS, SERVER, Verb, find_verb, shown_verbs

_EXIT_STATUS = (
    ("0", "Success."),
    ("1", "Not found: what was named does not exist."),
    ("2", "The command line is wrong."),
    ("3", "Refused; the code and the reason are on stderr."),
    ("4", "No server is running, or it does not answer."),
    ("130", "Interrupted with Ctrl-C."),
    ("141", "The program that reads the output closed it."),
)
_FILES = (("~/.local/state/nudge", "Lock, endpoint, token and change log of the server; one folder per machine."),)
_VARIABLES = (
    ("NUDGE_RUNTIME_DIR", "Directory of the server's lock, endpoint, token and change log."),
    ("NUDGE_AUTOSTART", "0: commands do not start a server."),
    ("NUDGE_OFF", "1: record and inject nothing."),
    ("NO_COLOR", "Print without color."),
)

Rows = list[tuple[str, str]]
Page = list[tuple[str, str | Rows | list[str]]]  # a section's title, and text, terms with meanings, or literal lines


def _complete_verb(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Offer the verbs, or those below the words that are there already: `nudge man note st`."""
    parent = find_verb(*(words := ctx.params.get("words") or ()))
    if words and parent is None:
        return []
    return [
        CompletionItem(entry.word, help=entry.summary)
        for entry in shown_verbs(None, parent.name if parent else "")
        if entry.word.startswith(incomplete)
    ]


_verb_argument = click.argument(
    "words",
    metavar="[COMMAND]",
    nargs=-1,
    help="The command, such as get or note store; without it, nudge itself.",
    shell_complete=_complete_verb,
)


@verb(
    "man",
    "nudge man",
    "nudge man get",
    "nudge man note store",
    "nudge man | man -l -",
    group=SERVER,
    summary="print the manual page of nudge, or of one command",
)
@_verb_argument
def man(invocation: Invocation, words: tuple[str, ...]) -> int:
    """Prints text on a terminal, and a man page (roff) into a pipe."""
    entry = _find(words, "man ") if words else None
    title = f"nudge-{entry.name.replace(' ', '-')}" if entry else "nudge"
    page = _verb_page(entry) if entry else _root_page()
    console = invocation.console
    roff = "\n".join(_roff_lines(title, page))
    console.result({"man": roff}, _text_lines(page) if console.is_terminal else [roff])
    return EXIT_OK


@verb(
    "help",
    "nudge help",
    "nudge help all",
    "nudge help get",
    "nudge help note store",
    group=SERVER,
    summary="show the help of nudge, of one command, or list all",
)
@_verb_argument
def help_command(invocation: Invocation, words: tuple[str, ...]) -> int:
    """The same as `nudge COMMAND --help`. `nudge help all` lists every command by group."""
    if not words:
        return app.main(["--help"])
    if words == ("all",):
        output.print_line(Root().full_help())
        return EXIT_OK
    if find_verb(*words) is None:
        invocation.verb = None
    return app.main([*_find(words).name.split(), "--help"])


@verb(
    "version",
    "nudge version",
    group=SERVER,
    summary="print the version",
    hidden=True,
)
def version(invocation: Invocation) -> int:
    invocation.console.result({"version": __version__}, [f"nudge {__version__}"])
    return EXIT_OK


@verb(
    "completion",
    "source <(nudge completion bash)",
    "nudge completion zsh > ~/.zfunc/_nudge",
    "nudge completion fish > ~/.config/fish/completions/nudge.fish",
    group=SERVER,
    summary="print the completion script for a shell",
)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]), help="bash, zsh or fish.")
def completion_script(invocation: Invocation, shell: str) -> int:
    """Load the script in your shell: Tab then completes commands, options, components, keys, notes, sessions, types and
    clients."""
    text = completion.script(shell)
    invocation.console.result({"script": text}, [text.rstrip("\n")])
    return EXIT_OK


def _find(words: tuple[str, ...], prefix: str = "") -> Verb:
    """Return the verb. `prefix` comes before the name of the verb in the advice for an unknown one."""
    entry = find_verb(*words)
    if entry is None:
        above = find_verb(*words[:-1])
        parent = above.name if above else ""
        advice = app.verb_advice(words[-1], parent).replace("did you mean: nudge ", f"did you mean: nudge {prefix}")
        raise Usage(f"unknown command {' '.join(words)!a}", advice)
    return entry


# Content of a page


def _root_page() -> Page:
    verbs: Page = [
        (f"{group} commands".upper(), [(f"nudge {entry.name}", entry.summary) for entry in shown_verbs(group)])
        for group in GROUPS
    ]
    root = Root()
    return [
        ("NAME", "nudge - the shared memory of the coding agents on one machine"),
        ("SYNOPSIS", ["nudge [-p PORT] [--json] COMMAND [ARGS]..."]),
        (
            "DESCRIPTION",
            "Nudge keeps hints about what works here, notes on what was decided and learned, and a searchable history "
            "of what agents did. The first command "
            "that needs a server starts one; it ends by itself. Each command has its own page: nudge man COMMAND.",
        ),
        *verbs,
        ("OPTIONS", _option_rows(root, _context(root))),
        ("EXAMPLES", list(app.EXAMPLES)),
        ("EXIT STATUS", list(_EXIT_STATUS)),
        ("ENVIRONMENT", list(_VARIABLES)),
        ("FILES", list(_FILES)),
    ]


def _verb_page(entry: Verb) -> Page:
    command = app.load_command(entry)
    ctx = click.Context(command, info_name=entry.name, parent=_context(Root()), **command.context_settings)
    arguments = [param.get_help_record(ctx) for param in command.params if isinstance(param, click.Argument)]
    page: Page = [
        ("NAME", f"nudge {entry.name} - {entry.summary}"),
        ("SYNOPSIS", [" ".join(["nudge", entry.name, *command.collect_usage_pieces(ctx)])]),
        ("DESCRIPTION", " ".join((command.help or "").split())),
        ("ARGUMENTS", arguments),
        ("COMMANDS", [(f"nudge {inner.name}", inner.summary) for inner in shown_verbs(None, entry.name)]),
        ("OPTIONS", _option_rows(command, ctx)),
        ("EXAMPLES", list(command.examples)),
        ("EXIT STATUS", list(_EXIT_STATUS)),
        ("SEE ALSO", "nudge(1)"),
    ]
    return [(title, content) for title, content in page if content]


def _context(root: Root) -> click.Context:
    return click.Context(root, info_name="nudge")


def _option_rows(command: click.Command, ctx: click.Context) -> Rows:
    records = (param.get_help_record(ctx) for param in command.get_params(ctx) if isinstance(param, click.Option))
    return [record for record in records if record is not None]


# Formats: roff and text


def _roff_lines(title: str, page: Page) -> Iterator[str]:
    yield f'.TH "{_roff(title.upper())}" "1" "" "nudge {__version__}" "Nudge Manual"'
    for name, content in page:
        yield f".SH {_roff(name)}"
        if isinstance(content, str):
            yield _roff(content)
            continue
        for item in content:
            if isinstance(item, str):
                yield from (".PP", ".nf", _roff(item), ".fi")
            else:
                yield from (".TP", rf"\fB{_roff(item[0])}\fR", _roff(item[1]))


def _roff(text: str) -> str:
    """Escape backslashes, hyphens (they must stay copyable) and a dot or quote that would begin a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def _text_lines(page: Page) -> Iterator[str]:
    for name, content in page:
        yield name
        if isinstance(content, str):
            yield from textwrap.wrap(content, 76, initial_indent="    ", subsequent_indent="    ")
        elif content and isinstance(content[0], str):
            yield from (f"    {line}" for line in content)
        else:
            rows: Any = content
            for term, meaning in rows:
                yield f"    {term}"
                yield from textwrap.wrap(meaning, 76, initial_indent="        ", subsequent_indent="        ")
        yield ""
