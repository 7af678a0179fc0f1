"""The page in a real browser, while two agents are at work."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.contract.scripted import Agent
from tests.e2e import browser, page_world
from tests.e2e.browser import Browser, Tab
from tests.e2e.clients import Desk
from tests.harness import Stdio, eventually

_numbers = itertools.count(1)


@contextmanager
def _at_work(desk: Desk) -> Iterator[tuple[Tab, Stdio, Stdio, str]]:
    """The page of a machine that has a past, signed in, and two agents in one of its repos."""
    desk.machine.http_only()
    repo = str(page_world.build(desk.machine)["shop-api"])
    agents = [desk.machine.serve(cwd=repo) for _ in range(2)]
    for agent in agents:
        agent.initialize()
    with browser.started() as chromium:
        tab = chromium.tab()
        tab.sign_in(desk.machine)
        tab.page.evaluate("() => { window.isFirstLoad = true; }")
        yield tab, agents[0], agents[1], repo
        assert tab.page.evaluate("() => window.isFirstLoad"), "the page was loaded again"
        assert not tab.complaints, tab.complaints


def _row(tab: Tab, text: str) -> Any:
    return tab.page.locator(".row", has_text=text)


def _button(tab: Tab, name: str) -> Any:
    return tab.page.get_by_role("button", name=name, exact=True)


def _undo(tab: Tab) -> None:
    _button(tab, "Undo").last.click()


def page_signs_in(desk: Desk) -> None:
    """The code is gone from the address and from the browser's history; neither it nor the token is kept; a reload
    stays signed in, another tab is not, and says how to get in."""
    desk.machine.http_only()
    address = desk.machine.json("open")["address"]
    code, token = address.partition("#code=")[2], desk.machine.json("token")["token"]
    with browser.started() as chromium:
        tab = chromium.tab()
        tab.page.goto(address)
        tab.page.locator("nav").wait_for()
        assert code not in tab.page.url
        kept = tab.page.evaluate("() => JSON.stringify([{...sessionStorage}, {...localStorage}, document.cookie])")
        assert "nudge-secret" in kept and code not in kept and token not in kept
        tab.page.reload()
        tab.page.locator("nav").wait_for()
        other = Tab(tab.page.context.new_page())
        other.page.goto(address.partition("#")[0])
        assert "nudge open" in other.page.locator(".door").inner_text()
        again = chromium.tab()
        again.page.goto(address)
        assert "was used" in again.text("[role=alert]")


def page_hint_is_set_and_edited(desk: Desk) -> None:
    """A hint that one agent sets appears without a reload; what is edited here is what the other agent gets next."""
    with _at_work(desk) as (tab, one, other, _):
        tab.view("/known")
        _row(tab, "shop-api/build").wait_for()
        one.call("nudge_set_hint", component="shop-api", key="deploy", value="make deploy")
        _row(tab, "shop-api/deploy").click()
        _button(tab, "Edit").click()
        tab.page.locator("textarea[name=value]").fill("make deploy STAGE=blue")
        tab.page.locator("input[name=reason]").fill("green is live")
        _button(tab, "Save").click()
        tab.page.locator(".panel pre", has_text="STAGE=blue").wait_for()
        got = other.call("nudge_get_hint", component="shop-api", key="deploy")
        assert got["hint"]["value"] == "make deploy STAGE=blue"
        assert got["hint"]["meta"]["reason"] == "green is live"
        _undo(tab)
        eventually(lambda: _value(other, "deploy") == "make deploy", "the edit is undone")


def page_hint_says_what_it_said_before(desk: Desk) -> None:
    """Each value with who set it and in which session; one is set again, and a deletion that is undone has them all."""
    with _at_work(desk) as (tab, _, other, _):
        session = {"_meta": {"sessionId": "ses-a3"}}
        for value, reason in (("make up", "as in CI"), ("make up -j", "faster"), ("make up -j4", "")):
            named = {"component": "shop-api", "key": "up", "value": value, "meta": {"reason": reason} if reason else {}}
            other.request("tools/call", {"name": "nudge_set_hint", "arguments": named, **session})
        tab.view("/known")
        _row(tab, "shop-api/up").locator("a").click()
        earlier = tab.page.locator(".earlier li")
        earlier.first.wait_for()
        assert [line.splitlines()[0] for line in earlier.all_inner_texts()] == ["make up -j", "make up"]
        assert "as in CI" in earlier.last.inner_text() and "ses-a3" in earlier.last.inner_text()
        assert "ses-a3" in tab.page.locator(".panel table a").first.inner_text()
        earlier.last.get_by_role("button", name="Set again").click()
        eventually(lambda: _value(other, "up") == "make up", "what it said before is set again")
        eventually(lambda: earlier.count() == 3, "and what it said until then is among the earlier ones")
        got = other.call("nudge_get_hint", component="shop-api", key="up")["hint"]["meta"]
        assert (got["reason"], got["source"], got.get("added_by")) == ("as in CI", "user", None)
        _button(tab, "Delete").click()
        _row(tab, "shop-api/up").wait_for(state="detached")
        _undo(tab)
        _row(tab, "shop-api/up").locator("a").click()
        eventually(lambda: earlier.count() == 3, "all are there again")


def _value(agent: Stdio, key: str) -> Any:
    answer = agent.tool("nudge_get_hint", component="shop-api", key=key)
    return None if answer.get("isError") else answer["structuredContent"]["hint"]["value"]


def page_delete_is_undone(desk: Desk) -> None:
    """A hint, a note and several at once come back as they were, with what they were credited."""
    with _at_work(desk) as (tab, one, _, _):
        tab.view("/known")
        before = one.call("nudge_get_hint", component="shop-api", key="migrate")["hint"]
        _row(tab, "shop-api/migrate").click()
        _button(tab, "Delete").click()
        eventually(lambda: _value(one, "migrate") is None, "the hint is deleted")
        _row(tab, "shop-api/migrate").wait_for(state="detached")
        _undo(tab)
        _row(tab, "shop-api/migrate").wait_for()
        after = one.call("nudge_get_hint", component="shop-api", key="migrate")["hint"]
        same = ("value", "failure_count", "use_count", "created_at", "meta")
        assert {name: after.get(name) for name in same} == {name: before.get(name) for name in same}
        for title in ("Prices are cents", "Vite and .env"):
            _row(tab, title).get_by_role("checkbox").check()
        tab.page.get_by_role("toolbar").get_by_role("button", name="Delete 2").click()
        _row(tab, "Prices are cents").wait_for(state="detached")
        assert _notes(desk) == 2
        _undo(tab)
        _row(tab, "Prices are cents").wait_for()
        assert _notes(desk) == 4


def page_note_comes_back_as_it_was(desk: Desk) -> None:
    """A note that is deleted, alone or with another, has its number again, its links, what was told of it and its
    times; one that is archived is in a list of its own, and is restored from there."""
    with _at_work(desk) as (tab, _, _, _):
        one, other = (
            desk.machine.json("known", word, "--type", "note")["items"][0]["id"] for word in ("cents", "Redis")
        )
        desk.machine.json("note", "link", one, other, "--relation", "derived_from")
        before = [desk.machine.json("note", "get", note) for note in (one, other)]
        tab.view("/known")
        for title in ("Prices are cents", "Sessions live in Postgres"):
            _row(tab, title).get_by_role("checkbox").check()
        tab.page.get_by_role("toolbar").get_by_role("button", name="Delete 2").click()
        _row(tab, "Prices are cents").wait_for(state="detached")
        _undo(tab)
        _row(tab, "Prices are cents").wait_for()
        assert [desk.machine.json("note", "get", note) for note in (one, other)] == before
        assert len(before[0]["links"]) == 1
        _row(tab, "Prices are cents").locator("a").click()
        _button(tab, "Archive").click()
        _row(tab, "Prices are cents").wait_for(state="detached")
        tab.page.locator("select[name=type]").select_option("archived")
        _row(tab, "Prices are cents").locator("a").click()
        assert "divides by 100" in tab.text(".panel .text")
        _button(tab, "Restore").click()
        _row(tab, "Prices are cents").wait_for(state="detached")
        tab.page.locator("select[name=type]").select_option("")
        _row(tab, "Prices are cents").wait_for()
        assert len(desk.machine.json("note", "get", one)["links"]) == 1


def _notes(desk: Desk) -> int:
    return int(desk.machine.json("known", "--type", "note")["total"])


def page_makes_and_changes(desk: Desk) -> None:
    """A new hint and a new note; a success that is counted; a pin; the archive with its undo; a fact is forgotten when
    that was asked twice; what is refused says why beside the form."""
    with _at_work(desk) as (tab, one, _, _):
        tab.view("/known")
        _button(tab, "New hint").click()
        _fill(tab, component="shop-api", key="seed", value="make seed", scope="{oops")
        _button(tab, "Save").click()
        assert "scope: must be JSON" in tab.text("form [role=alert]")
        _fill(tab, scope='{"repo": ["git:github.com/acme/shop-api"]}')
        _button(tab, "Save").click()
        _row(tab, "shop-api/seed").locator("a").click()
        _button(tab, "Worked").click()
        tab.page.locator(".panel", has_text="1 time, failed 0").wait_for()
        assert one.call("nudge_get_hint", component="shop-api", key="seed")["hint"]["use_count"] == 1
        _button(tab, "New note").click()
        _fill(tab, title="Seeds", content="Ten rows of each table.", tags="database, test")
        _button(tab, "Save").click()
        _row(tab, "Seeds").locator("a").click()
        _button(tab, "Pin").click()
        _row(tab, "Seeds").get_by_text("pinned", exact=True).wait_for()
        _button(tab, "Archive").click()
        _row(tab, "Seeds").wait_for(state="detached")
        _undo(tab)
        _row(tab, "Seeds").wait_for()
        assert _notes(desk) == 5
        _row(tab, "npm run dev").locator("a").click()
        _button(tab, "Forget").click()
        assert "cannot be undone" in tab.text(".panel .actions")
        _button(tab, "Forget it").click()
        _row(tab, "npm run dev").wait_for(state="detached")
        assert desk.machine.json("known", "--type", "fact")["total"] == 2


def _fill(tab: Tab, **fields: str) -> None:
    for name, text in fields.items():
        tab.page.locator(f"form.edit [name={name}]").fill(text)


def page_line_is_banned(desk: Desk) -> None:
    """Why a line was told is said beside it; a line that is banned here is not told to the next session, and is told
    again when that is undone."""
    with _at_work(desk) as (tab, _, _, repo):
        tab.view("/told/session/ses-a3")
        line = tab.page.locator(".told-line", has_text="shop-api/build")
        assert "why: repo git:github.com/acme/shop-api matched" in line.inner_text()
        assert "make build" in _told_at_start(desk, repo)
        line.get_by_role("button", name="Never tell this again").click()
        line.get_by_role("button", name="Allow again").wait_for()
        assert "make build" not in _told_at_start(desk, repo)
        _undo(tab)
        line.get_by_role("button", name="Never tell this again").wait_for()
        assert "make build" in _told_at_start(desk, repo)
        tab.page.get_by_text("What would a session be told now?").click()
        tab.page.locator("input[name=trial-cwd]").fill(repo)
        _button(tab, "Try").click()
        tab.page.locator(".trial pre", has_text="make build").wait_for()


def _told_at_start(desk: Desk, repo: str) -> str:
    return Agent(desk.machine, f"ses-new-{next(_numbers)}", repo).start()


def page_session_is_read(desk: Desk) -> None:
    """From who is at work to what the session did, in order; from a file to everything that happened to it."""
    with _at_work(desk) as (tab, _, _, _):
        tab.page.locator(".now aside a", has_text="claude-code").first.click()
        timeline = tab.page.locator(".panel .timeline")
        timeline.first.wait_for()
        shown = " ".join(timeline.all_inner_texts())
        places = [shown.index(text) for text in ("pytest -q", "uv run pytest -q", "alembic", "git commit")]
        assert places == sorted(places)
        assert "make the checkout test pass" in tab.text(".panel blockquote")
        tab.page.locator(".panel .timeline a", has_text="api.py").click()
        tab.page.locator(".panel a", has_text="File").click()
        eventually(lambda: tab.page.locator(".panel section h3").count() == 3, "three sessions touched the file")
        tab.page.locator("input[type=search]").fill("OperationalError")
        eventually(lambda: tab.page.locator(".row").count() == 3, "three failures have the word")


def page_outlives_its_server(desk: Desk) -> None:
    """PRIMARY is killed with `kill -9` while the page is open: it goes on by itself, nothing is missed, and nothing is
    there twice."""
    with _at_work(desk) as (tab, _, other, repo):
        tab.page.locator(".events li").first.wait_for()
        agent = Agent(desk.machine, "ses-a3", repo, "claude-code")
        agent.runs("echo before")
        tab.page.locator(".events li", has_text="echo before").wait_for()
        killed = desk.machine.ready().pid
        os.kill(killed, signal.SIGKILL)
        assert _value(other, "build") == "make build"
        agent.runs("echo after")
        tab.page.locator(".events li", has_text="echo after").wait_for()
        assert desk.machine.ready().pid != killed
        for text in ("echo before", "echo after"):
            assert tab.page.locator(".events li", has_text=text).count() == 1
        keys = tab.page.evaluate("() => [...document.querySelectorAll('.events li')].map(one => one.dataset.key)")
        assert len(keys) == len(set(keys)) > 20
        tab.view("/known")
        other.call("nudge_set_hint", component="shop-api", key="late", value="make late")
        _row(tab, "shop-api/late").wait_for()


VIEWS: dict[str, Callable[[Tab], None]] = {
    "now": lambda tab: _show(tab, "/now", "aside .fact"),
    "known": lambda tab: _show(tab, "/known", ".row"),
    "hint": lambda tab: _open_row(tab, "shop-api/test"),
    "note": lambda tab: _open_row(tab, "Prices are cents"),
    "versions": lambda tab: _open_row(tab, "shop-web/dev"),
    "archived": lambda tab: _show_archive(tab),
    "archived-note": lambda tab: _open_row(tab, "An old note"),
    "edit": lambda tab: _edit(tab, "shop-api/test"),
    "place": lambda tab: _fill_place(tab),
    "told": lambda tab: _show(tab, "/told", ".told-line"),
    "told-session": lambda tab: _show(tab, "/told/session/ses-a3", ".told-line"),
    "history": lambda tab: _show(tab, "/history", ".row"),
    "session": lambda tab: _show(tab, "/history/session/ses-a1", ".panel .timeline"),
    "observation": lambda tab: _show(tab, "/history/observation/4", ".panel .timeline"),
    "health": lambda tab: _show(tab, "/health", "table.checks"),
}


def _show(tab: Tab, address: str, selector: str) -> None:
    """Go there, and wait for what comes last."""
    tab.view(address)
    tab.page.locator(selector).first.wait_for(state="attached")


def _open_row(tab: Tab, text: str) -> None:
    _close_panel(tab)
    _row(tab, text).first.click()
    tab.page.locator(".panel .actions").first.wait_for()


def _close_panel(tab: Tab) -> None:
    tab.view("/known")
    for _ in range(3):
        tab.page.keyboard.press("Escape")


def _show_archive(tab: Tab) -> None:
    _close_panel(tab)
    tab.page.locator("select[name=type]").select_option("archived")
    _row(tab, "An old note").first.wait_for()


def _edit(tab: Tab, text: str) -> None:
    _close_panel(tab)
    tab.page.locator("select[name=type]").select_option("")
    _open_row(tab, text)
    _button(tab, "Edit").click()
    tab.page.locator("form.edit").wait_for()


def _fill_place(tab: Tab) -> None:
    _close_panel(tab)
    tab.page.get_by_text("What would an agent get, and why?").click()
    tab.page.locator("[name=place-repo]").fill("git:github.com/acme/shop-api")
    tab.page.locator(".answer").wait_for()


def page_can_be_used_by_all(desk: Desk) -> None:
    """axe-core finds nothing in any view, light and dark; nothing is wider than a narrow window. The pictures are
    kept."""
    desk.machine.http_only()
    page_world.build(desk.machine)
    page_world.change(desk.machine)
    with browser.started() as chromium:
        found = [one for scheme in ("light", "dark") for one in _look(chromium, desk, scheme)]
    assert not found, "\n".join(found)


def _look(chromium: Browser, desk: Desk, scheme: str) -> Iterator[str]:
    for name, size in (("wide", browser.WIDE), ("narrow", browser.NARROW)):
        tab = chromium.tab(size, scheme)
        tab.sign_in(desk.machine)
        for view, show in VIEWS.items():
            show(tab)
            tab.picture(f"{view}-{name}-{scheme}")
            yield from (f"{view}, {name}, {scheme}: {one}" for one in tab.violations())
            if tab.page.evaluate("() => document.documentElement.scrollWidth > innerWidth"):
                yield f"{view} is wider than the {name} window"
        assert not tab.complaints, tab.complaints


CHECKS = (
    page_signs_in,
    page_hint_is_set_and_edited,
    page_hint_says_what_it_said_before,
    page_delete_is_undone,
    page_note_comes_back_as_it_was,
    page_makes_and_changes,
    page_line_is_banned,
    page_session_is_read,
    page_outlives_its_server,
    page_can_be_used_by_all,
)
