"""The page with a full store, in a real browser: how long its views take, what a key in its search costs, and what open
pages cost the server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from nudge.core import limits
from nudge.process.client import Client
from tests.bench import budgets, hints, histories, notes
from tests.bench.report import Row, milliseconds
from tests.bench.timing import Samples, ratio, take_turns
from tests.bench.watched import Watched
from tests.e2e import browser
from tests.e2e.browser import Browser, Tab
from tests.harness import Machine, eventually

FIRST_VIEW = 3.0  # x an empty page of the same server
KEYSTROKE = 2.0  # x the operation behind it
ROWS = 200  # in the document

_OBSERVATIONS, _NOTES = 100_000, 75_000
_ROUNDS, _PAGES, _EVENTS, _EVENT_ROUNDS, _SCROLLS = 7, 10, 60, 3, 12
_VIEWS = {"now": ".events li", "known": ".list .row", "told": ".sided aside li", "history": ".list .row"}
_SHOWN = """selector => new Promise((done, fail) => {
  setTimeout(() => fail(Error(`no ${selector} on the page`)), 45_000);
  const look = () => document.querySelector(selector) && done(performance.now());
  new MutationObserver(look).observe(document, {childList: true, subtree: true});
  look();
})"""
_TYPE = """word => new Promise((done, fail) => {
  setTimeout(() => fail(Error(`no answer for ${word}`)), 45_000);
  const [field, main] = [document.querySelector('input[type=search]'), document.querySelector('.known > .main')];
  const began = performance.now();
  let wasBusy = false;
  const observer = new MutationObserver(() => {
    wasBusy ||= main.getAttribute('aria-busy') === 'true';
    if (!wasBusy || main.getAttribute('aria-busy') === 'true') return;
    observer.disconnect();
    done(performance.now() - began);
  });
  observer.observe(main, {attributes: true, childList: true, subtree: true});
  field.value = word;
  field.dispatchEvent(new Event('input', {bubbles: true}));
})"""
_ASK = """async ([address, word]) => {
  const began = performance.now();
  const headers = {Authorization: `Bearer ${sessionStorage.getItem('nudge-secret')}`};
  await (await fetch(`/api/v1/${address}?query=${word}&limit=100`, {headers})).json();
  return performance.now() - began;
}"""
_COUNTED = "() => performance.getEntriesByType('resource').some(one => one.name.includes('facets') && one.responseEnd)"


def views(machine: Machine) -> Iterator[Row]:
    target = _full(machine)
    with browser.started() as chromium:
        tab = chromium.tab()
        tab.sign_in(machine)
        yield from _first_views(chromium, tab)
        yield _keys(tab, "known")
        yield _keys(tab, "history")
        yield _rows(tab)
        tab.page.context.close()
        yield _held(chromium, machine, target)


def _full(machine: Machine) -> Watched:
    os.makedirs(machine.runtime, mode=0o700, exist_ok=True)
    path = os.path.join(machine.runtime, "nudge.db")
    histories.generate(path, _OBSERVATIONS, seed=25)
    notes.fill(path, _NOTES)
    target = Watched(machine)
    target.command("import", "-", stdin=json.dumps(hints.payload(limits.MAX_HINTS - 1)))
    return target


def _load_seconds(tab: Tab, address: str, selector: str) -> float:
    """From the start of the navigation to the first of these elements."""
    tab.page.goto("about:blank")
    tab.page.goto(address, wait_until="commit")
    return float(tab.page.evaluate(_SHOWN, selector)) / 1000


def _first_views(chromium: Browser, tab: Tab) -> Iterator[Row]:
    """The empty page is the one that says how to sign in: the same files, and nothing of what is stored."""
    address = tab.page.url.partition("#")[0]
    stranger = chromium.tab()
    subjects: dict[str, Callable[[], float]] = {"empty": lambda: _load_seconds(stranger, address, ".door")}
    for name, selector in _VIEWS.items():
        place = f"{address}#/{name}"
        subjects[name] = lambda place=place, selector=selector: _load_seconds(tab, place, selector)  # type: ignore[misc]
    samples = take_turns(subjects, _ROUNDS)
    for name in _VIEWS:
        yield _row(samples, name, "empty", f"load of {name}", FIRST_VIEW, "empty page")
    stranger.page.context.close()


def _row(samples: Samples, subject: str, baseline: str, what: str, budget: float, against: str) -> Row:
    found = f"{against} {milliseconds(median(samples[baseline]))}"
    return Row(
        "page", what, ratio(samples, subject, baseline), budget, "x", found, milliseconds(median(samples[subject]))
    )


def _keys(tab: Tab, view: str) -> Row:
    words, address = notes.Words(11), {"known": "known", "history": "browse"}[view]
    tab.view(f"/{view}")
    tab.page.locator(".list .row").first.wait_for()

    def press() -> float:
        tab.page.evaluate("() => performance.clearResourceTimings()")
        took = float(tab.page.evaluate(_TYPE, words.text(1)))
        eventually(lambda: tab.page.evaluate(_COUNTED), "the counts by facet are there")
        return took / 1000

    subjects = {"key": press, "operation": lambda: float(tab.page.evaluate(_ASK, [address, words.text(1)])) / 1000}
    samples = take_turns(subjects, 3 * _ROUNDS)
    tab.page.locator("input[type=search]").fill("")
    return _row(samples, "key", "operation", f"a key in the search of {view}", KEYSTROKE, "operation")


def _rows(tab: Tab) -> Row:
    """After scrolling far down in both long lists."""
    most = 0
    for view in ("known", "history"):
        tab.view(f"/{view}")
        tab.page.locator(".list .row").first.wait_for()
        for _ in range(_SCROLLS):
            before = int(tab.page.evaluate("() => document.querySelector('.list').scrollHeight"))
            tab.page.evaluate(
                "() => { const one = document.querySelector('.list'); one.scrollTop = one.scrollHeight; }"
            )
            eventually(lambda before=before: _height(tab) > before, "more rows are there")  # type: ignore[misc]
            most = max(most, int(tab.page.locator(".row").count()))
    return Row("page", f"rows in the document after {_SCROLLS} pages of each list", most, ROWS, "")


def _height(tab: Tab) -> int:
    return int(tab.page.evaluate("() => document.querySelector('.list').scrollHeight"))


def _held(chromium: Browser, machine: Machine, target: Watched) -> Row:
    """Two pages of each view, while an agent's hooks record."""
    tabs = []
    for number in range(_PAGES):
        tab = chromium.tab()
        tab.sign_in(machine)
        tab.view(("/now", "/known", "/told", "/history", "/health")[number % 5])
        tab.page.locator("main").wait_for()
        tabs.append(tab)
    client = Client(environ={**machine.environ, "NUDGE_RUNTIME_DIR": machine.runtime})
    eventually(lambda: "Checking" not in tabs[4].text("main"), "the checks of the page have ended")
    idle = target.gap()["wall"]
    gaps = [_recorded(client, tabs, target, number * _EVENTS) for number in range(_EVENT_ROUNDS)]
    held, own, wall = (median(gap[clock] for gap in gaps) for clock in ("held", "own", "wall"))
    note = f"the loop's own work {own:.1f} ms; by the wall clock {wall:.1f} ms"
    what = f"loop held with {_PAGES} pages open"
    return Row("page", what, held, budgets.LOOP_HELD, "ms", f"before {idle:.1f} ms", note)


def _recorded(client: Client, tabs: list[Tab], target: Watched, first: int) -> dict[str, float]:
    """So many events and hints, until every page that shows them has the last one."""
    for number in range(first, first + _EVENTS):
        client.call("nudge.record", {"event": _event(number)})
        client.call("nudge.set_hint", {"component": "page", "key": "test", "value": f"make {number}"})
    for place in range(0, _PAGES, 5):
        tabs[place].page.locator(".events li", has_text=f"make step-{first + _EVENTS - 1}").wait_for()
    return target.gap()


def _event(number: int) -> dict[str, Any]:
    event = {
        "event_id": f"page-{number}",
        "type": "command",
        "session_id": "s-page",
        "timestamp": 1_800_000_000 + number,
    }
    return {**event, "content": f"make step-{number}"}
