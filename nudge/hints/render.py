"""What hints look like at a terminal: hits of a search, components, the hints of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nudge.cli import output
from nudge.cli.output import Styler
from nudge.core.text import escape
from nudge.repofile import SAYS

if TYPE_CHECKING:
    pass


def hit_lines(styler: Styler, hits: list[dict[str, Any]]) -> Iterator[str]:
    names = [output.hint_name(hit["component"], hit["key"]) for hit in hits]
    width = output.widest(names)
    for name, hit in zip(names, hits, strict=True):
        value = styler.clip(output.value_text(hit["hint"]), width + 8)
        yield f"{hit['score']:.2f}  {styler.paint('bold', output.pad(name, width))}  {value}"
        if reason := output.reason_text(hit["hint"]):
            yield f"      {styler.clip(reason, 6)}"
        if evidence := output.evidence_text(hit["hint"]):
            yield f"      {styler.clip(evidence, 6)}"
        reasons = hit["match_explain"]["reasons"]
        if reasons:
            yield styler.paint("dim", "      " + styler.clip(escape("; ".join(reasons)), 6))


def component_lines(styler: Styler, components: list[dict[str, Any]]) -> Iterator[str]:
    width = output.widest(escape(component["name"]) for component in components)
    for component in components:
        name, total = output.pad(escape(component["name"]), width), output.count(component["hint_count"], "hint")
        here = component.get("eligible_count", component["hint_count"])
        if not here:
            yield f"{styler.paint('dim', styler.symbol('○'))} {styler.paint('dim', f'{name}  {total}')}, none for here"
        else:
            some = "" if here == component["hint_count"] else f", {here} for here"
            yield f"{styler.paint('green', styler.symbol('●'))} {styler.paint('bold', name)}  {total}{some}"


def hint_lines(styler: Styler, entries: list[dict[str, Any]]) -> Iterator[str]:
    width = output.widest(escape(entry["key"]) for entry in entries)
    for entry in entries:
        key = output.pad(escape(entry["key"]), width)
        value = styler.clip(output.value_text(entry["hint"]), width + 4)
        scope = output.evidence_text(entry["hint"]) or output.scope_text(output.hint_scope(entry["hint"]))
        if entry["eligible"]:
            yield f"{styler.paint('green', styler.symbol('●'))} {styler.paint('bold', key)}  {value}"
        else:
            yield f"{styler.paint('dim', styler.symbol('○'))} {styler.paint('dim', f'{key}  {value}')}"
            scope += f" (not here: {escape('; '.join(entry['reasons']))})"
        if reason := output.reason_text(entry["hint"]):
            yield f"  {' ' * width}  {styler.clip(reason, width + 4)}"
        yield styler.paint("dim", f"  {' ' * width}  {styler.clip(scope, width + 4)}")


def not_set_lines(styler: Styler, result: dict[str, Any]) -> Iterator[str]:
    """Yield the trusted hints of the repo's file, and what was learned for jobs without a hint, each under a line that
    says what it is."""
    for name, title in (("repo_file", f"{SAYS}:"), ("learned", "facts, where no hint is set:")):
        entries = result.get(name) or ()
        if entries:
            yield styler.paint("bold", title)
        named = [{**entry, "key": f"{entry['component']}/{entry['key']}"} for entry in entries]
        yield from (f"  {line}" for line in hint_lines(styler, named))


_OUTCOMES = (("added", "+", "green"), ("updated", "~", "yellow"), ("removed", "-", "red"), ("kept", "=", "dim"))


def scan_lines(styler: Styler, result: dict[str, Any], *, dry_run: bool) -> Iterator[str]:
    rows = [(mark, style, entry) for outcome, mark, style in _OUTCOMES for entry in result[outcome]]
    names = [output.hint_name(entry["component"], entry["key"]) for _, _, entry in rows]
    width = output.widest(names)
    for name, (mark, style, entry) in zip(names, rows, strict=True):
        reason = escape(entry.get("reason") or "")
        value = styler.clip(escape(output.bare_value(entry["value"])), width + len(reason) + 6)
        yield f"{styler.paint(style, mark)} {output.pad(name, width)}  {value}  {styler.paint('dim', reason)}".rstrip()
    counts = {outcome: len(result[outcome]) for outcome, _, _ in _OUTCOMES} | {"unchanged": result["unchanged"]}
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "nothing found"
    if dry_run:
        yield f"nothing was set (--dry-run); it would be: {summary}"
    else:
        yield styler.done(summary + (" (kept: set by a person or an agent, or learned)" if result["kept"] else ""))
