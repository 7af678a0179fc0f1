"""The error tree. Each class has its wire code; `reason` is the symbol for programs, `message` the sentence for
people."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

WIRE_REASONS = {
    PARSE_ERROR: "E_PARSE",
    INVALID_REQUEST: "E_REQUEST",
    METHOD_NOT_FOUND: "E_METHOD",
    INVALID_PARAMS: "E_PARAMS",
    INTERNAL_ERROR: "E_INTERNAL",
}
"""The codes of JSON-RPC itself, with the symbol for `data.reason`."""

INTERNAL_MESSAGE = "Internal error; the server's log has the details"
"""All that a caller is told about an exception that nothing expected: its text could quote a secret."""


def protocol_error(code: int, message: str) -> dict[str, Any]:
    """Return the JSON-RPC error object for one of the codes in `WIRE_REASONS`."""
    return {"code": code, "message": message, "data": {"reason": WIRE_REASONS[code]}}


class NudgeError(Exception):
    """The base of all errors. Subclasses set `code` and `reason`; `data` is added to the wire form."""

    code = INTERNAL_ERROR
    reason = "E_INTERNAL"

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, Any] = data

    def to_json(self) -> dict[str, Any]:
        """The JSON-RPC error object."""
        return {"code": self.code, "message": self.message, "data": {"reason": self.reason, **self.data}}


class NotFound(NudgeError):
    code, reason = 40401, "E_NOT_FOUND"


class Invalid(NudgeError):
    """A field that breaks a rule: `Invalid("must be 1 to 10", field="meta.priority")`."""

    code, reason = 40001, "E_INVALID"

    def __init__(self, rule: str, *, field: str | None = None, **data: Any) -> None:
        super().__init__(f"{field}: {rule}" if field else rule, **({"field": field} if field else {}), **data)
        self.field = field
        self.rule = rule


class SettingInvalid(Invalid):
    """A setting that breaks a rule; `field` says where it is set: a flag, a variable, or a key in `file`."""

    def __init__(self, rule: str, *, field: str, file: str | None = None) -> None:
        super().__init__(rule, field=field if file is None else f"{field} in {file}")
        self.field = self.data["field"] = field


class ScopeInvalid(Invalid):
    code, reason = 40003, "E_SCOPE_INVALID"


class SecretRejected(Invalid):
    code, reason = 40002, "E_SECRET_REJECTED"


class Unauthorized(NudgeError):
    """A request over HTTP without the token."""

    code, reason = 40101, "E_UNAUTHORIZED"


class Conflict(NudgeError):
    code, reason = 40901, "E_CONFLICT"


class QuotaExceeded(NudgeError):
    code, reason = 42901, "E_QUOTA"


class Unavailable(NudgeError):
    """No PRIMARY answers right now; the same call may work a moment later."""

    code, reason = 50301, "E_UNAVAILABLE"

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message, retryable=True, **data)


class WrongPort(Unavailable):
    """A server is running, but on another port than the caller asked for."""


class HandingOver(Unavailable):
    """This server is no longer PRIMARY; interfaces ask the client to send the call again instead of failing it."""


class StorageFailed(NudgeError):
    code, reason = 50701, "E_STORAGE"


class RemoteError(NudgeError):
    """An error from PRIMARY, on the client's side. A newer PRIMARY may send reasons that this version does not know."""

    def __init__(self, error: dict[str, Any]) -> None:
        data = dict(error.get("data") or {})
        super().__init__(str(error.get("message", "the server answered with an error")))
        self.code = int(error.get("code", INTERNAL_ERROR))
        self.reason = str(data.pop("reason", "E_INTERNAL"))
        self.data = data
