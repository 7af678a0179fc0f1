"""What a call may not do, and how it is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nudge.core import limits
from tests.contract.steps import SIGNED, TOKEN, Case, exported, gives, is_set, named, payload, refuses, setting
from tests.contract.ways import MAX_HINTS

LONG = "x" * 9_000

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "an empty component": (setting(component=""), "E_INVALID", "component"),
    "a component of 129 characters": (setting(component="c" * 129), "E_INVALID", "component"),
    "a key that ends with a space": (setting(key="build "), "E_INVALID", "key"),
    "an empty value": (setting(value=""), "E_INVALID", "value"),
    "a value over 8 KiB": (setting(value=LONG), "E_INVALID", "value"),
    "a control character": (setting(value="a\x1bb"), "E_INVALID", "value"),
    "a relative path": (setting(value={"type": "path", "abs": "src/api"}), "E_INVALID", "value.abs"),
    "a path with ..": (setting(value={"type": "path", "abs": "/srv/../etc"}), "E_SCOPE_INVALID", "value.abs"),
    "priority 0": (setting(priority=0), "E_INVALID", "meta.priority"),
    "priority 11": (setting(priority=11), "E_INVALID", "meta.priority"),
    "confidence over 1": (setting(confidence=1.5), "E_INVALID", "meta.confidence"),
    "a reason over 500 characters": (setting(reason="x" * 501), "E_INVALID", "meta.reason"),
    "21 tags": (setting(tags=[f"t{number}" for number in range(21)]), "E_INVALID", "meta.tags"),
    "a TTL of months": (setting(ttl="P1M"), "E_INVALID", "meta.ttl"),
    "a TTL of nothing": (setting(ttl="PT0S"), "E_INVALID", "meta.ttl"),
    "a negative TTL": (setting(ttl="-PT1H"), "E_INVALID", "meta.ttl"),
    "a repo that is none": (setting(scope={"repo": "nonsense"}), "E_INVALID", "meta.scope.repo"),
    "a negative version": (setting(version=-1), "E_INVALID", "if_match_version"),
    "a glob with ..": (setting(scope={"cwd_glob": ["/srv/../etc"]}), "E_SCOPE_INVALID", "meta.scope.cwd_glob[0]"),
    "a relative glob": (setting(scope={"cwd_glob": ["src/*"]}), "E_SCOPE_INVALID", "meta.scope.cwd_glob[0]"),
    "a glob over 256 characters": (
        setting(scope={"cwd_glob": ["/" + "a" * 256]}),
        "E_SCOPE_INVALID",
        "meta.scope.cwd_glob[0]",
    ),
    "a branch glob over 256 characters": (
        setting(scope={"branch": ["main", "a" * 257]}),
        "E_SCOPE_INVALID",
        "meta.scope.branch[1]",
    ),
    "a credential": (setting(value=TOKEN), "E_SECRET_REJECTED", "value"),
    "a credential in a command": (
        setting(value={"type": "command", "cmd": f"gh auth {TOKEN}"}),
        "E_SECRET_REJECTED",
        "value.cmd",
    ),
    "a credential in the reason": (
        setting(reason=f"from {TOKEN}", sensitivity="secret"),
        "E_SECRET_REJECTED",
        "meta.reason",
    ),
}

UNTYPEABLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "a missing parameter": ("set_hint", {"component": "api", "key": "build", "meta": SIGNED}, "value"),
    "an unknown parameter": ("get_hint", named(colour="red"), "colour"),
    "a name that is no string": ("get_hint", {"component": 1, "key": "build"}, "component"),
    "null for a name": ("delete_hint", {"component": None, "key": "build"}, "component"),
    "a value that is a number": ("set_hint", setting(value=7), "value"),
    "an unknown type": ("set_hint", setting(value={"type": "recipe"}), "value.type"),
    "a command without cmd": ("set_hint", setting(value={"type": "command"}), "value.cmd"),
    "an unknown shell": ("set_hint", setting(value={"type": "command", "cmd": "x", "shell": "fish"}), "value.shell"),
    "an unknown field of a value": ("set_hint", setting(value={"type": "json", "data": 1, "more": 2}), "value.more"),
    "an unknown field of meta": ("set_hint", setting(colour="red"), "meta.colour"),
    "an unknown condition": ("set_hint", setting(scope={"cpu": ["arm"]}), "meta.scope.cpu"),
    "a priority that is text": ("set_hint", setting(priority="7"), "meta.priority"),
    "a priority that is true": ("set_hint", setting(priority=True), "meta.priority"),
    "tags that are text": ("set_hint", setting(tags="build"), "meta.tags"),
    "an unknown source": ("set_hint", setting(source="rumour"), "meta.source"),
    "a version that is text": ("set_hint", {**setting(), "if_match_version": "1"}, "if_match_version"),
    "a version that is true": ("set_hint", {**setting(), "if_match_version": True}, "if_match_version"),
    "a context that is text": ("get_hint", named(context="here"), "context"),
    "an unknown system": ("set_hint", setting(scope={"os": ["beos"]}), "meta.scope.os[0]"),
    "an unknown system in the context": ("get_hint", named(context={"os": "beos"}), "context.os"),
    "a relative directory in the context": ("get_hint", named(context={"cwd": "src"}), "context.cwd"),
    "an unknown field of the context": ("get_hint", named(context={"shell": "sh"}), "context.shell"),
    "a number in the environment": ("get_hint", named(context={"env": {"A": 1}}), "context.env.A"),
    "no keys": ("query", {"keys": []}, "keys"),
    "a limit of nothing": ("query", {"limit": 0}, "limit"),
    "a tag that is no string": ("query", {"tags": ["a", 1]}, "tags[1]"),
    "a fraction of a bump": ("bump", named(delta=0.5), "delta"),
    "an unknown format": ("export", {"format": "yaml"}, "format"),
    "an unknown mode": ("import", {"payload": payload(), "mode": "guess"}, "mode"),
    "a scope that is a list": ("delete_hint", named(scope=[]), "scope"),
}


BAD_HINT = payload(api={"a": exported(), "b": exported(meta={"priority": 11})})
BROKEN_PAYLOADS: dict[str, tuple[Any, str]] = {
    "a schema version from the future": ({"schema_version": "2.0", "components": {}}, "payload.schema_version"),
    "a schema version a little ahead": ({"schema_version": "1.3", "components": {}}, "payload.schema_version"),
    "no components": ({"schema_version": "1.0"}, "payload.components"),
    "one bad hint": (BAD_HINT, "payload.components.api.hints.b.meta.priority"),
    "one scope twice": (payload(api={"a": [exported(), exported()]}), "payload.components.api.hints.a[1]"),
    "a list": ([], "payload"),
}


def _refusing() -> Iterator[Case]:
    for what, (params, reason, place) in REFUSED.items():
        yield Case(
            f"set refuses {what} and writes nothing",
            (
                refuses("set_hint", params, reason, place),
                gives("list_components", {}, {"components": []}),
            ),
        )
    for what, (operation, given, place) in UNTYPEABLE.items():
        yield Case(f"{operation} refuses {what}", (refuses(operation, given, "E_INVALID", place),), typeable=False)
    for what, (broken, place) in BROKEN_PAYLOADS.items():
        yield Case(
            f"an import with {what} is refused whole",
            (
                refuses("import", {"payload": broken}, "E_INVALID", place),
                gives("list_components", {}, {"components": []}),
            ),
        )
    yield Case("a credential is taken when it is said to be one", (is_set("token", TOKEN, sensitivity="secret"),))


def _running_out() -> Iterator[Case]:
    full = {"payload": payload(api={f"k{number}": {"value": "x"} for number in range(MAX_HINTS)})}
    yield Case(
        "a full store takes no more hints, but still corrections",
        (
            gives("import", full, {"imported": MAX_HINTS}),
            refuses("set_hint", setting("one-more"), "E_QUOTA", limit="hints", max=MAX_HINTS),
            gives("set_hint", setting("k0", "y"), {"hint": {"version": 2}}),
            gives("delete_hint", named("k1"), {"deleted": True}),
            is_set("one-more"),
        ),
    )
    crowd = {f"k{number}": {"value": "x"} for number in range(limits.MAX_HINTS_PER_COMPONENT + 1)}
    yield Case(
        "a component holds so many hints and no more",
        (
            refuses(
                "import",
                {"payload": payload(api=crowd)},
                "E_QUOTA",
                limit="hints per component",
                max=limits.MAX_HINTS_PER_COMPONENT,
            ),
        ),
    )
    many = {f"c{number}": {"k": {"value": "x"}} for number in range(limits.MAX_COMPONENTS + 1)}
    yield Case(
        "there are so many components and no more",
        (
            refuses("import", {"payload": payload(**many)}, "E_QUOTA", limit="components", max=limits.MAX_COMPONENTS),
            gives("list_components", {}, {"components": []}),
        ),
    )


REFUSALS = [*_refusing(), *_running_out()]
