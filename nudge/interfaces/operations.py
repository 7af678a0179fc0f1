"""The operations of all rooms, in the order in which lists show them. Each is registered beside its function."""

from __future__ import annotations

from importlib import import_module

from nudge.core.operation import Operation, registered_in

_MODULES = (
    "nudge.hints.ops",
    "nudge.hints.scan_ops",
    "nudge.hints.transfer_ops",
    "nudge.hints.versions_ops",
    "nudge.history.ops",
    "nudge.notes.ops",
    "nudge.notes.link_ops",
    "nudge.notes.explain_ops",
    "nudge.notes.assemble_ops",
    "nudge.notes.archive_ops",
    "nudge.notes.statistics_ops",
    "nudge.notes.transfer_ops",
    "nudge.proposals.ops",
    "nudge.proposals.review_ops",
    "nudge.meaning.ops",
    "nudge.journal.ops",
    "nudge.journal.reminder_ops",
    "nudge.history.record_ops",
    "nudge.learning.ops",
    "nudge.telling.ops",
    "nudge.history.browse_ops",
    "nudge.page.ops",
    "nudge.page.known_ops",
    "nudge.repofile.page_ops",
    "nudge.team.ops",
    "nudge.process.ops",
)


OPERATIONS: dict[str, Operation] = {
    operation.name: operation for module in _MODULES for operation in registered_in(import_module(module).__name__)
}
