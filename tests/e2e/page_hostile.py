"""Text that means no good, in every field that the page shows: it stays text, and the page keeps its shape."""

from __future__ import annotations

import time
from typing import Any

from nudge.process.client import Client
from tests.e2e import browser
from tests.e2e.browser import Tab
from tests.e2e.clients import Desk
from tests.harness import Machine, eventually

MARKUP = (
    "<script>window.hurt=1</script><img src=x onerror=window.hurt=2><svg onload=window.hurt=3></svg>"
    "<a href='javascript:window.hurt=4'>x</a>\"'`${window.hurt=5}</textarea></title><style>*{display:none}</style>"
)
UNSEEN = "\u202egpj.exe\u202c\u2066x\u2069\u200b\u200d\ufeff\u00ad"
_ANSI = "\x1b[31mred\x1b]8;;http://evil.example\x07"
LONG = "W" * 7_000
HOSTILE = f"{MARKUP}{UNSEEN}"
_RAW = (*(char for char in UNSEEN if ord(char) > 0x7F), "\xad", "\x1b", "\x07")
_LINES = "\n".join(f"line {number} {MARKUP[:40]}" for number in range(60))
_MARK = """() => ({
  hurt: window.hurt ?? null,
  foreign: document.querySelectorAll(
    '#app script, #app style, #app [onerror], #app [onload], #app a[href^=javascript], #app img:not([alt=""])',
  ).length,
  wide: document.documentElement.scrollWidth > innerWidth,
  text: document.body.textContent,
})"""


def _store(machine: Machine) -> None:
    """Every field that others fill: of hints and what they said before, notes, links, the archive, events, sessions,
    prompts and attempts."""
    own = {"NUDGE_RUNTIME_DIR": machine.runtime, "CLAUDE_CODE_SESSION_ID": f"h{MARKUP[:60]}{UNSEEN}"}
    client = Client(environ={**machine.environ, **own})
    repo = f"git:github.com/acme/{'x' * 60}<b>r</b>"
    name = f"<img/src=x/onerror=window.hurt=6>{'n' * 60}"
    meta = {"reason": HOSTILE[:400], "tags": ["<b>t</b>", "t" * 60], "added_by": "<i>me</i>", "scope": {"repo": [repo]}}
    client.call("nudge.set_hint", {"component": name, "key": name, "value": HOSTILE, "meta": meta})
    client.call("nudge.set_hint", {"component": "long", "key": "value", "value": LONG, "meta": {"scope": {}}})
    whole = {"type": "json", "data": {MARKUP[:40]: {"deep": [HOSTILE]}}}
    client.call("nudge.set_hint", {"component": "json", "key": "value", "value": whole, "meta": {"scope": {}}})
    for value, author in ((LONG, "<i>one</i>"), (f"{HOSTILE}\n{_LINES}", f"<i>{UNSEEN}</i>"), ("said now", "three")):
        said = {**meta, "added_by": author, "scope": {}}
        client.call("nudge.set_hint", {"component": "said", "key": "before", "value": value, "meta": said})
    _attempt(client)
    note = {"title": f"{HOSTILE[:200]}", "content": f"{HOSTILE}\n{LONG}", "tags": ["<b>t</b>"]}
    first = client.call("nudge.memory_store", {**note, "namespace": repo, "metadata": {"files": [MARKUP]}})
    second = client.call("nudge.memory_store", {**note, "title": f"{LONG[:150]}", "kind": "decision"})
    ends = {"source_id": first["id"], "target_id": second["id"], "relation": "derived_from"}
    client.call("nudge.memory_link", ends)
    for number, title in enumerate((f"gone {HOSTILE[:190]}", LONG[:160])):
        gone = client.call("nudge.memory_store", {**note, "title": f"{number}{title}", "namespace": repo})
        client.call("nudge.memory_forget", {"ids": [gone["id"]]})
    for number, event in enumerate(_events(repo)):
        client.call("nudge.record", {"event": {"event_id": f"h{number}", "timestamp": int(time.time()), **event}})


def _attempt(client: Client) -> None:
    """Two in the journal, one of them with its end."""
    for session in ("one", "two"):
        fields = {
            "goal": f"goal {MARKUP[:300]}",
            "hypothesis": HOSTILE,
            "prediction": f"{MARKUP}{UNSEEN}",
            "action": LONG[:900],
        }
        started = client.call("nudge.start_ghap", {**fields, "session_id": f"<b>{session}</b>{MARKUP[:60]}"})
        client.call("nudge.update_ghap", {"id": started["id"], "note": f"{HOSTILE}"})
    client.call("nudge.resolve_ghap", {"id": started["id"], "status": "falsified", "result": HOSTILE})


def _events(repo: str) -> list[dict[str, Any]]:
    where = {"session_id": f"s{MARKUP[:60]}", "cwd": f"/tmp/{MARKUP[:80]}", "client": "<b>c</b>", "branch": "<b>b</b>"}
    where["project"] = repo.removeprefix("git:")
    output = f"{HOSTILE}{_ANSI}\n{LONG}"
    return [
        {**where, "type": "session_start", "content": HOSTILE},
        {**where, "type": "user_prompt", "content": f"{HOSTILE}{_ANSI}{LONG}"},
        {**where, "type": "command_error", "content": f"make {HOSTILE}", "metadata": {"error": output, "exit_code": 2}},
        {**where, "type": "command", "content": LONG, "metadata": {"output": output, "<b>m</b>": HOSTILE}},
        {**where, "type": "file_edit", "content": f"/{HOSTILE}", "file_path": f"/{MARKUP}", "tool_name": "<b>E</b>"},
        {**where, "type": "git_commit", "content": f'git commit -m "{MARKUP}"'},
    ]


