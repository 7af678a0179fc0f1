"""The click application: the root command, which loads the module of a verb on first use, and `main`.

A module of verbs declares each with `@verb("name", examples...)`; `--json`, `--port`, `--help` and `--version` come
with the decorator, so that every verb takes them anywhere on the line. A verb whose name has two words, `note store`,
is listed by the help of the first.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import cleandoc
from typing import Any

import click
from click.exceptions import Exit, MissingParameter, NoSuchOption

from nudge import __version__
from nudge.cli import completion, output
from nudge.cli.output import EXIT_INTERRUPTED, EXIT_OK, Usage
from nudge.cli.params import GLOBAL_SECTION, PORT, Option
from nudge.cli.plain import Invocation
from nudge.cli.verbs import GROUPS, Verb, all_verbs, find_verb, first_verbs, register, shown_verbs
from nudge.core.errors import Invalid, NudgeError

_NEGATIVE_NUMBER = re.compile(r"-\d+\Z|-\d*\.\d+\Z")
_SETTINGS = {"help_option_names": ["-h", "--help"], "allow_extra_args": True, "max_content_width": 110}


_COMMANDS: dict[str, VerbCommand] = {}  # filled by the modules of verbs as they are imported


def load_command(entry: Verb) -> VerbCommand:
    """Import the module of a verb, and return its command."""
    import_module(entry.module)
    return _COMMANDS[entry.name]


class VerbCommand(click.Command):
    """A command whose help lists options in sections, then the global options and examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params += _global_options()

    def make_parser(self, ctx: click.Context) -> Any:
        """Return a parser that takes a negative number as a value, never as an option: `nudge set api retries -1`."""
        parser = super().make_parser(ctx)
        process_option = parser._process_opts

        def process(arg: str, state: Any) -> None:
            if _NEGATIVE_NUMBER.match(arg):
                state.largs.append(arg)
            else:
                process_option(arg, state)

        parser._process_opts = process  # type: ignore[method-assign]
        return parser

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the help option, which prints as every verb does: click's own does not report a full disk."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            raise Usage(f"unexpected argument {' '.join(rest)!a}", self._advice_for(rest))
        return rest

    def _advice_for(self, rest: list[str]) -> str:
        """What to type instead of arguments that the verb does not take: `nudge bump api build -1` means --delta,
        `nudge note forget scratch` --pattern."""
        if _NEGATIVE_NUMBER.match(rest[0]) and any(param.name == "delta" for param in self.params):
            return f"give it as: --delta {rest[0]}"
        if any(param.name == "pattern" for param in self.params):
            return f"give it as: --pattern {shlex.quote(' '.join(rest))}"
        return "quote a value that contains spaces"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and not isinstance(param, click.Argument):
                sections.setdefault(getattr(param, "section", GLOBAL_SECTION), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"  {example}\n")


def _show_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        output.print_line(ctx.get_help())
        ctx.exit()


def verb(
    name: str,
    *examples: str,
    group: str,
    summary: str,
    operations: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
    unlisted: tuple[str, ...] = (),
    hidden: bool = False,
) -> Callable[[Callable[..., int]], VerbCommand]:
    """Make a function the command of a verb, and register the verb. It gets the `Invocation` first, then its
    parameters. The help is the summary, then the docstring."""

    def decorate(function: Callable[..., int]) -> VerbCommand:
        named = {"aliases": aliases, "unlisted": unlisted}
        entry = Verb(name, group, function.__module__, summary, *operations, hidden=hidden, **named)
        register(entry)
        sentence = _sentence(summary)
        help = f"{sentence}\n\n{cleandoc(function.__doc__)}" if function.__doc__ else sentence
        command = click.command(
            entry.word, cls=VerbCommand, help=help, examples=examples, hidden=hidden, context_settings=_SETTINGS
        )
        _COMMANDS[name] = command(click.pass_obj(function))
        return _COMMANDS[name]

    return decorate


