"""`get`, `set` and `bump` without click: the thin front and the click commands both call these functions.

Also what the thin front shares with all verbs: the invocation, parsers of values, context and scope from options.
Standard library only.
"""

from __future__ import annotations

import os
import sys
import time

from nudge.cli import output
from nudge.cli.output import EXIT_OK, Console, Styler, Usage
from nudge.core import context, limits
from nudge.core.clock import ago
from nudge.core.errors import Invalid
from nudge.core.paths import expand_home
from nudge.core.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, BinaryIO

    from nudge.process.client import Client

VALUE_TYPES = ("string", "command", "path", "template", "json")
TEMPLATE_FORMATS = ("mustache", "handlebars", "jinja", "interpolate")

_META_OPTIONS = ("reason", "tags", "priority", "confidence", "ttl", "sensitivity", "source", "added_by")
_TYPE_OF_OPTION = {"shell": "command", "format": "template", "default": "template", "os": "path"}


class Invocation:
    """One command line: its global options, the console to write to, and clients of the server."""

    __slots__ = ("_console", "as_json", "port", "run_hook", "verb")

    def __init__(self, *, as_json: bool = False, run_hook: Callable[[], int] | None = None) -> None:
        self.as_json = as_json
        self.port: int | None = None
        self.verb: str | None = None
        self.run_hook = run_hook
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        if self._console is None:
            self._console = Console(as_json=self.as_json)
        return self._console

    def client(self, env: Iterable[tuple[str, str]] = ()) -> Client:
        """Return a client that may start a server. `env` overrides the environment that a scope can ask about."""
        from nudge.process.client import Client
        from nudge.settings import config

        return Client(env={**os.environ, **dict(env)}, port=self.port, autostart=config.load().autostart)

    def call(self, operation: str, fields: dict[str, Any], **options: Any) -> Any:
        """Call an operation, and tell the server where the caller is: notes and attempts belong to a repo."""
        return self.client().call(operation, fields, context=context_params(), **options)

    def observer(self, context: Mapping[str, Any] | None = None) -> Client:
        """Return a client that starts nothing. It reads no settings: a broken config must not hide the server.
        `context`: where the caller is, in each call."""
        from nudge.process.client import Client

        return Client(port=self.port, autostart=False, context=context)


# Parsers of values


def parse_whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!a} is not a whole number") from None


def parse_port(text: str) -> int:
    number = parse_whole(text)
    if not 1 <= number <= 65_535:
        raise ValueError(f"{number} is not a port (1 to 65535)")
    return number


