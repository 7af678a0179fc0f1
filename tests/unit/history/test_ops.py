"""The history as an operation sees it: parameters, defaults, caps, and every way to be refused."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from nudge.core.call import Call, EnvNeeded, Params, parse_params
from nudge.core.clock import boot_seconds
from nudge.core.context import Context
from nudge.core.errors import HandingOver, Invalid, NotFound, NudgeError, StorageFailed, Unavailable
from nudge.core.visibility import VARIABLES
from nudge.history import models
from nudge.history import record_ops as recording
from nudge.notes.models import Recall
from nudge.settings.config import Settings
from tests.unit.history.stored import event
from tests.unit.service import Service as Operations

HERE = Call(context=Context(project="app"))


class Service(Operations):
    caller = HERE

    @property
    def path(self) -> Path:
        return Path(self.database.path)

    @property
    def now(self) -> int:
        return int(self.app.now())

    def record(self, *events: dict[str, Any]) -> list[int | None]:
        return [self("record", event=row)["id"] for row in events]


# The table of errors, and of what is not one


@pytest.mark.parametrize(
    ("name", "params", "kind", "message"),
    [
        ("search", {"query": "cargo (test"}, Invalid, "query: a parenthesis is never closed: it opens at character 7"),
        ("get_observations", {"ids": []}, Invalid, "ids array must not be empty"),
        ("timeline", {"anchor": 4_711}, NotFound, "anchor observation not found: 4711"),
        ("timeline", {"anchor": 2**62}, NotFound, f"anchor observation not found: {2**62}"),
        ("session_trace", {"session_id": "nope"}, NotFound, "session not found: nope"),
        ("session_trace", {"session_id": "\ud800"}, NotFound, "session not found: ?"),
        ("session_trace", {"session_id": "last"}, NotFound, "session not found: last"),
    ],
)
def test_what_is_an_error(
    service: Service, name: str, params: dict[str, Any], kind: type[NudgeError], message: str
) -> None:
    """Errors say what is wrong with which parameter."""
    with pytest.raises(kind) as refused:
        service(name, **params)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("model", "params", "wrong", "meant"),
    [
        (models.Timeline, {"id": 1}, "id", " (did you mean anchor?)"),
        (models.FileHistory, {"path": "/a"}, "path", " (did you mean file_path?)"),
        (models.SessionTrace, {"sesion_id": "s1"}, "sesion_id", " (did you mean session_id?)"),
        (models.Search, {"query": "x", "type": "command"}, "type", " (did you mean obs_type?)"),
        (models.Search, {"query": "x", "zebra": 1}, "zebra", ""),
        (Recall, {"query": "x"}, "query", " (did you mean context?)"),
    ],
)
def test_an_unknown_parameter_is_named_with_the_known_ones(
    model: type[Params], params: dict[str, Any], wrong: str, meant: str
) -> None:
    """Also when a required one is missing for that reason, and with the one that was probably meant."""
    with pytest.raises(Invalid) as refused:
        parse_params(model, params)
    assert refused.value.message == f"{wrong}: is not a parameter{meant}; known: {', '.join(model.model_fields)}"


def test_the_last_session_is_that_of_the_project(service: Service) -> None:
    """By the word that the terminal takes."""
    for session, project in (("s1", "api"), ("s2", "web")):
        service.record(event("command", session_id=session, project=project, content="ls"))
    for project, session in (("api", "s1"), ("web", "s2")):
        assert service("session_trace", session_id="last", project=project)["session_id"] == session


@pytest.mark.parametrize(
    ("name", "params", "answer"),
    [
        ("search", {"query": "zebra"}, []),
        ("get_observations", {"ids": [4_711, 10**29]}, []),
        ("recent_context", {}, []),
        ("recent_context", {"project": "unheard-of"}, []),
        ("file_history", {"file_path": "/nowhere"}, {"file_path": "/nowhere", "sessions": []}),
        ("sessions", {}, []),
    ],
)
def test_what_is_not_an_error(service: Service, name: str, params: dict[str, Any], answer: Any) -> None:
    """An empty result is not an error."""
    assert service(name, **params) == answer


def test_what_is_left_of_an_answer_is_an_answer(service: Service) -> None:
    """Ids of which some are gone, an anchor alone, a session with an empty window."""
    service.record(event(timestamp=1_000))
    assert [row["id"] for row in service("get_observations", ids=[9, 1])] == [1]
    assert service("timeline", anchor=1) == {
        "anchor": service("get_observations", ids=[1])[0],
        "before": [],
        "after": [],
    }
    assert service("session_trace", session_id="s1", after=2_000)["prompts"] == []


@pytest.mark.parametrize(
    ("name", "params"), [(name, {}) for name in ("recent_context", "sessions", "backup", "export_all")]
)
def test_without_a_database_there_is_an_error_with_a_reason(
    service: Service, name: str, params: dict[str, Any]
) -> None:
    """Operations on the history raise StorageFailed."""
    service.app.database = None
    with pytest.raises(StorageFailed, match="no history is open"):
        service(name, **params)


# Parameters


def test_a_file_by_any_of_its_names(service: Service) -> None:
    """Absolute or from where the caller stands, with dots or without; the answer says which path it is about."""
    service.record(event("file_edit", "/work/app/big.txt", file_path="/work/app/big.txt"))
    here = Call(context=Context(cwd="/work/app"))
    for name in ("/work/app/big.txt", "big.txt", "./big.txt", "../app/big.txt", "/work/app/../app/big.txt"):
        result = service("file_history", file_path=name, call=here)
        assert (result["file_path"], len(result["sessions"])) == ("/work/app/big.txt", 1), name
    assert service("file_history", file_path="big.txt", call=Call()) == {"file_path": "big.txt", "sessions": []}


@pytest.mark.parametrize("name", ["payroll", "PayRoll"])
def test_a_project_by_any_spelling(service: Service, name: str) -> None:
    """A remote's name is in small letters, whatever a person writes; so nothing is missed, or spared, for its case."""
    service.record(event(content="cargo a", project="Payroll"), event(content="cargo b", session_id="s2"))
    assert len(service("search", query="cargo", project=name)) == len(service("sessions", project=name)) == 1
    assert service("recent_context", project=name)[0]["content"] == "cargo a"
    assert service("purge", project=name, confirm=True)["total"] == 1


