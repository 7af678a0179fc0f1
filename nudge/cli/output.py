"""What the terminal shows: the console and its colors, hints and tables as text, errors and exit codes.

Standard library only and cheap to import: a plain `nudge get` comes through here without click.
"""

from __future__ import annotations

import os
import sys
import time

from nudge.core import streams
from nudge.core.clock import last_time
from nudge.core.context import describe_scope
from nudge.core.errors import Invalid, SettingInvalid
from nudge.core.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TextIO

    from nudge.core.errors import NudgeError

EXIT_OK = 0
EXIT_NOT_FOUND = 1
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_NO_SERVER = 4
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_BROKEN_PIPE = 141  # as a shell reports SIGPIPE

SECRET = "[secret]"

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ASCII = {"✔": "ok", "↑": "+", "↓": "-", "●": "*", "○": "-", "…": "...", "█": "#", "░": "."}
_MIN_COLUMN = 20

_EXIT_CODES = {"E_NOT_FOUND": EXIT_NOT_FOUND, "E_UNAVAILABLE": EXIT_NO_SERVER}
# For errors whose message does not say what to do.
_ADVICE = {
    "E_NOT_FOUND": "list the hints with: nudge ls",
    "E_QUOTA": "make room with: nudge delete COMPONENT KEY",
    "E_STORAGE": "see: nudge doctor",
    "E_SCOPE_INVALID": "see: nudge {verb} --help",
    "E_INVALID": "see: nudge {verb} --help",
}
_IMPORT_LIMIT = "hints of an import"  # not of what is stored
# Where a field of a request comes from on the command line; without the index in a list.
_OPTIONS = {
    **{f"meta.{name}": f"--{name}" for name in ("reason", "tags", "priority", "confidence", "ttl", "sensitivity")},
    "meta.source": "--source",
    "meta.added_by": "--added-by",
    "meta.scope.cwd_glob": "--scope-cwd-glob",
    "meta.scope.repo": "--scope-repo",
    "meta.scope.branch": "--scope-branch",
    "meta.scope.os": "--scope-os",
    "meta.scope.env_required": "--scope-env",
    "if_match_version": "--if-match-version",
    "obs_type": "--type",
    "order_by": "--order-by",
    "session_id": "--session",
    **{name: f"--{name}" for name in ("priority", "confidence", "tags", "limit", "before", "after")},
    **dict.fromkeys(("project", "namespace"), "--repo"),
    "source_id": "SOURCE",
    "target_id": "TARGET",
    "winner_id": "RIGHT",
    "loser_id": "WRONG",
}
_ENV_MATCH = "meta.scope.env_match"  # followed by the name of the variable
# What a message says to a program, and what to type instead, by verb.
_ADD_PARALLEL = {"or say parallel: true": "or add --parallel"}
_PHRASES = {
    "set": {
        "such as PT2H or P1DT12H": "such as 30d, 12h, PT2H or P1DT12H",
    },
    "note resolve": {"another note than winner_id": "another note than RIGHT"},
    "journal start": _ADD_PARALLEL,
    "journal adopt": _ADD_PARALLEL,
}
_NOTE_VERBS = ("note", "remember", "recall", "explain")


class Usage(Exception):
    """A wrong command line. Without `advice`, the first example of the verb is offered."""

    def __init__(self, message: str, advice: str | None = None) -> None:
        super().__init__(message)
        self.message, self.advice = message, advice


class OutputFailed(Exception):
    """Standard output cannot be written, for another reason than a closed pipe: the disk is full."""


