"""How a case is written: steps on an empty store, each with what its outcome must hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.contract.ways import Outcome, Params

CODES = {
    "E_INVALID": 40001,
    "E_SECRET_REJECTED": 40002,
    "E_SCOPE_INVALID": 40003,
    "E_NOT_FOUND": 40401,
    "E_CONFLICT": 40901,
    "E_QUOTA": 42901,
}

# Where nothing on this machine stands, so that no way in can add a repo or a branch of its own.
HERE = {"cwd": "/srv/minerva/http-proxy", "os": "linux"}
SIGNED = {"source": "user", "added_by": "contract"}
TOKEN = "ghp_" + "a8Kd92mQz7Lx4Wv1Rt6Yb3Nc5Hf0Jg8Ps2Ue"


@dataclass(frozen=True)
class Step:
    """A call, and what its outcome must hold."""

    operation: str
    params: Params
    expected: Outcome


@dataclass(frozen=True)
class Case:
    """Steps on an empty store. `typeable` is false where a command line cannot say it."""

    rule: str
    steps: tuple[Step, ...] = field(repr=False)
    typeable: bool = True


def gives(operation: str, params: Params, expected: Any) -> Step:
    return Step(f"nudge.{operation}", params, {"result": expected})


def refuses(operation: str, params: Params, reason: str, field: str | None = None, **data: Any) -> Step:
    named = {"field": field} if field else {}
    return Step(
        f"nudge.{operation}", params, {"error": {"code": CODES[reason], "data": {"reason": reason, **named, **data}}}
    )


def setting(
    key: str = "build", value: Any = "make", component: str = "api", version: int | None = None, **meta: Any
) -> dict[str, Any]:
    """Parameters of a `set` that says everything which an interface would add by itself."""
    params = {"component": component, "key": key, "value": value, "meta": {"scope": {}, **SIGNED, **meta}}
    return params if version is None else {**params, "if_match_version": version}


def named(key: str = "build", component: str = "api", **more: Any) -> dict[str, Any]:
    return {"component": component, "key": key, **more}


def is_set(key: str = "build", value: Any = "make", **options: Any) -> Step:
    return gives("set_hint", setting(key, value, **options), {"hint": {"value": value}})


def exported(value: Any = "make", at: str = "2020-01-02T03:04:05.000006Z", **more: Any) -> dict[str, Any]:
    """A hint as an export holds it."""
    return {"value": value, "meta": {}, "version": 1, "created_at": at, "updated_at": at, **more}


def payload(**components: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": "1.0", "components": {name: {"hints": hints} for name, hints in components.items()}}
