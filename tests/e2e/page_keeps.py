"""What the page keeps to while it is used: its place, its keys, its shape, and no connection that it does not need."""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.contract.test_page import open_streams
from tests.e2e import browser, page_world
from tests.e2e.browser import Tab
from tests.e2e.clients import Desk
from tests.harness import eventually
from tests.unit.proposals.model_server import NAME, asked, model_server, saying

_RELOADS = 50
_SHIFT = 0.1  # what the browser calls a good value: layout that moves by itself, as a share of the window
_SHIFTED = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
  }).observe({type: 'layout-shift', buffered: true});
}"""


def page_reloads_leave_nothing(desk: Desk) -> None:
    """Fifty reloads, and then the tab is closed: the server has no connection left."""
    server = desk.machine.http_only()
    with browser.started() as chromium:
        tab = chromium.tab()
        tab.sign_in(desk.machine)
        for _ in range(_RELOADS):
            tab.page.reload()
            tab.page.locator(".state .dot:not(.off)").wait_for()
        eventually(lambda: open_streams(desk.machine, server.pid) <= 6, "a browser has six connections at most")
        tab.page.context.close()
        eventually(lambda: open_streams(desk.machine, server.pid) == 0, "the server has closed every connection")


def page_says_that_no_server_is_there(desk: Desk) -> None:
    """It says what to do, keeps what it shows, and goes on by itself when there is a server again."""
    machine = desk.machine
    machine.http_only()
    page_world.build(machine)
    with browser.started() as chromium:
        tab = chromium.tab()
        tab.sign_in(machine)
        tab.page.locator(".events li").first.wait_for()
        shown = tab.page.locator(".events li").count()
        os.kill(machine.ready().pid, signal.SIGKILL)
        strip = tab.page.locator(".strip")
        strip.wait_for()
        assert "nudge serve" in strip.inner_text() and "no server" in tab.text(".state")
        assert tab.page.locator(".events li").count() == shown
        assert not tab.violations()
        machine.http_only()
        strip.wait_for(state="detached")
        assert tab.page.locator(".events li").count() == shown


def page_is_used_by_keys(desk: Desk) -> None:
    """Search, go down, open, edit, close and undo without a mouse; the focus is where the work is."""
    desk.machine.http_only()
    page_world.build(desk.machine)
    with browser.started() as chromium:
        tab = chromium.tab()
        tab.sign_in(desk.machine)
        press = tab.page.keyboard.press
        press("2")
        tab.page.locator(".row").first.wait_for()
        press("/")
        tab.page.keyboard.type("shop-api/build")
        eventually(lambda: tab.page.locator(".row").count() == 1, "one hint has these words")
        press("ArrowDown")
        eventually(lambda: _focused(tab, ".row a"), "the row has the focus")
        press("Enter")
        tab.page.locator(".panel .actions").first.wait_for()
        eventually(lambda: _focused(tab, ".panel .detail"), "the panel has the focus")
        press("e")
        eventually(lambda: _focused(tab, "textarea[name=value]"), "the first field has the focus")
        tab.page.keyboard.press("Control+A")
        tab.page.keyboard.type("make build -j4")
        press("Tab")
        press("Enter")
        tab.page.locator(".panel pre.value", has_text="-j4").wait_for()
        eventually(lambda: _focused(tab, ".panel .detail"), "the panel has the focus again")
        press("u")
        tab.page.locator(".panel pre.value", has_text="-j4").wait_for(state="detached")
        press("Escape")
        tab.page.locator(".panel").wait_for(state="detached")
        eventually(lambda: _focused(tab, ".row a"), "the row has the focus again")
        press("?")
        assert tab.page.get_by_role("dialog").is_visible()
        assert not tab.violations()
        press("Escape")
        assert not tab.page.get_by_role("dialog").is_visible()
        tab.page.go_back()
        tab.page.locator(".panel .detail").wait_for()
        assert not tab.complaints, tab.complaints


def _focused(tab: Tab, selector: str) -> bool:
    return bool(tab.page.evaluate("selector => document.activeElement.matches(selector)", selector))


def page_does_not_jump(desk: Desk) -> None:
    """Nothing moves under the reader while a view loads or while something is recorded."""
    desk.machine.http_only()
    page_world.build(desk.machine)
    with browser.started() as chromium:
        tab = chromium.tab()
        tab.sign_in(desk.machine)
        for view, what in (("now", ".events li"), ("known", ".row"), ("told", ".told-line"), ("history", ".row")):
            tab.page.goto("about:blank")
            tab.page.goto(f"http://127.0.0.1:{desk.machine.ready().port}/#/{view}")
            tab.page.evaluate(_SHIFTED)
            tab.page.locator(what).first.wait_for()
            tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            shifted = tab.page.evaluate("() => window.shifted")
            assert shifted < _SHIFT, f"{view}: {shifted}"


def page_reviews_proposals(desk: Desk) -> None:
    """What a language model proposes is accepted and rejected here, each with its undo; it is text like any other."""
    machine = desk.machine
    with model_server() as model, browser.started() as chromium:
        said: dict[str, Any] = {"tags": {"tags": ["sqlite"]}, "contradiction": {"contradicts": True}}
        model.answer = lambda request: saying(said.get(asked(request), {}))
        machine.http_only("--tier", "smart", "--llm-url", model.url, "--llm-model", NAME)
        first = machine.json("remember", "The state is in <b>MySQL</b>", "--title", "State: <b>MySQL</b>")["id"]
        second = machine.json("remember", "The state is in SQLite", "--title", "State: SQLite")["id"]
        machine.json("note", "auto-tag", f"m{first}")
        machine.json("note", "detect-contradiction", f"m{first}", f"m{second}")
        tab = chromium.tab()
        tab.sign_in(machine)
        tab.view("/known")
        tab.page.get_by_text("2 proposals of the language model").click()
        rows = tab.page.locator("details .told-line")
        assert "State: <b>MySQL</b>" in rows.first.inner_text()
        assert not tab.violations()
        tagged = rows.filter(has_text="tags")
        tagged.get_by_role("button", name="Accept").click()
        tagged.wait_for(state="detached")
        assert machine.json("note", "get", f"m{first}")["memory"]["tags"] == ["sqlite"]
        tab.page.get_by_role("button", name="Undo").last.click()
        tagged.wait_for()
        assert machine.json("note", "get", f"m{first}")["memory"]["tags"] == []
        rows.filter(has_text="contradict").get_by_role("button", name="Reject").click()
        eventually(lambda: rows.count() == 1, "one is left")
        tab.view("/health")
        assert NAME in tab.page.locator("main", has_text="language model").inner_text()
        assert not tab.complaints, tab.complaints


CHECKS = (
    page_reloads_leave_nothing,
    page_says_that_no_server_is_there,
    page_is_used_by_keys,
    page_does_not_jump,
    page_reviews_proposals,
)
