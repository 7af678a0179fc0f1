"""The verbs for hints: set, get, query, ls, delete, bump, scan."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from nudge.cli import completion, output, params, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, EXIT_REFUSED, Console, Usage
from nudge.cli.params import LIST, NUMBER, PAIR, SYSTEMS, WHOLE, list_option, option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, can_ask, yes_option
from nudge.cli.verbs import HINTS
from nudge.core import context, limits
from nudge.core.errors import Invalid, NotFound
from nudge.core.text import escape
from nudge.hints.render import component_lines, hint_lines, hit_lines, not_set_lines, scan_lines

if TYPE_CHECKING:
    from nudge.manifests import Command

_SHELLS = ("bash", "sh", "powershell", "cmd")
_SENSITIVITIES = ("normal", "secret")
_SOURCES = ("user", "agent", "tool-output", "file-import")
_VALUE = {"section": "Value"}
_META = {"section": "Metadata"}


@verb(
    "set",
    'nudge set http-proxy build "docker compose build router"',
    'nudge set api test "pytest -q" --type command --shell bash --tags test --priority 8',
    "nudge set api directory ~/code/api --type path --scope-os linux",
    "nudge set api env.FEATURE_X 1 --ttl PT2H --scope-branch 'hotfix/*'",
    "kubectl config view -o json | nudge set infra kube - --type json --global",
    "nudge set api flag -- --verbose          (a value that starts with - goes after --)",
    group=HINTS,
    summary="save a hint, or replace it",
    operations=("nudge.set_hint",),
)
@params.name_arguments()
@click.argument("value", metavar="VALUE", required=False, help="The value of the hint; - reads it from stdin.")
@option("--type", type=click.Choice(plain.VALUE_TYPES), help="What VALUE is (default: string).", **_VALUE)
@option("--shell", type=click.Choice(_SHELLS), help="The shell that runs a command.", **_VALUE)
@option("--format", type=click.Choice(plain.TEMPLATE_FORMATS), help="Format of a template.", **_VALUE)
@option(
    "--default",
    type=PAIR,
    multiple=True,
    metavar="NAME=VALUE",
    help="Default value of a variable in a template (repeatable).",
    **_VALUE,
)
@list_option(
    "--os", type=SYSTEMS, metavar="OS", help="Operating systems that a path is for: linux, darwin, windows.", **_VALUE
)
@option("--reason", metavar="TEXT", help="Why the value is right, for whoever reads it.", **_META)
@list_option("--tags", type=LIST, metavar="TAG,TAG", help="Labels to search by.", **_META)
@option("--priority", type=WHOLE, metavar="N", help="1 to 10 (default: 5); higher ranks first.", **_META)
@option("--confidence", type=NUMBER, metavar="X", help="How sure it is, 0.0 to 1.0 (default: 0.5).", **_META)
@option(
    "--ttl",
    metavar="TTL",
    help="How long it is kept: session, 30d, 12h, or an ISO-8601 duration such as PT2H.",
    **_META,
)
@option(
    "--sensitivity",
    type=click.Choice(_SENSITIVITIES),
    help="secret: the value is hidden, except in get --value-only and --json.",
    **_META,
)
@option("--allow-secret", is_flag=True, help="The same as --sensitivity secret.", **_META)
@option("--source", type=click.Choice(_SOURCES), help="Where it comes from (default: user).", **_META)
@option("--added-by", metavar="NAME", help="Who adds it, such as agent:codex.", **_META)
@option(
    "--if-match-version",
    type=WHOLE,
    metavar="N",
    help="Save only if the hint has this version; 0: only if it does not exist.",
    **_META,
)
@params.scope_options("The hint applies in every repo (default: only in the repo you are in).")
def set_hint(invocation: Invocation, component: str, key: str | None, value: str | None, **options: Any) -> int:
    """A hint with the same component, key and scope is replaced; another scope adds a variant. Prints the version of
    the hint, where it applies and how long it is kept."""
    if value is None:
        (component, name), value = plain.split_name(component), key
        key, value = (name, value) if name is not None else (key, None)
    if key is None or value is None:
        raise Usage("missing VALUE" if key is not None else "missing KEY, VALUE")
    return plain.set_hint(invocation, component, key, value, **options)


@verb(
    "get",
    "nudge get http-proxy build",
    "nudge get http-proxy build --explain",
    'eval "$(nudge get http-proxy build --value-only)"',
    "nudge get http-proxy directory --os windows",
    group=HINTS,
    summary="show the best hint for this context, and why",
    operations=("nudge.get_hint",),
)
@params.name_arguments("[KEY]")
@option("--explain", is_flag=True, help="Show all fields of the hint and the parts of its score.")
@option("--value-only", is_flag=True, help="Print the value and nothing else, for scripts.")
@params.context_options
def get(invocation: Invocation, component: str, key: str | None, **options: Any) -> int:
    """Prints the value, its author's reason, its score and why it matches. When no variant applies here, the error
    lists each variant and the condition that excludes it. Without KEY, the hints of the component are listed."""
    component, key = plain.split_name(component, key)
    if key is None:
        return _list_component(invocation, component, **options)
    return plain.get(invocation, component, key, **options)


def _list_component(
    invocation: Invocation,
    component: str,
    *,
    explain: bool = False,
    value_only: bool = False,
    env: tuple[tuple[str, str], ...] = (),
    **where: str | None,
) -> int:
    if explain or value_only:
        raise Usage("missing KEY")
    fields = {"component": component, "context": plain.context_params(**where)}
    result = _fetch_component(invocation.client(env).call, fields)
    if not (result.get("hints") or result.get("learned") or result.get("repo_file")):
        raise _unknown_component(component, result.get("note"))
    console = invocation.console
    lines = hint_lines(console.styler, result["hints"])
    console.result(result, chain(lines, not_set_lines(console.styler, result)))
    return EXIT_OK


@verb(
    "bump",
    "nudge bump http-proxy build",
    "nudge bump http-proxy build --delta -1",
    group=HINTS,
    summary="credit a hint that worked, or lower one that failed",
    operations=("nudge.bump",),
)
@params.name_arguments()
@option(
    "--delta", type=WHOLE, default=1, metavar="N", help="Uses to add; a negative number adds failures (default: 1)."
)
@params.context_options
def bump(invocation: Invocation, component: str, key: str | None, **options: Any) -> int:
    """Counts a use of the variant that `nudge get` returns here, or of the only one there is: often used hints rank
    higher. Prints the new count."""
    component, key = plain.split_name(component, key)
    if key is None:
        raise Usage("missing KEY")
    return plain.bump(invocation, component, key, **options)


# query


@verb(
    "query",
    "nudge query docker",
    "nudge query --component http-proxy --tags build --limit 5",
    "nudge query --keys build,test --regex 'dock.*build'",
    group=HINTS,
    summary="search hints by component, key, tag or text",
    operations=("nudge.query",),
)
@click.argument("words", metavar="[TEXT]...", nargs=-1, help='Words in any order, "a phrase", or a prefix*.')
@option("--component", metavar="NAME", help="Only in this component.", shell_complete=completion.components)
@list_option("--keys", type=LIST, metavar="KEY,KEY", help="Only these keys.")
@list_option("--tags", type=LIST, metavar="TAG,TAG", help="Only hints with these tags.")
@option("--regex", metavar="REGEX", help="RE2 regular expression to search for in names, values, reasons and tags.")
@params.limit_option(limits.DEFAULT_QUERY_LIMIT)
@params.context_options
def query(
    invocation: Invocation,
    words: tuple[str, ...],
    component: str | None,
    keys: list[str] | None,
    tags: list[str] | None,
    regex: str | None,
    limit: int | None,
    env: tuple[tuple[str, str], ...],
    **where: str | None,
) -> int:
    """Prints the hints that match and apply here, the best first, each with its author's reason and why it matches.
    When there is none, prints the hints that match elsewhere and why they do not apply here."""
    text = " ".join(words) if words else None
    if text is not None and regex is not None:
        raise Usage("TEXT and --regex exclude each other", "leave one out")
    fields = params.drop_none(component=component, keys=keys, tags=tags, limit=limit, text=text, regex=regex)
    fields["context"] = plain.context_params(**where)
    result = invocation.client(env).call("nudge.query", fields)
    console = invocation.console
    console.result(result, hit_lines(console.styler, result["hints"]))
    if not console.as_json:
        _note_hits(console, result, limit or limits.DEFAULT_QUERY_LIMIT)
    return EXIT_OK


def _note_hits(console: Console, result: dict[str, Any], limit: int) -> None:
    """Say what the hits do not show: that they have not all of the words, that there are more, or why there is none."""
    if not result["hints"]:
        _note_no_hits(console, result)
        return
    best = result["hints"][0]
    if "partial" in best:
        console.note("no hint that applies here has all of these words; the ones above have some")
    if "by_meaning" in best:
        console.note("no hint that applies here has these words; the ones above mean nearly the same")
    if result.get("more"):
        console.note(output.more_note(limit, limits.MAX_QUERY_LIMIT, "hints", has_words=True))


def _note_no_hits(console: Console, result: dict[str, Any]) -> None:
    why_not = result.get("why_not") or ()
    reason = "the hints that match do not apply here" if why_not else "no hint that applies here matches"
    console.note(f"{reason}; list all hints with: nudge ls")
    if note := result.get("note"):
        console.note(escape(note))
    for miss in why_not:
        name = output.hint_name(miss["component"], miss["key"])
        console.note(f"  {name}: {escape('; '.join(miss['reasons']))}")


# ls


@verb(
    "ls",
    "nudge ls",
    "nudge ls http-proxy",
    "nudge ls http-proxy --branch main",
    group=HINTS,
    summary="list components, or all hints in one",
    operations=("nudge.list_components",),
    unlisted=("list-components",),
)
@click.argument(
    "component",
    metavar="[COMPONENT]",
    required=False,
    help="List the hints of this component.",
    shell_complete=completion.hints,
)
@params.context_options
def ls(invocation: Invocation, component: str | None, env: tuple[tuple[str, str], ...], **where: str | None) -> int:
    """Without COMPONENT, prints each component and the number of its hints; with it, the hints of the component.
    ● marks what applies here, ○ what does not, with the reason."""
    console, client = invocation.console, invocation.client(env)
    here = plain.context_params(**where)
    if component is None:
        # With --json the answer is what a call without a context gets through every other interface.
        fields = {"context": here} if not console.as_json or any(where.values()) else {}
        result = client.call("nudge.list_components", fields, context=here)
        is_empty = not (result["components"] or result.get("learned") or result.get("repo_file"))
        lines = component_lines(console.styler, result["components"])
    else:
        result = _fetch_named(client.call, component, here, is_needed=not console.as_json)
        is_empty, lines = False, hint_lines(console.styler, result["hints"])
    console.result(result, chain(lines, not_set_lines(console.styler, result)))
    if is_empty and not console.as_json:
        console.note("no hints yet; set one with: nudge set COMPONENT KEY VALUE, or run: nudge scan")
    if (note := result.get("note")) and not console.as_json:
        console.note(escape(note))
    return EXIT_OK


def _fetch_named(call: Callable[..., Any], component: str, here: dict[str, Any], *, is_needed: bool) -> dict[str, Any]:
    """Return the hints of a component, or the one that `COMPONENT/KEY` names; raise where one `is_needed` and there is
    none."""
    fields = {"component": component, "context": here}
    result = _fetch_component(call, fields)
    parent, key = plain.split_name(component)
    if key is not None and not result["hints"]:
        result = _fetch_component(call, {**fields, "component": parent})
        result["hints"] = [entry for entry in result["hints"] if entry["key"] == key]
        for name in ("learned", "repo_file"):
            result[name] = [entry for entry in result.get(name, ()) if entry["key"] == key]
    is_unknown = not result["components"] or (key is not None and not result["hints"])
    if is_needed and is_unknown and not (result.get("learned") or result.get("repo_file")):
        raise _unknown_component(component, result.get("note"))
    return result


def _unknown_component(component: str, note: str | None = None) -> NotFound:
    """Return the error for a component without hints. `note` is what the server says about an empty store."""
    suffix = f"; {note}" if note else ""
    return NotFound(f"component {component} is not known; list all with: nudge ls{suffix}", component=component)


def _fetch_component(call: Callable[[str, dict[str, Any]], Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return a component with all its hints, page by page."""
    result: dict[str, Any] = call("nudge.list_components", fields)
    while result.pop("more", False):
        page = call("nudge.list_components", {**fields, "offset": len(result["hints"])})
        result = {**result, **page, "hints": [*result["hints"], *page["hints"]]}
    return result