class Styler:
    """What the terminal can show: colors, symbols or their ASCII substitutes, the number of columns."""

    __slots__ = ("color", "unicode", "width")

    def __init__(self, *, color: bool, unicode: bool, width: int | None) -> None:
        self.color, self.unicode, self.width = color, unicode, width

    def paint(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.color and text else text

    def bold(self, text: str) -> str:
        return self.paint("bold", text)

    def symbol(self, symbol: str) -> str:
        return symbol if self.unicode else _ASCII[symbol]

    def done(self, text: str) -> str:
        return f"{self.paint('green', self.symbol('✔'))} {text}"

    def clip(self, text: str, taken: int) -> str:
        """Cut the text to the rest of a terminal line; a pipe gets all of it."""
        room = None if self.width is None else max(self.width - taken, _MIN_COLUMN)
        if room is None or columns(text) <= room:
            return text
        mark = self.symbol("…")
        while columns(text) > room - len(mark):
            text = text[:-1]
        return text + mark


class Console:
    """Writes lines or one JSON object to stdout, and notes to stderr. Characters that the encoding lacks are
    escaped."""

    __slots__ = ("as_json", "is_terminal", "styler")

    def __init__(self, *, as_json: bool, environ: Mapping[str, str] = os.environ) -> None:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        self.as_json = as_json
        self.is_terminal = _is_terminal(sys.stdout)
        self.styler = Styler(
            color=self.is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb",
            unicode=_can_encode_symbols(sys.stdout),
            width=_terminal_width(environ) if self.is_terminal else None,
        )

    def show(self, lines: Iterable[str]) -> None:
        for line in lines:
            print_line(line)

    def note(self, line: str) -> None:
        """Print a line to stderr; without one that can be written there is no place for it. Raise BrokenPipeError when
        its reader is gone."""
        if not streams.note(line):
            raise BrokenPipeError

    def result(self, result: Any, lines: Iterable[str]) -> None:
        """Print the result as JSON with --json, else the lines."""
        if self.as_json:
            self.json(result)
        else:
            self.show(lines)

    def json(self, result: Any) -> None:
        print_line(encode_json(result, indent=2 if self.is_terminal else None))


def print_line(line: str) -> None:
    """Print a line to stdout. Raise BrokenPipeError when its reader is gone, OutputFailed when it cannot be written."""
    try:
        print(line)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(error.strerror or str(error)) from None


def encode_json(result: Any, indent: int | None) -> str:
    """Return readable JSON, or ASCII-only JSON when it has a character that could control a terminal or hide."""
    import json

    separators = None if indent else (",", ":")
    text = json.dumps(result, indent=indent, ensure_ascii=False, separators=separators)
    if text.isascii() or escape(text, keep_lines=True) == text:
        return text
    return json.dumps(result, indent=indent, separators=separators)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def _can_encode_symbols(stream: TextIO | None) -> bool:
    try:
        "".join(_ASCII).encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _terminal_width(environ: Mapping[str, str]) -> int | None:
    try:
        return int(environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns) or None
    except (ValueError, OSError):
        return None


# Errors


def report_error(error: NudgeError, *, verb: str, as_json: bool) -> int:
    """Print an error and return its exit code: an object on stdout with --json, else code and message on stderr."""
    console = Console(as_json=as_json)
    if as_json:
        console.json({"error": error.to_json()})
    else:
        console.note(_error_sentence(error, verb))
        for line in (*_error_details(error), *_unused_settings(error)):
            console.note(line)
    return _EXIT_CODES.get(error.reason, EXIT_REFUSED)


def report_usage(message: str, advice: str, verb: str | None) -> int:
    """Print one line about a wrong command line and what to type instead."""
    Console(as_json=False).note(escape(f"{f'nudge {verb}' if verb else 'nudge'}: {message}; {advice}"))
    return EXIT_USAGE


def report_wrong_value(error: Invalid, message: str, advice: str, verb: str | None, *, as_json: bool) -> int:
    """Report a value that cannot be parsed with the code that the server has for one that breaks a rule. It is wrong
    usage all the same. `message` has the words of the command line."""
    if as_json:
        Console(as_json=True).json({"error": error.to_json()})
        return EXIT_USAGE
    return report_usage(f"{error.reason} ({error.code}): {message}", advice, verb)


def _unused_settings(error: NudgeError) -> list[str]:
    """Say that a variable of this process does not apply: the server goes by the settings of its session."""
    variable = {"E_SECRET_REJECTED": "NUDGE_SECRET_GUARD", "E_QUOTA": "NUDGE_MAX_HINTS"}.get(error.reason)
    if variable is None or variable not in os.environ:
        return []
    from nudge.settings import config

    try:
        differences = config.differences(os.environ)
    except NudgeError:  # another variable does not parse
        return []
    return [
        f"  not applied: {escape(line)}. To apply it: nudge stop, then nudge serve --daemon"
        for line in differences
        if line.startswith(f"{variable}=")
    ]


def _error_sentence(error: NudgeError, verb: str) -> str:
    advice = _advice(error.reason, verb) if _is_advice_needed(error) else ""
    if why_not := error.data.get("why_not"):
        name = escape(str(error.data.get("component", "")))
        has_hint = any("source" not in variant for variant in why_not)
        advice = f"list its variants with: nudge ls {name}" if has_hint else "see: nudge facts"
    sentence = f"nudge: {error.reason} ({error.code}): {escape(_terminal_message(error, verb).rstrip('.'))}"
    return f"{sentence}; {advice}" if advice and "nudge " not in error.message else sentence


def _is_advice_needed(error: NudgeError) -> bool:
    """Whether the advice for the reason applies to this error: deleting hints makes no import smaller, doctor is for
    the database. A message with two parts says itself what to do about it."""
    if error.reason == "E_QUOTA":
        return error.data.get("limit") != _IMPORT_LIMIT
    if error.reason == "E_STORAGE":
        return "the database" in error.message and ";" not in error.message
    return not isinstance(error, SettingInvalid)


def _terminal_message(error: NudgeError, verb: str) -> str:
    """Return the message with the words of the command line in place of those of a request."""
    message = error.message
    field = str(error.data.get("field") or "")
    option = "--scope-env-match" if field.startswith(_ENV_MATCH) else _OPTIONS.get(field.partition("[")[0])
    if option is not None and message.startswith(f"{field}: "):
        message = option + message[len(field) :]
    if error.reason == "E_SECRET_REJECTED" and verb == "set" and field.startswith("value"):
        return f"{message.partition('; ')[0]}; to keep it anyway, add --allow-secret"
    for phrase, words in _PHRASES.get(verb, {}).items():
        message = message.replace(phrase, words)
    return message


def _advice(reason: str, verb: str) -> str:
    if reason == "E_NOT_FOUND" and verb in ("told", "facts"):
        return f"list them with: nudge {verb}"
    if reason == "E_NOT_FOUND" and verb.startswith("journal"):
        return "list the attempts with: nudge journal list --all-repos"
    if reason == "E_NOT_FOUND" and verb.split()[0] in _NOTE_VERBS:
        archive = "archive " if verb.startswith("note archive") else ""
        return f"list the notes with: nudge note {archive}list"
    return _ADVICE.get(reason, "").format(verb=verb)


def _error_details(error: NudgeError) -> Iterator[str]:
    """Yield the variants that do not apply here, the scopes that exist, and the other keys of the component."""
    for variant in error.data.get("why_not") or ():
        place = "" if "source" in variant else f"for {scope_text(variant.get('scope'))}: "
        yield f"  {place}{escape('; '.join(variant.get('reasons') or ()))}"
    for scope in error.data.get("scopes") or ():
        yield f"  there is one for {scope_text(scope)}"
    if keys := error.data.get("known_keys"):
        yield f"  it has: {escape(', '.join(keys))}"


def run_flushed(run: Callable[[], int]) -> int:
    """Run a command, flush its output, and return the exit code; also when stdout is closed or cannot be written."""
    try:
        code = run()
        flush_stdout()
    except BrokenPipeError:
        return silence_stdout()
    except OutputFailed as error:
        return _report_output_failed(error)
    return code


def flush_stdout() -> None:
    """Flush now, while a closed pipe can still be told from a crash."""
    if sys.stdout is None or sys.stdout.closed:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(error.strerror or str(error)) from None


def silence_stdout() -> int:
    """Point stdout at the null device, since the interpreter flushes it at exit and would report the closed pipe.
    Return the exit code."""
    streams.silence(sys.stdout)
    return EXIT_BROKEN_PIPE


def _report_output_failed(error: OutputFailed) -> int:
    """Print why stdout cannot be written, drop what is still buffered, and return the exit code."""
    silence_stdout()
    Console(as_json=False).note(f"nudge: cannot write the output: {error}")
    return EXIT_REFUSED


# Columns and counts


def columns(text: str) -> int:
    """Return the width on a terminal: an ideograph takes two columns, a combining accent none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def pad(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def widest(texts: Iterable[str]) -> int:
    return max(map(columns, texts), default=0)


def align(rows: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Pad each cell but the last to the width of its column."""
    listed = [list(row) for row in rows]
    widths = [widest(column) for column in zip(*listed, strict=True)]
    for row in listed:
        yield [*(pad(cell, width) for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]


def more_note(limit: int, most: int, noun: str, *, has_words: bool = False) -> str:
    """Return the remark for a list that was cut at `limit`; no list has more than `most`. `has_words` when words were
    searched for."""
    if limit >= most:
        return f"at most {most} are shown: narrow it down"
    more = f"more {noun} match; add words or use" if has_words else f"there are more {noun}; use"
    return f"{more} --limit {min(2 * limit, most)}"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# Hints


def bare_value(value: Any) -> str:
    """Return the command, the path, the template's body or the JSON, without anything around it."""
    if isinstance(value, str):
        return value
    if value.get("type") == "json":
        import json

        return json.dumps(value.get("data"), ensure_ascii=False)
    return str(value.get("cmd") or value.get("abs") or value.get("body") or "")


def is_secret(hint: Mapping[str, Any]) -> bool:
    return bool(hint.get("redacted")) or _meta(hint).get("sensitivity") == "secret"


def value_text(hint: Mapping[str, Any], *, keep_lines: bool = False) -> str:
    return SECRET if is_secret(hint) else escape(bare_value(hint.get("value", "")), keep_lines=keep_lines)


def hint_name(component: str, key: str) -> str:
    return escape(f"{component}/{key}")


def scope_text(scope: Mapping[str, Any] | None) -> str:
    """Return a scope as text: `repo git:org/x, branch dev or main`. A hint without a scope applies everywhere."""
    return escape(describe_scope(scope))


def _meta(hint: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = hint.get("meta")
    return meta if isinstance(meta, dict) else {}


def hint_scope(hint: Mapping[str, Any]) -> Mapping[str, Any]:
    scope = _meta(hint).get("scope")
    return scope if isinstance(scope, dict) else {}


def rank_lines(hint: Mapping[str, Any]) -> Iterator[str]:
    """Yield what its author gave the hint to find and rank it by: `priority: 7`, `tags: build, docker`."""
    meta = _meta(hint)
    for name in ("priority", "confidence"):
        if name in meta:
            yield f"  {name}: {meta[name]}"
    if meta.get("tags"):
        yield f"  tags: {escape(', '.join(meta['tags']))}"


def reason_text(hint: Mapping[str, Any]) -> str:
    """Return why the hint is right, in the words of its author, on one line; empty when no reason was given."""
    reason = _meta(hint).get("reason")
    return f"reason: {escape(' '.join(str(reason).split()))}" if reason else ""


def evidence_text(hint: Mapping[str, Any]) -> str:
    """Return what a command that was learned rests on, or where the repo's file has it, on one line; empty for a hint
    that somebody set."""
    if file := hint.get("file"):
        rests_on = f"; evidence: {file['evidence']}" if "evidence" in file else ""
        return escape(f"source: the repo's file ({file['path']}:{file['line']}{rests_on})")
    evidence = hint.get("evidence")
    if not evidence:
        return ""
    from datetime import datetime  # late: 2 ms, and few answers need it

    age = time.time() - datetime.fromisoformat(evidence["last"]).timestamp()
    return f"source: learned ({support_text(evidence['sessions'], age, evidence['exit_codes'], evidence['ids'])})"


def support_text(sessions: int, age: float, exit_codes: Sequence[int | None] | None, ids: Sequence[int]) -> str:
    """Return what a fact rests on: `2 sessions, last 3h ago; exit code 127, then 0; #12, #15`."""
    failed, worked = exit_codes or (None, None)
    codes = f"; exit code {failed}, then {worked}" if failed is not None and worked is not None else ""
    return f"{count(sessions, 'session')}, {last_time(age)}{codes}; {', '.join(f'#{number}' for number in ids)}"


def value_kind(hint: Mapping[str, Any]) -> str:
    """Return the type and its details: `command, bash`, `template, jinja`; empty for a plain string."""
    value = hint.get("value")
    if not isinstance(value, dict):
        return ""
    details = [value.get("type"), value.get("shell"), value.get("format"), *(value.get("os") or ())]
    return escape(", ".join(str(detail) for detail in details if detail))


def match_lines(styler: Styler, explain: Mapping[str, Any], *, components: bool) -> Iterator[str]:
    """Yield the score and its reasons; with `components` also the parts of the score."""
    yield styler.paint("bold", "match:")
    yield f"  score: {explain['score']:.2f}"
    parts = explain.get("components") if components else None
    if parts:
        yield "  components:"
        yield from (f"    {pad(name, widest(parts))}  {part:.4f}" for name, part in parts.items())
    if reasons := explain.get("reasons"):
        yield "  reasons:"
        yield from (f"    - {escape(reason)}" for reason in reasons)
