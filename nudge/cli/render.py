"""The words and colours that a person sees. Stored text is a stranger's: it passes `visible` before it reaches a
terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

SECRET = "[secret]"
EVERYWHERE = "everywhere"

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ASCII = {"✔": "ok", "↑": "+", "↓": "-", "●": "*", "○": "-", "…": "..."}
_LEAST_COLUMN = 20


class Pen:
    """What this terminal can show: colour or not, our symbols or their ASCII stand-ins, so many columns."""

    __slots__ = ("colour", "unicode", "width")

    def __init__(self, *, colour: bool, unicode: bool, width: int | None) -> None:
        self.colour, self.unicode, self.width = colour, unicode, width

    def paint(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour and text else text

    def symbol(self, symbol: str) -> str:
        return symbol if self.unicode else _ASCII[symbol]

    def done(self, text: str) -> str:
        return f"{self.paint('green', self.symbol('✔'))} {text}"

    def clip(self, text: str, taken: int) -> str:
        """Cut to what is left of a terminal's line; a pipe gets all of it."""
        room = None if self.width is None else max(self.width - taken, _LEAST_COLUMN)
        if room is None or columns(text) <= room:
            return text
        mark = self.symbol("…")
        while columns(text) > room - len(mark):
            text = text[:-1]
        return text + mark


def visible(text: str, *, lines: bool = False) -> str:
    """The text with all that could steer a terminal, or hide in one, spelt out; `lines` lets newline and tab pass."""
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        char if char in kept or char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def columns(text: str) -> int:
    """How wide a terminal draws it: an ideograph takes two columns, a combining accent none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def widest(texts: Iterable[str]) -> int:
    return max(map(columns, texts), default=0)


def bare_value(value: Any) -> str:
    """What a script wants: the command, the path, the template's body, the JSON, without anything around it."""
    if isinstance(value, str):
        return value
    if value.get("type") == "json":
        import json

        return json.dumps(value.get("data"), ensure_ascii=False)
    return str(value.get("cmd") or value.get("abs") or value.get("body") or "")


def is_secret(hint: Mapping[str, Any]) -> bool:
    return bool(hint.get("redacted")) or _meta(hint).get("sensitivity") == "secret"


def shown_value(hint: Mapping[str, Any], *, lines: bool = False) -> str:
    return SECRET if is_secret(hint) else visible(bare_value(hint.get("value", "")), lines=lines)


def name_of(component: str, key: str) -> str:
    return visible(f"{component}/{key}")


def scope_words(scope: Mapping[str, Any] | None) -> str:
    """`repo git:org/x, branch dev or main`; a hint without a scope is for everywhere."""
    return visible(", ".join(_conditions(scope or {}))) or EVERYWHERE


def _conditions(scope: Mapping[str, Any]) -> Iterator[str]:
    for field, word in (("cwd_glob", "cwd"), ("repo", "repo"), ("branch", "branch"), ("os", "os")):
        if scope.get(field):
            yield f"{word} {_either(scope[field])}"
    for name in scope.get("env_required") or ():
        yield f"env {name} set"
    for name, allowed in (scope.get("env_match") or {}).items():
        yield f"env {name}={_either(allowed)}"


def _either(allowed: str | Sequence[str]) -> str:
    return allowed if isinstance(allowed, str) else " or ".join(allowed)


def _meta(hint: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = hint.get("meta")
    return meta if isinstance(meta, dict) else {}


def scope_of(hint: Mapping[str, Any]) -> Mapping[str, Any]:
    scope = _meta(hint).get("scope")
    return scope if isinstance(scope, dict) else {}


def score_base(hint: Mapping[str, Any]) -> str:
    """`priority=7 tags=build,docker ttl=session scope=cwd_glob`."""
    meta = _meta(hint)
    told = [f"{name}={meta[name]}" for name in ("priority", "confidence") if name in meta]
    told += [f"tags={','.join(meta['tags'])}"] if meta.get("tags") else []
    told += [f"ttl={meta['ttl']}"] if "ttl" in meta else []
    return visible(" ".join([*told, f"scope={','.join(scope_of(hint)) or EVERYWHERE}"]))


def kind_of(hint: Mapping[str, Any]) -> str:
    """`command, bash`, `template, jinja`; a plain string needs no word."""
    value = hint.get("value")
    if not isinstance(value, dict):
        return ""
    details = [value.get("type"), value.get("shell"), value.get("format"), *(value.get("os") or ())]
    return visible(", ".join(str(detail) for detail in details if detail))


def match_lines(pen: Pen, explain: Mapping[str, Any], *, parts: bool = False) -> Iterator[str]:
    """The score and its reasons; with `parts` what the score is made of."""
    yield pen.paint("bold", "match:")
    yield f"  score: {explain['score']:.2f}"
    names = explain.get("components") if parts else None
    if names:
        yield "  components:"
        yield from (f"    {padded(name, widest(names))}  {part:.4f}" for name, part in names.items())
    if reasons := explain.get("reasons"):
        yield "  reasons:"
        yield from (f"    - {visible(reason)}" for reason in reasons)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