# delete


def _delete_component(invocation: Invocation, component: str, *, yes: bool) -> int:
    console = invocation.console
    entries = _fetch_component(invocation.call, {"component": component}).get("hints")
    if not entries:
        raise _unknown_component(component)
    hints = output.count(len(entries), "hint")
    if not ask(f"Delete {escape(component)} with {hints}?", yes=yes):
        console.note("nothing was deleted")
        return EXIT_REFUSED
    for key in dict.fromkeys(entry["key"] for entry in entries):
        invocation.call("nudge.delete_hint", {"component": component, "key": key})
    result = {"deleted": True, "component": component, "hints": len(entries)}
    console.result(
        result, [console.styler.done(f"deleted {console.styler.paint('bold', escape(component))} ({hints})")]
    )
    return EXIT_OK


@verb(
    "delete",
    "nudge delete http-proxy build",
    "nudge delete http-proxy                   (all its hints, after confirmation)",
    "nudge delete http-proxy directory --scope-os windows",
    "nudge delete http-proxy build --global",
    group=HINTS,
    summary="delete a hint, or one variant of it",
    operations=("nudge.delete_hint",),
    aliases=("rm",),
)
@params.name_arguments("[KEY]")
@params.scope_options("Only the variant for every repo.")
@yes_option
def delete(invocation: Invocation, component: str, key: str | None, yes: bool, **scope_options: Any) -> int:
    """Without scope options, all variants of the hint are deleted; at a terminal, several only after confirmation.
    Without KEY, all hints of the component are deleted, after confirmation."""
    component, key = plain.split_name(component, key)
    if key is None:
        if plain.scope_params(scope_options) is not None:
            raise Usage("missing KEY")
        return _delete_component(invocation, component, yes=yes)
    fields: dict[str, Any] = {"component": component, "key": key}
    if (scope := plain.scope_params(scope_options)) is not None:
        fields["scope"] = scope
    elif not yes and can_ask() and not _confirm_variants(invocation, component, key):
        invocation.console.note("nothing was deleted")
        return EXIT_REFUSED
    result = invocation.call("nudge.delete_hint", fields)
    previous = result["previous"]
    if isinstance(previous, list):
        what = f"{len(previous)} variants: {_scopes_text(previous)}"
    else:
        what = f"v{previous['version']}, {_scopes_text([previous])}"
    styler = invocation.console.styler
    name = styler.paint("bold", output.hint_name(component, key))
    invocation.console.result(result, [styler.done(f"deleted hint {name} ({what})")])
    return EXIT_OK


