"""The one text sanitizer: control characters, characters that cannot be seen, single lines, quoting, cutting. Also
sizes and spans as people read them.

Stored text is untrusted. Before it reaches a terminal or a model it passes `escape` or `single_line`, so that it can
neither control a terminal, nor hide a character, nor look like more than one line.
"""

from __future__ import annotations

from nudge.core.limits import KIB, MIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLAIN_NAME = frozenset("_.@+:~/-")
# Printable in Unicode but blank on screen: Hangul fillers, the braille blank, the combining grapheme joiner.
_BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_TAG_OPENER = "‹"


def has_control(text: str, *, allowed: str = "") -> bool:
    """Whether there is a control character, or half of a surrogate pair, which UTF-8 cannot encode."""
    for char in allowed:
        text = text.replace(char, "")
    if text.isprintable():  # most texts, without a loop
        return False
    return any(char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" for char in text)


def to_unicode(text: str) -> str:
    """Return the text as UTF-8 and SQLite can store it: halves of surrogate pairs become `?`, NUL is removed."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\0", "")


def is_visible(char: str) -> bool:
    """Whether a reader can see the character."""
    return char.isprintable() and char not in _BLANKS and not _is_selector(char)


def _is_selector(char: str) -> bool:
    """Whether it is a variation selector: printable in Unicode, but it only modifies the character before it."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def escape(text: str, *, keep_lines: bool = False) -> str:
    """Return the text with every control, bidirectional or invisible character as an escape sequence. The selector that
    makes a symbol an emoji stays; with `keep_lines` newline and tab stay too."""
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t\ufe0f" if keep_lines else "\ufe0f"
    return "".join(
        char if char in kept or is_visible(char) else char.encode("unicode_escape").decode() for char in text
    )


def is_all_visible(text: str) -> bool:
    """Whether a reader can see every character of a line: `escape` would change nothing."""
    return escape(text) == text


def escape_json(value: Any, encoded: str) -> Any:
    """Return the JSON value with every text in it escaped, lines kept. `encoded` is its JSON text: when that has
    nothing to escape, which is the usual case, the value itself is returned."""
    if "\\u00" not in encoded and "\\r" not in encoded and (encoded.isascii() or escape(encoded) == encoded):
        return value
    return _escape_texts(value)


def _escape_texts(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value, keep_lines=True)
    if isinstance(value, dict):
        return {escape(name): _escape_texts(part) for name, part in value.items()}
    return [_escape_texts(part) for part in value] if isinstance(value, list | tuple) else value


def mask(text: str) -> str:
    """Return the text with `?` for every invisible character; for names in messages and status."""
    return text if text.isascii() and text.isprintable() else "".join(c if is_visible(c) else "?" for c in text)


def single_line(text: str, most: int) -> str:
    """Return one line of visible characters, cut to `most`, in which nothing looks like a markup tag."""
    start = text[: 4 * most]
    visible = "".join(char if is_visible(char) else "" if _is_selector(char) else " " for char in start)
    line = " ".join(visible.split())
    if len(line) > most or len(text) > len(start):
        line = line[: most - 3].rstrip() + "..."
    return _without_tags(line)


def cut_at_sentence(text: str, most: int) -> str:
    """Return the whole sentences that fit into `most` characters; the whole text when they would be less than half of
    that."""
    if len(text) <= most:
        return text
    end = max(text.rfind(f"{mark} ", 0, most + 1) for mark in ".!?")
    return text[: end + 1] if end >= most // 2 else text


CLIENT_OUTPUT = ("<local-command", "<bash-")
"""How a text begins that a client puts in the place of a prompt: what a command of the client itself printed."""


def unwrap_command(prompt: str) -> str:
    """Return the slash command that the user typed, where a client wrapped it in tags; any other prompt as it is."""
    if not prompt.lstrip().startswith("<command-"):
        return prompt
    parts = (_between(prompt, f"<command-{part}>", f"</command-{part}>") for part in ("name", "args"))
    return " ".join(filter(None, parts)) or prompt


def _between(text: str, begin: str, end: str) -> str:
    return text.partition(begin)[2].partition(end)[0].strip()


def quote(text: str, most: int) -> str:
    """Return `single_line` in double quotes, which the text cannot close."""
    return _in_quotes(single_line(text, most))


def quote_command(command: str) -> str:
    """Return a command between quotes, byte for byte; empty when it cannot be shown as it is. One with a double quote
    or a backslash stands between backquotes."""
    if not is_all_visible(command) or _without_tags(command) != command:
        return ""
    if '"' not in command and "\\" not in command:
        return f'"{command}"'
    return f"`{command}`" if "`" not in command else ""


def quote_lines(text: str) -> str:
    """Return a text of several lines as one line in double quotes, uncut, with a visible escape for the end of each
    line. Lines keep their indentation."""
    lines = (_indentation(line) + single_line(line, len(line)) for line in text.strip("\r\n").split("\n"))
    return _in_quotes("\n".join(lines)).replace("\n", "\\n")


def _indentation(line: str) -> str:
    """The spaces that a line begins with, a tab as four."""
    line = line.rstrip().expandtabs(4)
    return line[: len(line) - len(line.lstrip(" "))]


def quote_titled(title: str, content: str, most_title: int, most: int) -> str:
    """Quote a titled text; the title is left out where the text begins with it."""
    title, content = title.strip(), content.strip()
    body = quote(content, most)
    return body if content.startswith(title.removesuffix("...").rstrip()) else f"{quote(title, most_title)}: {body}"


def quote_name(name: str, most: int) -> str:
    """Return a name that is one word as it is, any other in quotes: it could pass for a sentence."""
    short = single_line(name, most)
    plain = bool(short) and all(char.isalnum() or char in _PLAIN_NAME for char in short)
    return short if plain else _in_quotes(short)


def _in_quotes(line: str) -> str:
    """Return the line as a JSON string. Not with `json`, which imports `re`: a visible line needs no other escapes."""
    escaped = line.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _without_tags(line: str) -> str:
    """Replace the `<` of everything that looks like a tag: a client wraps injected text in a tag, which the text must
    not close."""
    first, *rest = line.split("<")
    return first + "".join((_TAG_OPENER if _begins_tag(part) else "<") + part for part in rest)


def _begins_tag(text: str) -> bool:
    return text[:1] in ("/", "!", "?") or (text[:1].isascii() and text[:1].isalpha())


# Numbers, for users

_SIZES = ((1024 * MIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def format_size(count: float) -> str:
    """`0 B`, `312 B`, `1.5 KiB`, `4 MiB`."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{int(count)} B"


def format_span(seconds: float) -> str:
    """The two largest units that are not zero: `45s`, `12h`, `3h 12m`, `2d 1h`."""
    left = max(int(seconds), 0)
    parts: list[str] = []
    for unit, name in _SPANS:
        count, left = divmod(left, unit)
        if count or parts:
            parts.append(f"{count}{name}")
    return " ".join(part for part in parts[:2] if part[:-1] != "0") or "0s"


def line_at(text: str, position: int) -> int:
    """Return the number, from 1, of the line that has this position."""
    return text.count("\n", 0, position) + 1