def test_the_project_is_the_callers_unless_it_says_otherwise(service: Service) -> None:
    """Without `project` it is the caller's; null means all."""
    service.record(
        event(content="cargo a"), event(content="cargo b", project="other"), event(content="cargo c", project=None)
    )

    def previews(**params: Any) -> list[str]:
        return sorted(row["content_preview"] for row in service("search", query="cargo", **params))

    assert previews() == ["cargo a"]
    assert previews(project="other") == ["cargo b"]
    assert previews(project=None) == ["cargo a", "cargo b", "cargo c"]
    assert len(service("search", query="cargo", call=Call())) == 3
    scores = {row["content"]: row["score"] for row in service("recent_context")}
    assert scores["cargo a"] > scores["cargo b"]
    assert len({row["score"] for row in service("recent_context", project=None)}) == 1


def test_a_private_project_is_not_told_about_elsewhere(service: Service) -> None:
    """Not to a caller who asks about all projects, nor among the rows of others; to one who stands in it or names it,
    as ever."""
    for project in ("payroll", "app", "web"):
        service.record(event(content=f"cargo {project}", project=project, session_id=project))
    env: dict[str, str | None] = {"NUDGE_CROSS_PROJECT": None, "NUDGE_PRIVATE_PROJECTS": "PayRoll"}
    there, here, nowhere = (Call(context=Context(project=name), env=env) for name in ("payroll", "app", None))

    def projects(name: str, call: Call, **params: Any) -> list[str]:
        rows = service(name, call=call, **({"query": "cargo"} if name == "search" else {}), **params)
        return sorted(row.get("project") or row["session_id"] for row in rows)

    for name in ("search", "recent_context", "sessions"):
        assert projects(name, here, project=None) == projects(name, nowhere, project=None) == ["app", "web"], name
        assert projects(name, there, project=None) == ["app", "payroll", "web"], name
        assert projects(name, nowhere, project=None, context={"project": "payroll"}) == ["app", "payroll", "web"], name
        assert "payroll" in projects(name, here, project="PayRoll"), name
        assert "payroll" in projects(name, Call(env=dict.fromkeys(env)), project=None), name
    assert projects("recent_context", here) == ["app", "web"] and projects("sessions", here, session="pay") == []
    assert projects("sessions", there, session="pay") == ["payroll"]


