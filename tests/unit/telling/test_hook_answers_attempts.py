"""What hooks answer about an open attempt: a check-in after ten actions, and the outcome that an exit code shows."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.core.context import Context
from nudge.core.errors import Conflict
from nudge.hints.lifetime import open_in_memory
from nudge.history import store
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Settings
from nudge.telling import hook_answers
from tests.unit.history.stored import event
from tests.unit.service import Service as Operations

PROJECT = "github.com/acme/api"
PLAN = {
    "goal": "make login fast",
    "hypothesis": "the lookup has no index",
    "action": "add an index",
    "prediction": "`make bench` passes",
}
_numbers = itertools.count()
Open = Callable[..., "Service"]


class Service(Operations):
    """With a hook that waits for its answer."""

    caller = Call(context=Context(project=PROJECT))

    def start(self, session: str = "s1", **fields: Any) -> int:
        return int(self("start_ghap", session_id=session, **{**PLAN, **fields})["id"])

    def hook(self, kind: str, content: str = "a.py", session: str = "s1", *, late: bool = False, **fields: Any) -> str:
        """What the hook of an event prints."""
        usual = {"timestamp": int(self.app.now()), "project": PROJECT}
        happened = event(kind, content, session_id=session, **{**usual, **fields})
        call = Call(interface="hook", deadline=None if late else boot_seconds() + 60)

        async def record() -> str:
            result = await self.app.execute("nudge.record", {"event": happened}, call)
            await asyncio.gather(*self.app._background)  # what nobody waits for: the ledger among others
            return str(result.get("tell", ""))

        return asyncio.run(record())

    def act(self, count: int, session: str = "s1", **fields: Any) -> list[str]:
        """Read so many files: a file that is read again at once is no new observation."""
        paths = [f"/work/api/{next(_numbers)}.py" for _ in range(count)]
        return [self.hook("file_read", path, session, file_path=path, **fields) for path in paths]

    def ran(self, command: str, code: int | None, session: str = "s1", **fields: Any) -> str:
        kind = "command_error" if code else "command"
        return self.hook(kind, command, session, metadata={"exit_code": code}, **fields)

    def edit(self, session: str = "s1") -> None:
        self.hook("file_edit", "a.py", session, file_path="/work/api/a.py")

    def attempt(self, number: int) -> dict[str, Any]:
        memory: dict[str, Any] = self("memory_get", id=number)["memory"]
        return memory


# Check-ins


def test_ten_actions_without_an_update_are_answered_with_one_line(service: Service) -> None:
    """With what the attempt believes and predicts, and the choice to give it up; then again after ten more. An update
    begins the count anew."""
    number = service.start()
    told = service.act(25)
    assert [at + 1 for at, text in enumerate(told) if text] == [10, 20]
    assert told[9] == (
        f'Nudge record, not an instruction: attempt m{number} "make login fast" is open, 10 actions since its last '
        'update; it believes "the lookup has no index" and predicts "`make bench` passes". If that has changed: nudge '
        f"journal update m{number} --note TEXT; when you know: resolve_ghap; to give it up: resolve_ghap with status "
        "abandoned"
    )
    service("update_ghap", session_id="s1", note="the index was there")
    assert [bool(text) for text in service.act(10)] == [False] * 9 + [True]


def test_without_an_open_attempt_there_is_no_check_in(service: Service) -> None:
    """Neither before one is started nor after it is resolved, nor in another session."""
    assert not any(service.act(12))
    service.start()
    assert not any(service.act(12, session="s2"))
    service("resolve_ghap", session_id="s1", status="abandoned")
    assert not any(service.act(12))


def test_prompts_and_calls_of_the_journal_are_no_actions(service: Service) -> None:
    """Neither the user's prompts nor the agent's calls of the journal are counted."""
    service.start()
    service.act(9)
    service.hook("user_prompt", "go on")
    service.hook("mcp_call", "nudge/get_active_ghap", metadata={"server": "nudge", "tool": "get_active_ghap"})
    assert service.act(1)[0]


def test_a_check_in_that_nobody_reads_is_told_with_the_next_action(service: Service) -> None:
    """An event out of the spool counts, and waits for no answer."""
    service.start()
    service.act(9)
    assert service.act(1, late=True) == [""]
    assert [bool(text) for text in service.act(2)] == [True, False]


def test_nothing_is_told_where_nothing_is_to_be_told(open_service: Open) -> None:
    """NUDGE_TELL=0 turns off check-ins and outcomes."""
    service = open_service(tell="0")
    service.start()
    assert not any(service.act(10)) and service.ran("make bench", 0) == ""


def test_lines_about_attempts_are_in_the_ledger_and_go_with_the_note(service: Service) -> None:
    """`nudge told` shows them; deleting the attempt deletes what was told of it."""
    number = service.start()
    service.act(10)
    [line] = service("told", project=None)["lines"]
    assert (line["moment"], line["kind"], line["name"]) == ("attempt", "attempt", f"m{number}")
    service("resolve_ghap", session_id="s1", status="abandoned")
    service("memory_delete", id=number)
    assert service("told", project=None)["lines"] == []


def _restarted(service: Service) -> Service:
    """A new server on the same database, ten minutes after the first one began."""
    service.app = App(open_in_memory(Settings({})), OPERATIONS)
    service.app.database = service.database
    clock = service.app.lifetime.clock.now
    service.app.now = lambda: clock() + 600  # type: ignore[method-assign]
    return service


def test_the_count_of_actions_survives_a_restart(service: Service) -> None:
    """A new server counts what the history has since the attempt's last update; prompts and calls of the journal do not
    count, and a reminder is not repeated."""
    number = service.start()
    service.act(7)
    service.hook("user_prompt", "go on")
    service.hook("mcp_call", "nudge/get_active_ghap", metadata={"server": "nudge", "tool": "get_active_ghap"})
    _restarted(service)
    service("get_active_ghap", session_id="s1")
    assert service("should_check_in", session_id="s1") == {"should_check_in": False, "tool_count": 7}
    told = service.act(5)
    assert [at for at, text in enumerate(told) if text] == [2] and "10 actions since" in told[2]
    _restarted(service)
    assert service("should_check_in", session_id="s1") == {"should_check_in": True, "tool_count": 12, "id": number}
    told = service.act(8)
    assert [at for at, text in enumerate(told) if text] == [7] and "20 actions since" in told[7]


def test_what_calls_counted_survives_a_restart(service: Service) -> None:
    """`increment_tool_count` counts on where it was, with an open attempt and without; an update or a reset begins
    anew."""
    service("increment_tool_count", session_id="s1")
    service("increment_tool_count", session_id="s1")
    _restarted(service)
    assert service("increment_tool_count", session_id="s1") == {"tool_count": 3}
    service("reset_tool_count", session_id="s1")
    _restarted(service)
    assert service("increment_tool_count", session_id="s1") == {"tool_count": 1}
    service.start()
    service.act(2)
    service("increment_tool_count", session_id="s1")
    _restarted(service)
    assert service("should_check_in", session_id="s1")["tool_count"] == 3


def test_a_restarted_server_counts_from_the_last_update(service: Service) -> None:
    """An update, whatever was done before; an outcome that a command showed is none."""
    service.start()
    service.act(5)
    _restarted(service)
    service("update_ghap", session_id="s1", note="the index was there")
    service.act(3)
    assert "looks confirmed" in service.ran("make bench", 0)
    _restarted(service)
    assert service("increment_tool_count", session_id="s1") == {"tool_count": 5}
    assert service("increment_tool_count", session_id="s2") == {"tool_count": 1}


def test_events_of_the_spool_are_counted_once_after_a_restart(service: Service) -> None:
    """They are stored before they are counted, and a reminder that became due among them is still told."""
    service.start()
    service.act(9)
    _restarted(service)
    late = [event("file_read", f"/work/api/late-{at}.py", session_id="s1", project=PROJECT) for at in range(3)]
    late = [{**one, "timestamp": int(service.app.now())} for one in late]

    async def take_in() -> None:
        ids = [await service.database.write(functools.partial(store.insert_event, raw=one)) for one in late]
        stored = [(one, number) for one, number in zip(late, ids, strict=True) if number is not None]
        await hook_answers.learn_from(service.app, service.database, stored)
        await asyncio.gather(*service.app._background)

    asyncio.run(take_in())
    assert service("should_check_in", session_id="s1")["tool_count"] == 12
    [told] = service.act(1)
    assert "13 actions since" in told


# Outcomes


@pytest.mark.parametrize(("code", "status"), [(0, "confirmed"), (2, "falsified")])
def test_an_outcome_that_was_predicted_is_offered_once(service: Service, code: int, status: str) -> None:
    """The line has the command and its exit code; a resolution that agrees with it has the tier gold."""
    number = service.start()
    service.edit()
    told = service.ran("make bench", code)
    assert f'm{number} "make login fast" looks {status}' in told and f'"make bench" exited with {code}' in told
    assert len(told) <= limits.PROMPT_CHARS and len(told.splitlines()) == 1
    assert service.ran("make bench", code) == ""
    assert service("get_active_ghap", session_id="s1")["has_active"]
    assert service("resolve_ghap", session_id="s1", status=status)["confidence_tier"] == "gold"


def test_an_offer_that_nobody_reads_is_made_again(service: Service) -> None:
    """An event out of the spool is observed all the same."""
    service.start()
    assert service.ran("make bench", 0, late=True) == ""
    assert "looks confirmed" in service.ran("make bench", 0) and service.ran("make bench", 0) == ""


@pytest.mark.parametrize("char", ['"', "\\", "\n", "\u202e", "\U0001f600"])
def test_long_and_hostile_texts_fit_into_one_line(service: Service, char: str) -> None:
    """Stored text is untrusted: it is quoted, cut and made visible, and the line is told all the same."""
    texts = {
        "goal": f"a{char}" * 100,
        "hypothesis": f"c{char}" * 100,
        "prediction": "`make bench` passes " + f"{char}b" * 100,
    }
    number = service.start(**texts)
    service.edit()
    told = [service.ran("make bench", 2), *filter(None, service.act(10))]
    assert len(told) == 2
    for line in told:
        assert f"attempt m{number} " in line and len(line.splitlines()) == 1 and len(line) <= limits.PROMPT_CHARS, told


def test_the_other_outcome_is_offered_too(service: Service) -> None:
    """A test that failed and now passes is offered again; a resolution against what was observed is not gold."""
    service.start()
    service.edit()
    assert "looks falsified" in service.ran("make bench", 2) and "looks confirmed" in service.ran("make bench", 0)
    assert service("resolve_ghap", session_id="s1", status="falsified", surprise="flaky")["confidence_tier"] == "silver"


def test_another_prediction_is_observed_anew(service: Service) -> None:
    """An outcome that was observed for the former prediction does not make the resolution of the next one gold."""
    service.start()
    assert service.ran("make bench", 0)
    service("update_ghap", session_id="s1", prediction="`make test` passes")
    assert service("resolve_ghap", session_id="s1", status="confirmed")["confidence_tier"] != "gold"


@pytest.mark.parametrize(
    ("command", "code", "fields"),
    [
        ("make lint", 0, {}),
        ("make bench", None, {}),
        ("make bench", 0, {"session": "s2"}),
        ("make bench " + "x" * limits.MAX_COMMAND_CHARS, 0, {}),
        ("make bench TOKEN=[REDACTED:token]", 0, {}),
    ],
)
def test_what_was_not_predicted_offers_nothing(
    service: Service, command: str, code: int | None, fields: dict[str, Any]
) -> None:
    """Another command, no exit code, another session, a command that is cut or has a secret."""
    service.start()
    assert service.ran(command, code, **fields) == ""


def test_a_command_of_before_the_attempt_says_nothing(service: Service) -> None:
    """Events may come out of the spool late. The clock of a hook that is waited for may be wrong, its order is not."""
    service.start()
    before = int(service.app.now()) - 60
    service.ran("make bench", 0, timestamp=before, late=True)
    assert "observed" not in service("get_active_ghap", session_id="s1")
    assert "looks confirmed" in service.ran("make bench", 0, timestamp=before)


def test_an_outcome_resolves_by_itself_where_the_setting_says_so(open_service: Open) -> None:
    """Gold, with the command as its result, also when nobody waits for the hook; the lesson may follow, once."""
    service = open_service(journal="auto")
    number = service.start()
    told = service.ran("make bench", 0)
    assert f'm{number} "make login fast" is confirmed: "make bench" exited with 0' in told
    metadata = service.attempt(number)["metadata"]
    assert (metadata["outcome"], metadata["confidence_tier"]) == ("confirmed", "gold")
    assert metadata["result"] == "the predicted command exited with 0 (#1)" and service.ran("make bench", 2) == ""
    with pytest.raises(Conflict):
        service("resolve_ghap", session_id="s1", status="falsified", lesson="it was not")
    lesson = service("resolve_ghap", session_id="s1", status="confirmed", lesson="index what is looked up")["lesson_id"]
    assert service.attempt(lesson)["kind"] == "lesson" and "index what" in service.attempt(number)["content"]
    with pytest.raises(Conflict):
        service("resolve_ghap", session_id="s1", status="confirmed", lesson="again")
    second = service.start(goal="another")
    assert service.ran("make bench", 0, late=True) == ""
    assert service.attempt(second)["metadata"]["outcome"] == "confirmed"


@pytest.mark.parametrize(("setting", "line"), [("offer", "looks falsified"), ("auto", "is falsified")])
def test_a_failure_says_nothing_before_something_was_changed(open_service: Open, setting: str, line: str) -> None:
    """An agent looks at what fails before it acts: that is neither offered nor resolves the attempt, and the failure
    after a change is."""
    service = open_service(journal=setting)
    number = service.start()
    assert service.ran("make bench", 2) == "" == service.ran("make bench", 2)
    assert "observed" not in service.attempt(number)["metadata"]
    service.edit()
    assert line in service.ran("make bench", 2)
    assert service.attempt(number)["metadata"].get("outcome") == (None if setting == "offer" else "falsified")


@pytest.mark.parametrize("setting", ["offer", "auto"])
def test_of_two_runs_at_once_one_is_told(open_service: Open, setting: str) -> None:
    """A client runs tools side by side: the outcome is kept once, and offered once."""
    service = open_service(journal=setting)
    number = service.start()
    now = int(service.app.now())
    events = [event("command", "make bench", now, project=PROJECT, metadata={"exit_code": 0}) for _ in range(5)]
    call = Call(interface="hook", deadline=boot_seconds() + 60)

    async def record() -> list[dict[str, Any]]:
        return list(
            await asyncio.gather(*(service.app.execute("nudge.record", {"event": one}, call) for one in events))
        )

    assert len([result for result in asyncio.run(record()) if "tell" in result]) == 1
    assert service.attempt(number)["metadata"].get("outcome") == (None if setting == "offer" else "confirmed")


def test_an_update_at_the_same_moment_is_not_lost(service: Service) -> None:
    """What was observed is written to the attempt as it is by then, and not at all when it predicts something else."""
    number = service.start()

    async def both(**fields: str) -> None:
        ran = event("command", "make bench", int(service.app.now()), project=PROJECT, metadata={"exit_code": 0})
        hook = service.app.execute("nudge.record", {"event": ran}, Call(interface="hook", deadline=boot_seconds() + 60))
        update = service.app.execute("nudge.update_ghap", {"session_id": "s1", **fields}, Call())
        await asyncio.gather(hook, update)

    notes = [f"note {count}" for count in range(20)]
    for note in notes:
        asyncio.run(both(note=note))
    kept = service.attempt(number)["metadata"]
    assert [one["note"] for one in kept["iterations"]] == notes and kept["observed"]["outcome"] == "confirmed"


@pytest.mark.parametrize("setting", ["offer", "auto"])
def test_an_attempt_keeps_no_copy_of_the_command(open_service: Open, setting: str) -> None:
    """It names the observation: a purge of that leaves nothing behind."""
    service = open_service(journal=setting)
    number = service.start()
    assert "CUSTOMER=globex" in service.ran("make bench CUSTOMER=globex", 0)
    note = service.attempt(number)
    assert "globex" not in str(note) and (note["metadata"].get("observed") or {"observation": 1})["observation"] == 1


def test_the_setting_turns_it_off(open_service: Open) -> None:
    """With `0`, exit codes are not compared with predictions."""
    service = open_service(journal="0")
    service.start()
    assert service.ran("make bench", 0) == ""


def test_each_of_several_attempts_is_judged_by_its_own_prediction(service: Service) -> None:
    """Subagents share a session."""
    first = service.start()
    service.start(goal="another", prediction="`make test` passes", parallel=True)
    told = service.ran("make bench", 0)
    assert f"m{first} " in told and "another" not in told
