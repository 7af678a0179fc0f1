"""The operation `nudge.hint_versions`: every variant of one hint, who set it, and what it said before."""

from __future__ import annotations

from typing import Any

from nudge.core.app import App
from nudge.core.call import Call, InContext, Result
from nudge.core.operation import operation
from nudge.core.visibility import visible_hints
from nudge.hints.model import Hint
from nudge.hints.transfer import Form, export_hint


class HintVersions(InContext):
    component: str
    key: str


class HintVersionsResult(Result):
    """`variants` are as in an export with `versions`; a secret has no value. `variant` is the key of its scope."""

    component: str
    key: str
    variants: list[dict[str, Any]]


@operation(
    "nudge.hint_versions",
    tool="nudge_hint_versions",
    group="hints",
    effect="read",
    route="GET /api/v1/hints/{component}/{key}/versions",
    result=HintVersionsResult,
    listed=False,
    summary="Hints: every variant of component/key, who set it when and in which session, and what it said before.",
)
async def hint_versions(app: App, params: HintVersions, call: Call) -> Any:
    variants = app.lifetime.store.find_variants(app.now(), params.component, params.key, visible_hints(app, call))
    return {"component": params.component, "key": params.key, "variants": [_shown(hint) for hint in variants]}


_FORM = Form(versions=True)


def _shown(hint: Hint) -> dict[str, Any]:
    return {"variant": hint.scope.key, **export_hint(hint, _FORM)}
