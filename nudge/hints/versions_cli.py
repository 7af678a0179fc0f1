"""The verb `versions`: who set a hint, and what it said before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nudge.cli import output, params, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, Styler, Usage
from nudge.cli.plain import Invocation
from nudge.cli.render import MINUTES, local_time, seconds_of
from nudge.cli.verbs import HINTS
from nudge.core.text import escape


@verb(
    "versions",
    "nudge versions http-proxy build",
    "nudge versions http-proxy/build --json",
    group=HINTS,
    summary="show who set a hint, and what it said before",
    operations=("nudge.hint_versions",),
)
@params.name_arguments()
def versions(invocation: Invocation, component: str, key: str | None) -> int:
    """Prints each variant of the hint with its present value and the earlier ones, the last one first: who set it, when
    and in which session. A secret is shown without its values."""
    component, key = plain.split_name(component, key)
    if key is None:
        raise Usage("missing KEY")
    result = invocation.call("nudge.hint_versions", {"component": component, "key": key})
    console = invocation.console
    console.result(result, _lines(console.styler, result))
    return EXIT_OK


def _lines(styler: Styler, result: Mapping[str, Any]) -> Iterator[str]:
    for variant in result["variants"]:
        scope = output.scope_text(output.hint_scope(variant))
        yield f"{styler.paint('bold', output.hint_name(result['component'], result['key']))}  {scope}"
        meta = variant["meta"]
        by = meta.get("added_by") or meta.get("source")
        present = {**variant, "by": by, "set_at": variant["updated_at"], "reason": meta.get("reason")}
        for version in (present, *variant.get("earlier", ())):
            yield from _version_lines(styler, version)


def _version_lines(styler: Styler, version: Mapping[str, Any]) -> Iterator[str]:
    said = "(secret)" if version.get("redacted") else escape(output.bare_value(version["value"]))
    yield styler.clip(f"  v{version['version']}  {said}", 0)
    when, session = local_time(seconds_of(version["set_at"]), MINUTES), version.get("session")
    parts = (when, version.get("by"), f"session {session}" if session else None, version.get("reason"))
    yield styler.paint("dim", styler.clip("      " + "  ".join(escape(part) for part in parts if part), 0))
