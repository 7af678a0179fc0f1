"""The lists that the page and the terminal show: each has a total, a cursor and counts, and they agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nudge.process.client import Client
from tests.contract.scripted import Agent
from tests.harness import Machine

API, WEB = "git:github.com/acme/api", "git:github.com/acme/web"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    one = Machine()
    try:
        one.prepared_server()
        _fill(one)
        yield one
    finally:
        one.close()


def _fill(machine: Machine) -> None:
    for repo, key, tags in ((API, "test", "ci,docker"), (API, "build", "ci"), (WEB, "test", "")):
        tagged = ("--tags", tags) if tags else ()
        machine.json("set", "app", key, f"make {key}", "--scope-repo", repo, *tagged)
    machine.json("set", "--global", "git", "sign", "git commit -S")
    for number in range(5):
        kind = "decision" if number % 2 else "lesson"
        machine.json("remember", f"Text {number} about docker", "--title", f"Note {number}", "--kind", kind)
    for session, client in (("s-1", "claude-code"), ("s-2", "codex")):
        agent = Agent(machine, session, str(machine.base), client)
        agent.start()
        agent.fails("make test", "Exit code 2\nmake: *** No rule to make target 'test'")
        agent.runs("make check", "ok")


def _known(machine: Machine, *words: str) -> Any:
    return machine.json("known", *words)


def test_the_archive_is_a_list_like_the_others(machine: Machine) -> None:
    """It has a total, a cursor, counts, words and filters; the latest comes first, and no other list has it."""
    ids = [machine.json("remember", f"Zebra {n}", "--title", f"Zebra_{n}", "--kind", "lesson")["id"] for n in range(3)]
    machine.json("note", "forget", "--id", ",".join(f"m{one}" for one in ids), "--yes")
    listed = _known(machine, "zebra", "--type", "archived", "--counts")
    assert [item["id"] for item in listed["items"]] == [f"m{one}" for one in reversed(ids)]
    assert (listed["total"], listed["next"], listed["counts"]["type"]) == (3, None, [["archived", 3]])
    assert listed["counts"]["kind"] == [["lesson", 3]] and listed["items"][0]["reason"] == "forgotten"
    assert _known(machine, "zebra")["total"] == 0
    first = _known(machine, "--type", "archived", "--limit", "2")
    rest = _known(machine, "--type", "archived", "--limit", "2", "--after", first["next"])
    assert [item["id"] for item in first["items"] + rest["items"]] == [f"m{one}" for one in reversed(ids)]
    assert _known(machine, "zebra_1", "--type", "archived")["total"] == 1
    assert _known(machine, "--type", "archived", "--kind", "decision")["total"] == 0
    whole = machine.json("note", "get", str(ids[0]), "--archived")["memory"]
    assert (whole["content"], whole["archive_reason"]) == ("Zebra 0", "forgotten")
    assert machine.cli("note", "get", str(ids[0])).returncode != 0


def test_pages_of_what_is_known_are_the_whole_list(machine: Machine) -> None:
    """Each item is in exactly one page, the latest change first; every page says the same total."""
    whole = _known(machine, "--limit", "100")
    assert whole["next"] is None and whole["total"] == len(whole["items"]) >= 9
    times = [item["updated_at"] for item in whole["items"]]
    assert times == sorted(times, reverse=True)
    paged, after = [], None
    while True:
        page = _known(machine, "--limit", "2", *(("--after", after) if after else ()))
        assert page["total"] == whole["total"]
        paged += page["items"]
        if (after := page["next"]) is None:
            break
    assert paged == whole["items"]
    for type_ in ("note", "archived"):
        for after in ("nonsense", '[1.0, 2, "api/k2 {}"]', f'[1.0, 0, "{"9" * 30}"]'):
            refused = machine.cli("known", "--after", after, "--type", type_)
            is_of_hints = type_ == "note" and "api" in after
            assert refused.returncode == 0 if is_of_hints else (refused.returncode == 3 and "after" in refused.stderr)


def test_counts_are_of_all_pages_and_each_is_what_its_filter_finds(machine: Machine) -> None:
    """What a facet counts is the total of the list with that filter."""
    found = _known(machine, "--counts", "--limit", "1")
    assert sum(number for _, number in found["counts"]["type"]) == found["total"]
    for name in ("type", "kind", "repo", "tag", "by"):
        for value, number in found["counts"][name]:
            assert _known(machine, f"--{name}", value)["total"] == number, (name, value)
    assert found["counts"]["tag"] == [["ci", 2], ["docker", 1]]


def test_words_narrow_the_list(machine: Machine) -> None:
    """Every word must be there, in any field that is shown."""
    for words in (("make", "build"), ("app/build",)):
        assert [item["id"] for item in _known(machine, *words)["items"]] == ["app/build"]
    assert {item["title"] for item in _known(machine, "docker", "--kind", "decision")["items"]} == {"Note 1", "Note 3"}
    assert _known(machine, "nowhere")["total"] == 0
    assert _known(machine, "--since", "1h")["total"] == _known(machine)["total"]


def test_in_a_place_each_hint_says_whether_it_applies(machine: Machine) -> None:
    """The why-not is that of the hint's scope; what applies and what does not are together everything that can be
    excluded."""

    def listed(**more: Any) -> Any:
        params = {"context": {"repo": API}, "limit": 100, **more}
        return _rpc(machine, "nudge.known", params)

    hints = [item for item in listed()["items"] if item["type"] == "hint"]
    assert {item["title"] for item in hints if item["applies"]} == {"app/test", "app/build", "git/sign"}
    excluded = listed(applies=False)
    assert [item["reasons"] for item in excluded["items"] if item["type"] == "hint"] == [[f"repo={API}, needs {WEB}"]]
    facts = [item for item in excluded["items"] if item["type"] == "fact"]
    assert all(item["reasons"][0].startswith("a fact of ") for item in facts)
    assert excluded["total"] + listed(applies=True)["total"] + 5 == listed()["total"]
    shown = machine.cli("known", "--excluded", cwd=str(machine.base)).stdout
    assert "app/test" in shown and "repo unknown" in shown and "git/sign" not in shown


def _rpc(machine: Machine, operation: str, params: dict[str, Any]) -> Any:
    return Client(environ={**machine.environ, "NUDGE_RUNTIME_DIR": machine.runtime}).call(operation, params)


def test_pages_of_what_happened_are_the_whole_history(machine: Machine) -> None:
    """As for what is known; `--before` goes on with older ones."""
    whole = machine.json("browse", "--limit", "100", "--counts")
    assert whole["total"] == len(whole["items"]) == 6
    paged: list[Any] = []
    while len(paged) < 6:
        before = ("--before", str(paged[-1]["id"])) if paged else ()
        paged += machine.json("browse", "--limit", "4", *before)["items"]
    assert [row["id"] for row in paged] == [row["id"] for row in whole["items"]]
    for facet, option in (("type", "--type"), ("client", "--client")):
        for value, number in whole["counts"][facet]:
            assert machine.json("browse", option, value, "--counts")["total"] == number
    assert {row["obs_type"] for row in machine.json("browse", "rule", "target")["items"]} == {"command_error"}


def test_changes_go_on_from_the_numbers_that_were_seen(machine: Machine) -> None:
    """Without numbers the last ones; with those of an answer, what came after it: nothing yet."""
    last = machine.json("watch", "--once")
    assert [row["content_preview"] for row in last["observations"]][-1] == "make check"
    seen = {f"after_{name}": number for name, number in last["at"].items()}
    again = _rpc(machine, "nudge.changes", seen)
    assert again["observations"] == again["told"] == [] and again["at"] == last["at"]
    before = {"after_observation": last["observations"][-2]["id"], "after_told": seen["after_told"]}
    assert [row["id"] for row in _rpc(machine, "nudge.changes", before)["observations"]] == [last["at"]["observation"]]


def test_a_session_says_its_branch(machine: Machine) -> None:
    """That of the last thing it did on one; none where there is no repository."""
    sessions = machine.json("sessions")
    assert {one["session_id"]: one["branch"] for one in sessions} == {"s-1": None, "s-2": None}