def verb_group(
    name: str,
    module: str,
    help: str,
    *examples: str,
    group: str,
    summary: str,
    unlisted: tuple[str, ...] = (),
    alone: str | None = None,
) -> None:
    """Register a verb that has verbs of its own, and make its command. Without one of them, it runs the verb that
    `alone` names, or shows its help."""
    register(Verb(name, group, module, summary, unlisted=unlisted))
    _COMMANDS[name] = CommandGroup(
        name, help=f"{_sentence(summary)}\n\n{help}", examples=examples, context_settings=_SETTINGS, alone=alone
    )


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def _global_options() -> list[click.Parameter]:
    def set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.obj.as_json = ctx.obj.as_json or value

    def set_port(ctx: click.Context, _: click.Parameter, value: int | None) -> None:
        ctx.obj.port = ctx.obj.port if value is None else value

    def show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            output.print_line(f"nudge {__version__}")
            ctx.exit()

    common: dict[str, Any] = {"expose_value": False, "section": GLOBAL_SECTION}
    return [
        Option(
            ["-p", "--port"],
            type=PORT,
            metavar="PORT",
            callback=set_port,
            help="HTTP port of the server; an error if the running one has another.",
            **common,
        ),
        Option(
            ["--json"],
            is_flag=True,
            is_eager=True,  # an error in another option is reported as JSON too
            callback=set_json,
            help="Print the result as JSON.",
            **common,
        ),
        Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            callback=show_version,
            help="Print the version and exit.",
            **common,
        ),
    ]


