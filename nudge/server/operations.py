"""The operations of all rooms, in the order in which lists show them. Each is registered beside its function."""

from __future__ import annotations

from importlib import import_module

from nudge.core.operation import Operation, registered_in

_MODULES = (
    "nudge.usecases.hints",
    "nudge.usecases.transfer",
    "nudge.usecases.history",
    "nudge.usecases.memories",
    "nudge.usecases.explain",
    "nudge.usecases.assemble",
    "nudge.usecases.memory_upkeep",
    "nudge.usecases.memory_transfer",
    "nudge.usecases.journal",
    "nudge.usecases.recording",
    "nudge.learning.ops",
    "nudge.telling.ops",
    "nudge.usecases.app",
)


OPERATIONS: dict[str, Operation] = {
    operation.name: operation for module in _MODULES for operation in registered_in(import_module(module).__name__)
}
