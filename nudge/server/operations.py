"""The one table of operations. MCP tools, JSON-RPC methods, REST routes and the OpenAPI document are made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from nudge.usecases import admin, hints, history, inject, recording, scan, transfer

Effect = Literal["read", "write", "delete"]
Group = Literal["hints", "history", "memories", "journal", "admin"]
GROUPS: tuple[Group, ...] = ("hints", "history", "memories", "journal", "admin")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as every door offers it.

    `tool` is its name in MCP and `group` what `--tools` may choose it by; `effect` gives the annotations and says
    whether a closed connection cancels it (only a read); `listed` puts it on the default list of tools.
    """

    name: str
    tool: str
    group: Group
    summary: str
    params: type[BaseModel]
    result: type[BaseModel]
    run: Callable[..., Awaitable[Any]]
    effect: Effect
    route: tuple[str, str]
    listed: bool = True


_TABLE = (
    Operation(
        "nudge.get_hint",
        "nudge_get_hint",
        "hints",
        (
            "Hints: the best fact for component/key here (build, test or run command, path, "
            "toggle), and why it matched. Ask before guessing."
        ),
        hints.GetHint,
        hints.GetResult,
        hints.get_hint,
        "read",
        ("GET", "/api/v1/hints/{component}/{key}"),
    ),
    Operation(
        "nudge.set_hint",
        "nudge_set_hint",
        "hints",
        (
            "Hints: remember a fact that cost effort to find. Same scope replaces it, "
            "another scope adds a variant. Never secrets."
        ),
        hints.SetHint,
        hints.HintResult,
        hints.set_hint,
        "write",
        ("PUT", "/api/v1/hints/{component}/{key}"),
    ),
    Operation(
        "nudge.query",
        "nudge_query",
        "hints",
        (
            "Hints: search by component, keys, tags or regex; ranked for this context. Use it "
            "when something fails or the key is unknown."
        ),
        hints.Query,
        hints.QueryResult,
        hints.query,
        "read",
        ("GET", "/api/v1/hints"),
    ),
    Operation(
        "nudge.bump",
        "nudge_bump",
        "hints",
        (
            "Hints: credit one that worked (delta 1) or failed (delta -1), so that it "
            "ranks higher or lower. Not for mere reading."
        ),
        hints.Bump,
        hints.HintResult,
        hints.bump,
        "write",
        ("POST", "/api/v1/hints/{component}/{key}/bump"),
    ),
    Operation(
        "nudge.delete_hint",
        "nudge_delete_hint",
        "hints",
        "Hints: delete component/key: all variants, or the one with the given scope.",
        hints.DeleteHint,
        hints.DeleteResult,
        hints.delete_hint,
        "delete",
        ("DELETE", "/api/v1/hints/{component}/{key}"),
        listed=False,
    ),
    Operation(
        "nudge.list_components",
        "nudge_list_components",
        "hints",
        "Hints: components with their counts; with `component`, every key and variant in it, whatever the context.",
        hints.ListComponents,
        hints.ComponentList,
        hints.list_components,
        "read",
        ("GET", "/api/v1/components"),
        listed=False,
    ),
    Operation(
        "nudge.export",
        "nudge_export",
        "hints",
        "Hints: all of them as one JSON payload; secrets without their value.",
        transfer.Export,
        transfer.ExportResult,
        transfer.export,
        "read",
        ("GET", "/api/v1/export"),
        listed=False,
    ),
    Operation(
        "nudge.import",
        "nudge_import",
        "hints",
        (
            "Hints: take in an exported payload. merge: the newer wins; skip: what is there "
            "stays; replace: only what it names remains."
        ),
        transfer.Import,
        transfer.ImportResult,
        transfer.import_,
        "delete",
        ("POST", "/api/v1/import"),
        listed=False,
    ),
    Operation(
        "nudge.export_page",
        "nudge_export_page",
        "admin",
        "Hints: one page of an export, with the cursor of the next; the first page pins the hints of that moment.",
        transfer.ExportPage,
        transfer.ExportPageResult,
        transfer.export_page,
        "read",
        ("GET", "/api/v1/export/page"),
        listed=False,
    ),
    Operation(
        "nudge.import_begin",
        "nudge_import_begin",
        "admin",
        "Hints: begin an import in pages, for a payload of more than 1 MiB; nothing is stored before its commit.",
        transfer.ImportBegin,
        transfer.ImportBeginResult,
        transfer.import_begin,
        "write",
        ("POST", "/api/v1/import/begin"),
        listed=False,
    ),
    Operation(
        "nudge.import_page",
        "nudge_import_page",
        "admin",
        "Hints: one page of an import, checked at once and kept until the commit.",
        transfer.ImportPage,
        transfer.ImportPageResult,
        transfer.import_page,
        "write",
        ("POST", "/api/v1/import/page"),
        listed=False,
    ),
    Operation(
        "nudge.import_commit",
        "nudge_import_commit",
        "admin",
        "Hints: import all pages at once, or nothing.",
        transfer.ImportCommit,
        transfer.ImportResult,
        transfer.import_commit,
        "delete",
        ("POST", "/api/v1/import/commit"),
        listed=False,
    ),
    Operation(
        "nudge.search",
        "search",
        "history",
        (
            'History: full-text search (FTS5: AND OR NOT "phrase" prefix*) in what agents '
            "did here; previews. Then get_observations."
        ),
        history.Search,
        history.ObservationList,
        history.search,
        "read",
        ("GET", "/api/v1/observations"),
    ),
    Operation(
        "nudge.get_observations",
        "get_observations",
        "history",
        "History: observations in full, by id.",
        history.GetObservations,
        history.ObservationList,
        history.get_observations,
        "read",
        ("POST", "/api/v1/observations/get"),
    ),
    Operation(
        "nudge.timeline",
        "timeline",
        "history",
        "History: what happened before and after one observation, in its session.",
        history.Timeline,
        history.Around,
        history.timeline,
        "read",
        ("GET", "/api/v1/observations/{anchor}/timeline"),
    ),
    Operation(
        "nudge.recent_context",
        "recent_context",
        "history",
        "History: what mattered most recently in this project: edits, commands, failures; scored.",
        history.RecentContext,
        history.ObservationList,
        history.recent_context,
        "read",
        ("GET", "/api/v1/recent"),
    ),
    Operation(
        "nudge.session_trace",
        "session_trace",
        "history",
        "History: one session: its prompts, and what each led to.",
        history.SessionTrace,
        history.Trace,
        history.session_trace,
        "read",
        ("GET", "/api/v1/sessions/{session_id}"),
    ),
    Operation(
        "nudge.file_history",
        "file_history",
        "history",
        "History: every session that touched a file, and with which intent.",
        history.FileHistory,
        history.FileHistoryResult,
        history.file_history,
        "read",
        ("GET", "/api/v1/files"),
    ),
    Operation(
        "nudge.sessions",
        "sessions",
        "history",
        "History: sessions, newest first.",
        history.Sessions,
        history.ObservationList,
        history.sessions,
        "read",
        ("GET", "/api/v1/sessions"),
        listed=False,
    ),
    Operation(
        "nudge.record",
        "record",
        "admin",
        "History: store one event of a hook; the same event id is stored once.",
        history.Record,
        history.Recorded,
        recording.record,
        "write",
        ("POST", "/api/v1/events"),
        listed=False,
    ),
    Operation(
        "nudge.record_many",
        "record_many",
        "admin",
        "History: store events of the past.",
        recording.RecordMany,
        recording.RecordedMany,
        recording.record_many,
        "write",
        ("POST", "/api/v1/events/many"),
        listed=False,
    ),
    Operation(
        "nudge.inject",
        "inject",
        "history",
        "History: what an agent that starts here would be told.",
        inject.Inject,
        inject.Injection,
        inject.inject,
        "write",
        ("POST", "/api/v1/inject"),
        listed=False,
    ),
    Operation(
        "nudge.pin",
        "pin",
        "history",
        "History: keep observations for good, or no more.",
        history.Pin,
        history.Pinned,
        history.pin,
        "write",
        ("POST", "/api/v1/observations/pin"),
        listed=False,
    ),
    Operation(
        "nudge.purge",
        "purge",
        "admin",
        "History: count what the filters mean; with confirm, delete it for good.",
        history.PurgeParams,
        history.Purged,
        history.purge,
        "delete",
        ("POST", "/api/v1/purge"),
        listed=False,
    ),
    Operation(
        "nudge.backup",
        "backup",
        "admin",
        "History: copy the database to a file.",
        history.Backup,
        history.BackedUp,
        history.backup,
        "write",
        ("POST", "/api/v1/backup"),
        listed=False,
    ),
    Operation(
        "nudge.export_all",
        "export_all",
        "admin",
        "History: all of it, page by page.",
        history.ExportAll,
        history.ExportPage,
        history.export_all,
        "read",
        ("GET", "/api/v1/history"),
        listed=False,
    ),
    Operation(
        "nudge.scan",
        "nudge_scan",
        "hints",
        (
            "Hints: reconcile the commands read from a repo's manifests with those of the last "
            "scan; hints set by hand are never touched."
        ),
        scan.Scan,
        scan.ScanResult,
        scan.scan,
        "write",
        ("POST", "/api/v1/scan"),
        listed=False,
    ),
    Operation(
        "nudge.status",
        "nudge_status",
        "admin",
        "Server: role, session, members, limits in force.",
        admin.NoParams,
        admin.Status,
        admin.status,
        "read",
        ("GET", "/api/v1/status"),
        listed=False,
    ),
    Operation(
        "nudge.stop",
        "nudge_stop",
        "admin",
        "Server: end a detached server; `force` one that lives inside a client, `forget` ends the session too.",
        admin.Stop,
        admin.Stopping,
        admin.stop,
        "delete",
        ("POST", "/api/v1/stop"),
        listed=False,
    ),
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _TABLE}