def _confirm_variants(invocation: Invocation, component: str, key: str) -> bool:
    """Ask whether all variants of a hint may be deleted, also those of other repos; True without asking when there is
    at most one."""
    entries = _fetch_component(invocation.call, {"component": component}).get("hints") or ()
    variants = [entry["hint"] for entry in entries if entry["key"] == key]
    name = output.hint_name(component, key)
    return len(variants) < 2 or ask(
        f"Delete all {len(variants)} variants of {name} ({_scopes_text(variants)})?", yes=False
    )


def _scopes_text(variants: list[dict[str, Any]]) -> str:
    return "; ".join(output.scope_text(output.hint_scope(variant)) for variant in variants)


# scan


@verb(
    "scan",
    "nudge scan",
    "nudge scan --dry-run",
    "nudge scan ~/code/api",
    group=HINTS,
    summary="set hints from the manifests of this repo",
    operations=("nudge.scan",),
)
@click.argument(
    "directory",
    metavar="[DIR]",
    default=".",
    type=click.Path(file_okay=False),
    help="Any directory of the repo (default: the current one).",
)
@option("--dry-run", is_flag=True, help="Show what would be set, and set nothing.")
def scan(invocation: Invocation, directory: str, dry_run: bool) -> int:
    """Reads Makefile, package.json, pyproject.toml and other manifests, and runs nothing. Prints what was added (+),
    updated (~), removed (-) and kept (=): hints that a person or an agent set are not overwritten."""
    folder = plain.absolute_path(directory)
    if not os.path.isdir(folder):
        raise Usage(f"{folder} is not a directory", "name one, or leave it out for the current one")
    here = context.resolve(folder)
    root = here.root
    if here.repo is None or root is None:
        raise Invalid(f"{folder} is not in a git repository; cd into one, or name one: nudge scan DIR")
    from pathlib import Path  # not above: it loads urllib, and the other verbs here need neither

    from nudge import manifests

    scanned = manifests.scan_repo(Path(root), here.project and context.project_name(here.project))
    fields: dict[str, Any] = {
        "repo": here.repo,
        "commands": [_scan_entry(command, root) for command in scanned.commands],
        "dry_run": dry_run,
    }
    if scanned.unread:  # an older server does not know the field
        fields["unread"] = scanned.unread
    result = invocation.client().call("nudge.scan", fields)
    console = invocation.console
    console.result(result, scan_lines(console.styler, result, dry_run=dry_run))
    refused = [f"{entry['component']}/{entry['key']}: {entry['reason']}" for entry in result.get("skipped", ())]
    for problem in [*scanned.problems, *refused]:
        console.note(f"skipped: {escape(problem)}")
    return EXIT_OK


def _scan_entry(command: Command, root: str) -> dict[str, Any]:
    """Return a command as the server expects it. A command of a nested package says that it runs in the root: its hint
    applies anywhere in the repo."""
    from nudge.hints import freshness

    reason = command.reason if command.cwd == "." else f"{command.reason}, run it in the root of the repo"
    value = {"type": "command", "cmd": command.cmd}
    files = freshness.digest_files(root, [command.file])
    entry = {"component": command.component, "key": command.key, "value": value, "reason": reason, "files": files}
    return {**entry, "reason": f"{reason}, a guess", "guess": True} if command.is_guess else entry