def parse_list(text: str) -> list[str]:
    """Split `a,b`. Empty is refused: an unset variable in a script must not widen a filter."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise ValueError("needs a value")
    return items


def parse_json(content: bytes) -> Any:
    """Parse JSON by the rules of the server (no repeated keys, no NaN). Raise ValueError with the rule that is
    broken."""
    from nudge.core.strict_json import JsonError, decode_file

    try:
        return decode_file(content)
    except JsonError as error:
        raise ValueError(error.message.removeprefix("Invalid request: ")) from None


def stdin_bytes() -> BinaryIO:
    """Return stdin as bytes. Raise Usage when it is closed."""
    if sys.stdin is None or sys.stdin.closed:  # None: the caller closed it, as `0<&-` does
        raise Usage("cannot read stdin: it is closed", "pipe the input into the command, or redirect a file to it")
    return sys.stdin.buffer


def read_stdin_bytes(most: int) -> bytes:
    """Read up to `most` bytes of stdin. Raise Usage when it is closed or cannot be read."""
    try:
        return stdin_bytes().read(most)
    except OSError as error:
        raise Usage(f"cannot read stdin: {error.strerror}", "pipe the input into the command") from None


def read_stdin(most: int, too_large: Invalid, advice: str) -> str:
    """Read all of stdin, without the newline that `echo` adds. Raise `too_large` when it has more than `most` bytes;
    `advice` says what to do with input that is not text."""
    content = read_stdin_bytes(most + 1)
    if len(content) > most:
        raise too_large
    try:
        return content.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise Usage("stdin is not UTF-8 text", advice) from None


def absolute_path(path: str) -> str:
    """Return the full path of a file, with `~/` expanded where the shell did not do it."""
    try:
        return os.path.abspath(expand_home(path))
    except FileNotFoundError:
        raise _no_directory(path) from None


def existing_path(path: str, advice: str) -> str:
    """Like `absolute_path`. Raise Usage when there is no such file or directory; `advice` says what to name."""
    full = absolute_path(path)
    if not os.path.exists(full):
        raise Usage(f"{full} does not exist", advice)
    return full


def _no_directory(path: str) -> Usage:
    return Usage(f"{path} is relative, and the current directory does not exist", "give an absolute path")


# Names and lifetimes of hints

_TTL_UNITS = {"w": "P{}W", "d": "P{}D", "h": "PT{}H", "m": "PT{}M", "s": "PT{}S"}


def split_name(component: str, key: str | None = None) -> tuple[str, str | None]:
    """Split `shop/test` into component and key. The key stays None when the word names only a component."""
    parent, slash, name = component.rpartition("/")
    return (parent, name) if key is None and slash and parent and name else (component, key)


def _iso_ttl(text: str) -> str:
    """Return `30d` and `12h` as ISO-8601 durations; anything else as it is, for the server to check."""
    number, unit = text[:-1], text[-1:]
    return _TTL_UNITS[unit].format(number) if unit in _TTL_UNITS and number.isdecimal() else text


# Context and scope


def context_params(
    cwd: str | None = None, repo: str | None = None, branch: str | None = None, os: str | None = None
) -> dict[str, Any]:
    """Return the context to send: where the caller is, unless an option says otherwise.

    The environment is not part of it: the server asks for the variables that a scope names."""
    if cwd is not None:
        fields = context.resolve(_directory(cwd)).to_json()
    else:
        fields = {name: value for name, value in context.resolve().to_json().items() if _is_sendable(name, value)}
    named = {"repo": repo, "branch": branch, "os": os}
    return fields | {name: value for name, value in named.items() if value is not None}


def _directory(path: str) -> str:
    """Return the full path of a directory as `cd` would resolve it: relative to the logical working directory."""
    path = expand_home(path)
    here = "" if os.path.isabs(path) else context.working_directory()
    if here is None:
        raise _no_directory(path)
    return os.path.join(here, path)


def _is_sendable(name: str, value: Any) -> bool:
    """Return whether the server accepts a field of the context. A directory whose name is not text (a stray byte, a
    newline) is left out: it must not make every command fail."""
    try:
        context.Context.parse({name: value})
    except Invalid:
        return False
    return True


def scope_params(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the scope that the options name; None without any. The server adds the repo of the current directory,
    unless --scope-repo names others or --global says any."""
    scope = _conditions(options)
    if not options.get("everywhere"):
        return scope or None
    if "repo" in scope:
        raise Usage("--global and --scope-repo exclude each other", "leave one out")
    return {**scope, "repo": []} if scope else {}


def _conditions(options: Mapping[str, Any]) -> dict[str, Any]:
    repos = [_this_repo() if repo == "." else repo for repo in options.get("scope_repo") or ()]
    fields = {
        "cwd_glob": [expand_home(pattern) for pattern in options.get("scope_cwd_glob") or ()],
        "repo": repos[0] if len(repos) == 1 else repos,
        "branch": options.get("scope_branch"),
        "os": options.get("scope_os"),
        "env_required": options.get("scope_env"),
        "env_match": _env_match(options.get("scope_env_match") or ()),
    }
    return {name: value for name, value in fields.items() if value}