def test_a_caller_can_hide_more_and_show_no_more(service: Service) -> None:
    """What the session keeps private stays so for a caller that sets nothing, or cannot be asked."""
    service.record(event(content="cargo", project="payroll"))
    service.app.lifetime.settings = Settings({"private_projects": ("payroll",)})
    with pytest.raises(EnvNeeded) as asked:
        service("search", query="cargo", project=None, call=Call(env={}))
    assert set(asked.value.names) >= VARIABLES
    assert service("search", query="cargo", project=None, call=Call()) == []
    assert service("search", query="cargo", project=None, call=Call(env=dict.fromkeys(asked.value.names))) == []
    service.app.lifetime.settings = Settings({})
    caller: dict[str, str | None] = {"NUDGE_CROSS_PROJECT": None, "NUDGE_PRIVATE_PROJECTS": "payroll"}
    assert service("search", query="cargo", project=None, call=Call(env=caller)) == []
    cut: dict[str, str | None] = {"NUDGE_CROSS_PROJECT": None, "NUDGE_PRIVATE_PROJECTS": "p" * 1_025}
    with pytest.raises(
        Invalid, match=r"NUDGE_PRIVATE_PROJECTS: must be at most 1024 characters; config\.toml takes more"
    ):
        service("search", query="cargo", project=None, call=Call(env=cut))


@pytest.mark.parametrize(
    ("name", "params", "most"),
    [("search", {"query": "same"}, 100), ("recent_context", {}, 100), ("file_history", {"file_path": "/f"}, 50)],
)
def test_a_limit_is_taken_for_the_nearest_allowed_one(
    service: Service, name: str, params: dict[str, Any], most: int
) -> None:
    """A limit outside of the range is clamped, not refused."""
    for number in range(120):
        service.record(
            event(
                "command",
                "same",
                service.now,
                file_path="/f" if name == "file_history" else None,
                session_id=f"{number}",
            )
        )

    def size(answer: Any) -> int:
        return sum(len(row["touches"]) for row in answer["sessions"]) if isinstance(answer, dict) else len(answer)

    assert size(service(name, **params, limit=10**9)) == most
    assert size(service(name, **params, limit=0)) == size(service(name, **params, limit=-5)) == 1


def test_the_defaults_are_those_of_the_tools() -> None:
    """Twenty matches, five on each side, thirty recent ones, ten touches."""
    assert (models.Search(query="a").limit, models.Search(query="a").offset, models.Search(query="a").order_by) == (
        20,
        0,
        "relevance",
    )
    assert (models.Timeline(anchor=1).before, models.Timeline(anchor=1).after) == (5, 5)
    assert (models.RecentContext().limit, models.FileHistory(file_path="a").limit) == (30, 10)


# Writing


def test_recording_twice_is_recording_once(service: Service) -> None:
    """An event is stored once by its id, whatever the request's id is."""
    result = event()
    assert service.record(result, result) == [1, None]


def test_what_nobody_redacted_is_redacted_here(service: Service) -> None:
    """Events are redacted before they are stored, even if the sender has not done so."""
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    service.record(event(content=f"aws configure set {key}", metadata={"note": key}))
    service.database.close()
    assert key.encode() not in b"".join(file.read_bytes() for file in service.path.parent.iterdir())


def test_a_late_write_is_not_applied(service: Service) -> None:
    """Its sender has given up, and sends it again."""
    with pytest.raises(Unavailable, match="too late"):
        service("record", event=event(), call=Call(deadline=boot_seconds() - 1))
    assert service("sessions") == []


def test_whoever_is_primary_no_more_does_not_write(service: Service) -> None:
    """The role is confirmed before every write."""

    def gone() -> None:
        raise HandingOver("gone")

    service.app.confirm_role = gone
    with pytest.raises(HandingOver):
        service("record", event=event())
    assert service("sessions") == []


def test_eight_recorders_at_once_lose_nothing(service: Service) -> None:
    """Every event is stored once, and the file is whole."""

    async def recorder(name: int) -> None:
        for number in range(100):
            params = recording.Record(event=event(session_id=f"{name}", content=f"{number}"))
            assert (await recording.store_event(service.app, params, HERE))["id"] is not None

    async def main() -> None:
        await asyncio.gather(*(recorder(name) for name in range(8)))

    asyncio.run(main())
    assert [row["observation_count"] for row in service("sessions")] == [100] * 8