class VerbGroup(click.Group):
    """The verbs below one verb, or below the program. Imports the module of a verb when it is run."""

    path = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [entry.word for entry in all_verbs() if entry.parent == self.path]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        entry = find_verb(f"{self.path} {cmd_name}".lstrip())
        return None if entry is None else load_command(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, *rest = args
        entry = find_verb(f"{self.path} {name}".lstrip())
        if entry is None:
            if ctx.resilient_parsing:
                ctx.obj.verb = f"{self.path} {name}".lstrip()
                return None, None, rest
            raise Usage(f"unknown command {name!a}", verb_advice(name, self.path))
        ctx.obj.verb = entry.name
        help_wanted = ctx.find_root().params.get("help") and not ctx.resilient_parsing
        return entry.word, load_command(entry), _help_words(entry, rest) if help_wanted else rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Offer the verbs by name."""
        from click.shell_completion import CompletionItem

        if (ctx.obj.verb or "") != self.path:  # an unknown one
            return []
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=entry.summary)
            for entry in shown_verbs(None, self.path)
            # A name that no help lists is offered only to somebody who has begun to type it.
            for name in (entry.word, *(entry.unlisted if incomplete else ()))
            if name.startswith(incomplete)
        ]


def _help_words(entry: Verb, rest: Sequence[str]) -> list[str]:
    """Return the words after a verb when `--help` came before it."""
    return list(rest) if rest and find_verb(entry.name, rest[0]) else ["--help"]


class CommandGroup(VerbCommand, VerbGroup):
    """A verb that has verbs of its own: `nudge note`."""

    def __init__(self, path: str, alone: str | None = None, **kwargs: Any) -> None:
        self.path, self.alone = path, alone
        super().__init__(
            path.rpartition(" ")[2],
            invoke_without_command=True,
            callback=_run_group,
            subcommand_metavar="COMMAND",
            **kwargs,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return VerbGroup.parse_args(self, ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(entry.word, entry.summary) for entry in all_verbs() if entry.parent == self.path])
        VerbCommand.format_options(self, ctx, formatter)


class Root(VerbGroup):
    """The program itself: lists the first verbs, or all of them by group, and runs one."""

    def __init__(self) -> None:
        super().__init__("nudge", invoke_without_command=True, add_help_option=False, callback=_show_root_help)
        self.params = [
            *_global_options(),
            Option(
                ["-h", "--help"], is_flag=True, section=GLOBAL_SECTION, help="Show this help, or the help of a command."
            ),
        ]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one screen: the verbs that a newcomer needs, and where the others are."""
        del ctx
        _write_head(formatter)
        formatter.write_paragraph()
        formatter.indent()
        formatter.write_dl([(entry.name, entry.summary) for entry in first_verbs()])
        formatter.dedent()
        formatter.write_paragraph()
        formatter.write_text(_ABOUT)
        formatter.write_paragraph()
        formatter.write(f"Example: {EXAMPLES[0]}\n")
        formatter.write_text("All commands: nudge help all; one of them: nudge help COMMAND")

    def full_help(self) -> str:
        """Return the help that lists every verb by group, with the global options and examples."""
        ctx = click.Context(self, info_name="nudge")
        formatter = ctx.make_formatter()
        _write_head(formatter)
        for group in GROUPS:
            with formatter.section(group):
                formatter.write_dl([(entry.name, _summary(entry)) for entry in shown_verbs(group, "")])
        with formatter.section(GLOBAL_SECTION):
            formatter.write_dl([record for param in self.params if (record := param.get_help_record(ctx))])
        with formatter.section("Examples"):
            for line in EXAMPLES:
                formatter.write(f"  {line}\n")
        formatter.write_paragraph()
        formatter.write_text("Options and examples of a command: nudge help COMMAND")
        return formatter.getvalue().rstrip("\n")


def _write_head(formatter: click.HelpFormatter) -> None:
    formatter.write_text("Nudge: the shared memory of the coding agents on one machine.")
    formatter.write_paragraph()
    formatter.write_usage("nudge", "[-p PORT] [--json] COMMAND [ARGS]...")


_ABOUT = (
    "A hint is a short fact with a name, such as api/test. A note is a longer text: a decision, a lesson. The history "
    "is what agents did, as their hooks recorded it."
)
EXAMPLES = (
    'nudge set http-proxy build "docker compose build router"',
    "nudge get http-proxy build",
    'eval "$(nudge get http-proxy build --value-only)"',
)


def _summary(entry: Verb) -> str:
    return f"{entry.summary} (also: {', '.join(entry.aliases)})" if entry.aliases else entry.summary


@click.pass_context
def _show_root_help(ctx: click.Context, help: bool) -> int:
    del help
    if ctx.invoked_subcommand is None:
        output.print_line(ctx.get_help())
    return EXIT_OK


@click.pass_context
def _run_group(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is not None:
        return EXIT_OK
    assert isinstance(ctx.command, CommandGroup)
    if ctx.command.alone is None:
        output.print_line(ctx.get_help())
        return EXIT_OK
    alone = find_verb(ctx.command.path, ctx.command.alone)
    assert alone is not None
    return int(ctx.invoke(load_command(alone)))


# What other tools, and the documents that this one comes from, call a group or a verb.
_OTHER_WORDS = {
    **dict.fromkeys(("memories", "lesson", "lessons", "decision", "decisions"), "note"),
    **dict.fromkeys(("ghap", "attempt", "attempts"), "journal"),
    **dict.fromkeys(("observation", "observations", "find"), "search"),
    **dict.fromkeys(("hint", "hints", "list"), "ls"),
}


def verb_advice(word: str, parent: str) -> str:
    """Return the advice for a verb that does not exist: the one verb below another that has this name, else the nearest
    name, else the help."""
    from difflib import get_close_matches

    program = f"nudge {parent}".rstrip()
    below = [entry.name for entry in shown_verbs() if entry.parent and entry.word == word]
    if not parent and len(below) == 1:  # `nudge forget`
        return f"did you mean: nudge {below[0]}"
    if not parent and word in _OTHER_WORDS:
        return f"did you mean: nudge {_OTHER_WORDS[word]}"
    names = [name for entry in shown_verbs(None, parent) for name in (entry.word, *entry.aliases)]
    near = get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean: {program} {near[0]}" if near else f"try: {program} --help"


def main(words: Sequence[str], *, run_hook: Callable[[], int] | None = None) -> int:
    """Run one command line and return its exit code. `run_hook` is what `nudge record` runs."""
    invocation = Invocation(run_hook=run_hook)
    if completion.COMPLETE_VARIABLE in os.environ:
        return completion.print_candidates(Root(), invocation)
    return output.run_flushed(lambda: _run_reported(words, invocation))


def _run_reported(words: Sequence[str], invocation: Invocation) -> int:
    try:
        return _run(words, invocation)
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except NudgeError as error:
        return output.report_error(error, verb=invocation.verb or "help", as_json=invocation.as_json)
    except Usage as error:
        return output.report_usage(error.message, error.advice or example_advice(invocation.verb), invocation.verb)
    except click.UsageError as error:
        message, advice = _usage_sentence(error, invocation.verb)
        if (
            isinstance(error, click.BadParameter)
            and not isinstance(error, MissingParameter)
            and error.param is not None
        ):
            wrong = Invalid(message.partition(": ")[2], field=error.param.name)
            return output.report_wrong_value(wrong, message, advice, invocation.verb, as_json=invocation.as_json)
        return output.report_usage(message, advice, invocation.verb)


def _run(words: Sequence[str], invocation: Invocation) -> int:
    """Parse the line and run its verb. Not with click's `main`, which exits with 1, "not found", for a closed pipe."""
    root = Root()
    try:
        with root.make_context("nudge", list(words), obj=invocation) as ctx:
            code = root.invoke(ctx)
    except Exit as leaving:
        code = leaving.exit_code
    return EXIT_OK if code is None else int(code)


def example_advice(name: str | None) -> str:
    entry = None if name is None else find_verb(name)
    examples = () if entry is None else load_command(entry).examples
    return f"try: {examples[0]}" if examples else "try: nudge --help"


def _usage_sentence(error: click.UsageError, name: str | None) -> tuple[str, str]:
    """Return the usage error of click in one line of our words, and what to type instead."""
    help_advice = f"see: nudge {name} --help" if name else "try: nudge --help"
    if isinstance(error, NoSuchOption):
        return _unknown_option(error, name)
    if isinstance(error, MissingParameter) and error.ctx is not None:
        missing = [
            param.opts[0] if isinstance(param, click.Option) else param.human_readable_name
            for param in error.ctx.command.params
            if param.required and param.name not in error.ctx.params
        ]
        return f"missing {', '.join(missing)}", example_advice(name)
    if isinstance(error, click.BadOptionUsage):
        is_missing = "requires" in error.message
        return f"{error.option_name} {'needs a value' if is_missing else 'takes no value'}", help_advice
    if isinstance(error, click.BadParameter) and error.param is not None:
        opts = error.param.opts if isinstance(error.param, click.Option) else [error.param.human_readable_name]
        return f"{'/'.join(opts)}: {error.message.rstrip('.')}", _near_choice(error) or help_advice
    return error.format_message().rstrip("."), help_advice


def _near_choice(error: click.BadParameter) -> str | None:
    """Return the advice that names the choice that is spelled most like the value that was given."""
    from difflib import get_close_matches

    param = error.param
    if param is None or not isinstance(param.type, click.Choice):
        return None
    given = error.message[1:].partition("'")[0]  # click: 'x' is not one of 'a', 'b'
    near = get_close_matches(given, param.type.choices, n=1)
    return f"did you mean: {near[0]}" if near else None


_OTHER_NAMES = {("connect", "--dry-run"): "--print"}  # what an option of other verbs is called here


_TEXT_ARGUMENTS = frozenset(("value", "words", "text", "goal", "what"))  # for which any text can be given


def _unknown_option(error: NoSuchOption, name: str | None) -> tuple[str, str]:
    if name is None:
        return f"unknown option {error.option_name!a} before the command", "try: nudge --help"
    near = _OTHER_NAMES.get((name, error.option_name)) or _near_option(error)
    arguments = [] if error.ctx is None else [p.name for p in error.ctx.command.params if isinstance(p, click.Argument)]
    # `nudge set api flag --tag` may mean --tags, or that the value is --tag.
    is_value_likely = "value" in arguments if near else not _TEXT_ARGUMENTS.isdisjoint(arguments)
    dash = "; a value that starts with - goes after --" if is_value_likely else ""
    advice = f"did you mean: {near}" if near else f"see: nudge {name} --help"
    return f"unknown option {error.option_name!a}", advice + dash


def _near_option(error: NoSuchOption) -> str | None:
    """Return the option that is spelled most like the unknown one, without the dashes that all have: click counts them,
    and takes `--verbose` for `--version`."""
    from difflib import get_close_matches

    options = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
    names = [name for option in options if not getattr(option, "hidden", False) for name in option.opts]
    near = get_close_matches(error.option_name[2:], [name[2:] for name in names if name.startswith("--")], n=1)
    return f"--{near[0]}" if near else None
