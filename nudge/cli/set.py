"""`nudge set`: store a hint, or replace it."""

from __future__ import annotations

import sys

from nudge import context, limits
from nudge.cli import exits, render, scope_flags
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import OS_NAMES, Usage, fraction, items, pair, whole
from nudge.errors import Invalid
from nudge.paths import expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = (
    'nudge set http-proxy build "docker compose build router"',
    'nudge set api test "pytest -q" --type command --shell bash --tags test --priority 8',
    "nudge set api directory ~/code/api --type path --scope-os linux",
    "nudge set api env.FEATURE_X 1 --ttl PT2H --scope-branch 'hotfix/*'",
    "kubectl config view -o json | nudge set infra kube - --type json --global",
    "nudge set api flag -- --verbose          (a value that starts with - goes after --)",
)

_SOURCES = ("user", "agent", "tool-output", "file-import")
_META_FLAGS = ("reason", "tags", "priority", "confidence", "ttl", "sensitivity", "source", "added_by")
_FLAG_OF_TYPE = {"shell": "command", "format": "template", "default": "template", "os": "path"}


def configure(parser: Parser) -> None:
    parser.add_argument("component", metavar="COMPONENT", help="service, module or folder")
    parser.add_argument("key", metavar="KEY", help="what the hint is about: build, test, directory")
    parser.add_argument("value", metavar="VALUE", help="the value; - reads it from stdin")
    _add_value_flags(parser)
    _add_meta_flags(parser)
    scope_flags.add(parser, "for everywhere (without a scope, a hint is for the repo you are in)")


def _add_value_flags(parser: Parser) -> None:
    group = parser.add_argument_group("value")
    group.add_argument(
        "--type", choices=("string", "command", "path", "template", "json"), help="what VALUE is (string)"
    )
    group.add_argument("--shell", choices=("bash", "sh", "powershell", "cmd"), help="of a command")
    group.add_argument("--format", choices=("mustache", "handlebars", "jinja", "interpolate"), help="of a template")
    group.add_argument("--default", type=pair, action="append", metavar="NAME=VALUE", help="of a template (repeatable)")
    group.add_argument("--os", type=OS_NAMES, action="extend", metavar="OS", help="of a path: linux, darwin, windows")


def _add_meta_flags(parser: Parser) -> None:
    group = parser.add_argument_group("about it")
    group.add_argument("--reason", help="why it is so")
    group.add_argument("--tags", type=items, action="extend", metavar="TAG,TAG", help="labels to find it by")
    group.add_argument("--priority", type=whole, metavar="N", help="1 to 10 (5)")
    group.add_argument("--confidence", type=fraction, metavar="X", help="0.0 to 1.0 (0.5)")
    group.add_argument("--ttl", help="session, or an ISO-8601 duration such as PT2H")
    group.add_argument("--sensitivity", choices=("normal", "secret"), help="secret: never shown in pretty output")
    group.add_argument("--allow-secret", action="store_true", help="the same as --sensitivity secret")
    group.add_argument("--source", choices=_SOURCES, default="user", help="who says so (user)")
    group.add_argument("--added-by", metavar="NAME", help="such as agent:codex")
    group.add_argument(
        "--if-match-version", type=whole, metavar="N", help="only if it has this version now (0: none yet)"
    )


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    scope = scope_flags.read(arguments)
    params: dict[str, Any] = {"component": arguments.component, "key": arguments.key, "value": _value(arguments)}
    here = context.resolve().repo if scope is None else None
    params["meta"] = _meta(arguments, {"repo": here} if here else scope)
    if arguments.if_match_version is not None:
        params["if_match_version"] = arguments.if_match_version
    result = connect(arguments).call("nudge.set_hint", params)
    console.result(result, _lines(console.pen, arguments, result["hint"], narrowed=here is not None))
    return exits.DONE


def _lines(pen: render.Pen, arguments: Namespace, hint: dict[str, Any], *, narrowed: bool) -> Iterator[str]:
    yield pen.done(
        f"upserted hint {pen.paint('bold', render.name_of(arguments.component, arguments.key))} (v{hint['version']})"
    )
    yield f"  score base: {render.score_base(hint)}"
    if scope := render.scope_of(hint):
        where = " (this repo; --global for everywhere)" if narrowed else ""
        yield f"  scope: {render.scope_words(scope)}{where}"


def _meta(arguments: Namespace, scope: dict[str, Any] | None) -> dict[str, Any]:
    meta = {name: value for name in _META_FLAGS if (value := getattr(arguments, name)) is not None}
    if arguments.allow_secret:
        if arguments.sensitivity == "normal":
            raise Usage("--allow-secret and --sensitivity normal exclude each other", "leave one out")
        meta["sensitivity"] = "secret"
    return meta if scope is None else {**meta, "scope": scope}


def _value(arguments: Namespace) -> Any:
    kind = _kind(arguments)
    text = _stdin() if arguments.value == "-" else arguments.value
    return text if kind == "string" else {"type": kind, **_BUILDERS[kind](arguments, text)}


def _kind(arguments: Namespace) -> str:
    """The type that was named, or the one that a flag implies."""
    implied = {kind: flag for flag, kind in _FLAG_OF_TYPE.items() if getattr(arguments, flag) is not None}
    kind = arguments.type or next(iter(implied), "string")
    for other, flag in implied.items():
        if other != kind:
            raise Usage(
                f"--{flag} belongs to a {other}, and this is a {kind}", f"leave out --{flag}, or add --type {other}"
            )
    return str(kind)


def _stdin() -> str:
    """All of stdin but the newline that `echo` adds."""
    piped = sys.stdin.buffer.read(limits.MAX_VALUE_INPUT_BYTES + 1)
    if len(piped) > limits.MAX_VALUE_INPUT_BYTES:
        raise Invalid(
            f"must be at most {limits.MAX_VALUE_BYTES} bytes; a hint is a fact, not a document", field="value"
        )
    try:
        return piped.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise Usage("stdin is not UTF-8 text", "encode it first, for example with base64") from None


def _command(arguments: Namespace, text: str) -> dict[str, Any]:
    return {"cmd": text} if arguments.shell is None else {"shell": arguments.shell, "cmd": text}


def _path(arguments: Namespace, text: str) -> dict[str, Any]:
    return {"abs": expanded(text)} if arguments.os is None else {"os": arguments.os, "abs": expanded(text)}


def _template(arguments: Namespace, text: str) -> dict[str, Any]:
    if arguments.format is None:
        raise Usage("a template needs --format", "add --format mustache, handlebars, jinja or interpolate")
    template = {"format": arguments.format, "body": text}
    return template if arguments.default is None else {**template, "defaults": dict(arguments.default)}


def _json(_: Namespace, text: str) -> dict[str, Any]:
    from nudge.cli import strict_json

    try:
        return {"data": strict_json.loads(text)}
    except (ValueError, RecursionError) as error:
        raise Usage(
            f"VALUE is not JSON: {error}", """try: nudge set api ports '{"http": 8080}' --type json"""
        ) from None


_BUILDERS = {"command": _command, "path": _path, "template": _template, "json": _json}