_NAME = f"<img src=x onerror=window.hurt=8>{UNSEEN}"
_MODEL = f"<script>window.hurt=9</script>{'m' * 60}"
_IN_SETTINGS = ("<img src=x onerror=window.hurt=8>", "<script>window.hurt=9</script>", "W" * 200)


def _settings(machine: Machine) -> tuple[str, ...]:
    """A database whose directory has such a name, and a language model."""
    folder = machine.base / _NAME / ("W" * 250)  # SQLite opens no path of more than 512 bytes
    folder.mkdir(parents=True, mode=0o700)
    return ("--db", str(folder / "nudge.db"), "--llm-model", _MODEL)


def _open_every_row(tab: Tab, view: str) -> None:
    tab.view(view)
    rows = tab.page.locator(".row a.cell")
    rows.first.wait_for()
    for place in range(min(rows.count(), 12)):
        rows.nth(place).evaluate("one => one.click()")
        tab.page.locator(".panel .detail table").first.wait_for()
        tab.page.evaluate("() => document.querySelectorAll('.panel details').forEach(one => { one.open = true; })")
        _unharmed(tab, f"{view}, row {place}")
        tab.picture(f"hostile{view.replace('/', '-')}-{tab.page.viewport_size['width']}-{place}")


def _views(tab: Tab, machine: Machine) -> None:
    assert "<script>window.hurt=1</script>" in _unharmed(tab, "now")
    _open_every_row(tab, "/known")
    tab.page.keyboard.press("Escape")
    _open_archive(tab)
    tab.page.locator("input[type=search]").fill(MARKUP[:30])
    _unharmed(tab, "search")
    tab.page.locator("input[type=search]").fill("")
    _open_every_row(tab, "/history")
    for session in machine.json("sessions"):
        for view in ("/told/session/", "/history/session/"):
            tab.page.evaluate(
                "([view, id]) => { location.hash = view + encodeURIComponent(id); }", [view, session["session_id"]]
            )
            tab.page.locator(".detail, .trial").first.wait_for()
            _unharmed(tab, view)
    tab.view("/health")
    tab.page.locator("table.settings").wait_for()
    settings = _unharmed(tab, "health")
    missing = [text for text in _IN_SETTINGS if text not in settings]
    assert not missing, missing
    tab.picture(f"hostile-settings-{tab.page.viewport_size['width']}")


def _open_archive(tab: Tab) -> None:
    tab.page.locator("select[name=type]").select_option("archived")
    tab.page.locator(".row", has_text="gone ").first.wait_for()
    _open_every_row(tab, "/known")
    tab.page.keyboard.press("Escape")
    tab.page.locator("select[name=type]").select_option("")


def _unharmed(tab: Tab, where: str) -> str:
    """All the text that is shown."""
    found = tab.page.evaluate(_MARK)
    assert found["hurt"] is None, f"{where}: text was run: {found['hurt']}"
    assert not found["foreign"], f"{where}: text became markup"
    assert not found["wide"], f"{where}: wider than the window"
    raw = [hex(ord(char)) for char in _RAW if char in found["text"]]
    assert not raw, f"{where}: shown as they are: {raw}"
    return str(found["text"])


def page_shows_hostile_text_as_text(desk: Desk) -> None:
    """Markup, characters that turn text around or hide it, escape sequences and lines of 7,000 characters, in every
    field: nothing is run, nothing becomes an element, no view is wider than a wide or a narrow window."""
    desk.machine.http_only(*_settings(desk.machine))
    _store(desk.machine)
    with browser.started() as chromium:
        for size in (browser.WIDE, browser.NARROW):
            tab = chromium.tab(size)
            tab.sign_in(desk.machine)
            tab.page.locator(".events li").first.wait_for()
            _views(tab, desk.machine)
            assert not tab.complaints, tab.complaints
            tab.picture(f"hostile-{size[0]}")


_SAFE = "<bdi>${line(item.title)}</bdi>"
_UNSAFE = "<bdi .innerHTML=${item.title}></bdi>"


def page_mistake_is_stopped_by_the_browser(desk: Desk) -> None:
    """Were a title put in as markup by mistake, Trusted Types would throw before anything is run; without the policy
    of the page it would run, so that this test and the one before can fail."""
    desk.machine.http_only()
    _store(desk.machine)
    with browser.started() as chromium:
        with_policy, without_policy = chromium.tab(), chromium.tab()
        for tab in (with_policy, without_policy):
            tab.page.route("**/page/known.js", lambda route: _answer(route, _UNSAFE, keeps_policy=True))
        without_policy.page.route("**/", lambda route: _answer(route, "", keeps_policy=False))
        for tab in (with_policy, without_policy):
            tab.sign_in(desk.machine)
            tab.view("/known")
        eventually(lambda: without_policy.page.evaluate("() => window.hurt ?? null"), "the markup is run")
        eventually(lambda: with_policy.page.evaluate("() => 1") and with_policy.complaints, "the browser complains")
        assert "TrustedHTML" in with_policy.complaints[0]
        assert with_policy.page.evaluate("() => window.hurt ?? null") is None


def _answer(route: Any, instead: str, *, keeps_policy: bool) -> None:
    """Pass on what the server answers, with the mistake, or without the policy."""
    answer = route.fetch()
    text = answer.text()
    assert not instead or _SAFE in text
    headers = {name: value for name, value in answer.headers.items() if keeps_policy or "policy" not in name}
    route.fulfill(response=answer, headers=headers, body=text.replace(_SAFE, instead) if instead else text)


CHECKS = (page_shows_hostile_text_as_text, page_mistake_is_stopped_by_the_browser)