def test_pins_name_what_is_missing(service: Service) -> None:
    """Idempotent, and undone in the same way."""
    service.record(event(), event())
    for _ in range(2):
        assert service("pin", ids=[2, 9]) == {"pinned": True, "ids": [2], "missing": [9]}
    assert service("get_observations", ids=[2])[0]["is_pinned"]
    assert service("pin", ids=[2], pinned=False) == {"pinned": False, "ids": [2], "missing": []}


def test_a_purge_counts_before_it_deletes(service: Service) -> None:
    """Only `confirm` deletes."""
    service.record(event(content="keep"), event(content="plugh"), event("search", "plugh too"))
    result = {
        "total": 2,
        "counts": {"command": 1, "search": 1},
        "pinned": 0,
        "prompts": 0,
        "injections": 0,
        "waiting": 0,
    }
    assert service("purge", search="plugh") == {**result, "deleted": False}
    assert len(service("search", query="plugh")) == 2
    done = service("purge", search="plugh", confirm=True)
    assert done == {**result, "deleted": True, "scrubbed": True, "backups": []}
    assert service("search", query="plugh") == []
    assert b"plugh" not in b"".join(file.read_bytes() for file in service.path.parent.iterdir())


def test_a_purge_without_a_filter_is_refused(service: Service) -> None:
    """Also with `confirm`."""
    with pytest.raises(Invalid, match="at least one of"):
        service("purge", confirm=True)


def test_copies_do_not_keep_what_was_purged(service: Service) -> None:
    """What a migration copied goes; a person's own backup is named, and left to the person."""
    service.record(event(content="plugh"))
    made = service("backup")["path"]
    automatic = Path(f"{service.path}.v1.backup")
    automatic.write_bytes(b"plugh")
    assert service("purge", search="plugh", confirm=True)["backups"] == [made]
    assert not automatic.exists()
    assert os.path.exists(made)


# Copies


def test_a_backup_is_a_whole_database(service: Service, tmp_path: Path) -> None:
    """Opened in the place of the original, it holds the same."""
    service.record(event(content="kept"))
    target = str(tmp_path / "copy.db")
    result = service("backup", path=target)
    assert result == {"path": target, "bytes": os.path.getsize(target)}
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
    restored = Service(Path(target))
    assert [row["content_preview"] for row in restored("search", query="kept")] == ["kept"]
    restored.database.close()


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("relative.db", Invalid, "path: "),
        ("{folder}/nudge-0.db", Invalid, "path: already exists"),
        ("{folder}/no/such/folder.db", StorageFailed, "No such file or directory"),
    ],
)
def test_a_backup_overwrites_nothing(
    service: Service, tmp_path: Path, path: str, kind: type[NudgeError], message: str
) -> None:
    """The target must be a new file in an existing directory."""
    with pytest.raises(kind, match=message):
        service("backup", path=path.format(folder=tmp_path))


def test_an_export_has_every_page(service: Service) -> None:
    """From the first to the one without a next."""
    service.record(event(), event())
    rows: list[Any] = []
    page = service("export_all")
    while page["next"] is not None:
        rows += page["rows"]
        page = service("export_all", after=page["next"])
    assert [row["kind"] for row in [*rows, *page["rows"]]] == ["session", "observation", "observation"]


def test_backfilled_sessions_are_closed(service: Service) -> None:
    """Also one whose subagent's transcript is read after its end, and one of which no end is known."""
    long_ago = service.now - 30 * 86_400
    events = [
        event(session_id="ended", timestamp=long_ago),
        event("session_end", "other", session_id="ended", timestamp=long_ago + 1),
        event(session_id="ended", timestamp=long_ago + 5, agent_id="sub"),
        event(session_id="endless", timestamp=long_ago),
    ]
    asyncio.run(recording.record_many(service.app, recording.RecordMany(events=events), HERE))
    assert {row["session_id"]: row["ended_at"] for row in service("sessions")} == {
        "ended": long_ago + 5,
        "endless": long_ago,
    }