def _env_match(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the allowed values of each variable; a variable that is given twice allows the values of both."""
    allowed: dict[str, list[str]] = {}
    for name, values in pairs:
        allowed.setdefault(name, []).extend(values.split(","))
    return allowed


def _this_repo() -> str:
    repo = context.resolve().repo
    if repo is None:
        raise Usage("--scope-repo . needs a git repository, and this directory is in none", "cd into one, or name it")
    return repo


# get


def get(
    invocation: Invocation,
    component: str,
    key: str,
    *,
    explain: bool = False,
    value_only: bool = False,
    env: Iterable[tuple[str, str]] = (),
    **where: str | None,
) -> int:
    """Print the best hint for a context."""
    if value_only and invocation.as_json:
        raise Usage("--value-only and --json exclude each other", "leave one out")
    console = invocation.console
    params = {"component": component, "key": key, "context": context_params(**where)}
    result = invocation.client(env).call("nudge.get_hint", params)
    if value_only:
        # Byte for byte into a pipe; on a terminal even this value must not control it.
        value = output.bare_value(result["hint"]["value"])
        console.show([escape(value, keep_lines=True) if console.is_terminal else value])
    else:
        console.result(result, _get_lines(console.styler, result, explain=explain))
    return EXIT_OK


def _get_lines(styler: Styler, result: dict[str, Any], *, explain: bool) -> Iterator[str]:
    hint = result["hint"]
    yield from _value_lines(styler, hint)
    if reason := output.reason_text(hint):
        yield reason
    if evidence := output.evidence_text(hint):
        yield evidence
    if explain:
        yield from _about_lines(styler, hint)
    yield from output.match_lines(styler, result["match_explain"], components=explain)


def _value_lines(styler: Styler, hint: dict[str, Any]) -> Iterator[str]:
    label, kind = styler.paint("bold", "value:"), output.value_kind(hint)
    first, *more = output.value_text(hint, keep_lines=True).split("\n")
    note = styler.paint("dim", f"  ({kind})") if kind else ""
    if more:
        yield f"{label}{note}"
        yield from (f"  {line}" for line in (first, *more))
    else:
        yield f"{label} {styler.paint('green', first)}{note}"


def _age(moment: str) -> str:
    from datetime import datetime  # late: the usual bump does not pay for it

    return ago(time.time() - datetime.fromisoformat(moment).timestamp())


def _about_lines(styler: Styler, hint: dict[str, Any]) -> Iterator[str]:
    meta, value = hint.get("meta", {}), hint.get("value")
    created = f" (first {hint['created_at']})" if hint["created_at"] != hint["updated_at"] else ""
    last_used = f" (last {hint['last_used_at']})" if "last_used_at" in hint else ""
    yield styler.paint("bold", "about:")
    yield from output.rank_lines(hint)
    yield f"  scope: {output.scope_text(output.hint_scope(hint))}"
    uses = output.count(hint.get("use_count", 0), "time")
    failures = f", failed {output.count(hint['failure_count'], 'time')}" if "failure_count" in hint else ""
    is_learned = hint["version"] == 0  # or from the repo's file
    since = f"since {hint['created_at']}" if is_learned else f"v{hint['version']}, set {hint['updated_at']}{created}"
    yield f"  {since}, worked {uses}{last_used}{failures}"
    for name in ("ttl", "source", "added_by", "sensitivity"):
        if name in meta and not is_learned:
            yield f"  {name.replace('_', ' ')}: {escape(str(meta[name]))}"
    # The defaults of a template are part of the value, and as secret.
    defaults = value.get("defaults") if isinstance(value, dict) and not output.is_secret(hint) else None
    yield from (f"  default {escape(f'{name}={text}')}" for name, text in (defaults or {}).items())


# set


def set_hint(invocation: Invocation, component: str, key: str, value: str, **options: Any) -> int:
    """Save a hint. Without a scope it applies to the repo of the current directory, if there is one."""
    scope = scope_params(options)
    params: dict[str, Any] = {"component": component, "key": key, "value": _typed_value(value, options)}
    params["meta"] = _meta(options, scope)
    if options.get("if_match_version") is not None:
        params["if_match_version"] = options["if_match_version"]
    result = invocation.call("nudge.set_hint", params)
    console = invocation.console
    is_default_repo = "repo" in output.hint_scope(result["hint"]) and "repo" not in (scope or {})
    console.result(result, _set_lines(console.styler, component, key, result, is_default_repo=is_default_repo))
    return EXIT_OK


def _set_lines(
    styler: Styler, component: str, key: str, result: dict[str, Any], *, is_default_repo: bool
) -> Iterator[str]:
    from nudge.settings import config

    hint, note = result["hint"], result.get("note")  # the note is there when the server has no change log
    kept = config.load_or_default()[0].describe_lifetime(hint.get("meta", {})) if note is None else note[len("kept ") :]
    yield styler.done(f"saved {styler.paint('bold', output.hint_name(component, key))} (v{hint['version']})")
    yield from output.rank_lines(hint)
    default = " (this repo; --global for everywhere)" if is_default_repo else ""
    yield f"  scope: {output.scope_text(output.hint_scope(hint))}{default}"
    yield f"  kept: {escape(kept)}"


def _meta(options: Mapping[str, Any], scope: dict[str, Any] | None) -> dict[str, Any]:
    meta = {name: value for name in _META_OPTIONS if (value := options.get(name)) is not None}
    meta.setdefault("source", "user")
    if "ttl" in meta:
        meta["ttl"] = _iso_ttl(meta["ttl"])
    if options.get("allow_secret"):
        if options.get("sensitivity") == "normal":
            raise Usage("--allow-secret and --sensitivity normal exclude each other", "leave one out")
        meta["sensitivity"] = "secret"
    return meta if scope is None else {**meta, "scope": scope}


def _typed_value(value: str, options: Mapping[str, Any]) -> Any:
    kind = _value_type(options)
    text = _read_value() if value == "-" else value
    return text if kind == "string" else {"type": kind, **_BUILDERS[kind](options, text)}


def _value_type(options: Mapping[str, Any]) -> str:
    """Return the type that --type names, or the one that another option implies."""
    implied = {kind: name for name, kind in _TYPE_OF_OPTION.items() if options.get(name)}
    kind = options.get("type") or next(iter(implied), "string")
    for other, name in implied.items():
        if other != kind:
            raise Usage(
                f"--{name} belongs to a {other}, and this is a {kind}", f"leave out --{name}, or add --type {other}"
            )
    return str(kind)


def _read_value() -> str:
    too_large = Invalid(
        f"must be at most {limits.MAX_VALUE_BYTES} bytes; a hint is a fact, not a document", field="value"
    )
    return read_stdin(limits.MAX_VALUE_INPUT_BYTES, too_large, "encode it first, for example with base64")


def _command_value(options: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"shell": options["shell"], "cmd": text} if options.get("shell") else {"cmd": text}


def _path_value(options: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"os": options["os"], "abs": expand_home(text)} if options.get("os") else {"abs": expand_home(text)}


def _template_value(options: Mapping[str, Any], text: str) -> dict[str, Any]:
    if options.get("format") is None:
        raise Usage("a template needs --format", f"add --format and one of: {', '.join(TEMPLATE_FORMATS)}")
    template = {"format": options["format"], "body": text}
    return {**template, "defaults": dict(options["default"])} if options.get("default") else template


def _json_value(_: Mapping[str, Any], text: str) -> dict[str, Any]:
    try:
        return {"data": parse_json(text.encode("utf-8", "surrogateescape"))}
    except ValueError as error:
        raise Usage(
            f"VALUE is not JSON: {error}", """try: nudge set api ports '{"http": 8080}' --type json"""
        ) from None


_BUILDERS: dict[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = {
    "command": _command_value,
    "path": _path_value,
    "template": _template_value,
    "json": _json_value,
}


# bump


def bump(
    invocation: Invocation,
    component: str,
    key: str,
    *,
    delta: int = 1,
    env: Iterable[tuple[str, str]] = (),
    **where: str | None,
) -> int:
    """Count a use of the hint that `get` returns here. When none applies here, the server takes the only variant there
    is, unless an option names another context."""
    params: dict[str, Any] = {"component": component, "key": key, "delta": delta}
    here, env = context_params(**where), tuple(env)
    is_named = bool(env) or any(value is not None for value in where.values())
    if is_named:
        params["context"] = here
    result = invocation.client(env).call("nudge.bump", params, context=None if is_named else here)
    console = invocation.console
    console.result(result, _bump_lines(console.styler, delta, result))
    return EXIT_OK


def _bump_lines(styler: Styler, delta: int, result: dict[str, Any]) -> Iterator[str]:
    """Yield what was counted, the counts and the note, if any. A failure is not a use: the time of the last use stays
    as it was."""
    hint = result["hint"]
    symbol, word = ("↓", "failure") if delta < 0 else ("↑", "success")
    last = "now" if delta >= 0 else _age(hint["last_used_at"]) if "last_used_at" in hint else None
    counted = f"a {word}" if abs(delta) == 1 else f"{abs(delta)} {'failures' if delta < 0 else 'successes'}"
    worked = f"worked {output.count(hint.get('use_count', 0), 'time')}" + (f", last {last}" if last else "")
    failed = f", failed {output.count(hint['failure_count'], 'time')}" if "failure_count" in hint else ""
    yield f"{styler.paint('cyan', styler.symbol(symbol))} counted {counted}: {worked}{failed}"
    if "note" in result:
        yield f"  {escape(result['note'])}"
