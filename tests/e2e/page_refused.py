"""Who is not let in to the page, tried in a real browser: other sites, and codes and secrets that are no longer
good."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nudge.core import limits, paths
from tests.e2e import browser
from tests.e2e.browser import Tab
from tests.e2e.clients import Desk
from tests.harness import TIMEOUT, Machine, eventually

_EVIL = "evil.example"
_FETCH = """async ([address, secret, method]) => {
  const headers = secret ? {Authorization: `Bearer ${secret}`} : {};
  const body = method === 'POST' ? '{"value": "stolen"}' : undefined;
  if (body) headers['Content-Type'] = 'application/json';
  try {
    const answer = await fetch(address, {method, headers, body});
    return `${answer.status} ${await answer.text()}`;
  } catch (error) {
    return error.name;
  }
}"""
_ATTACKS = b"""<!doctype html><title>evil</title>
<form id="form" method="post" enctype="text/plain"><input name='{"value": "stolen", "x": "' value='"}'></form>
<iframe id="frame" width="600" height="400"></iframe>"""


class _EvilSite(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(_ATTACKS)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def _evil_site() -> Iterator[int]:
    """Another site, whose name also resolves to this machine; its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _EvilSite)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _secret_of(tab: Tab) -> str:
    return str(tab.page.evaluate("() => sessionStorage.getItem('nudge-secret')"))


def page_refuses_other_sites(desk: Desk) -> None:
    """A site that knows the secret and whose name resolves to this machine gets nothing, by rebinding, fetch, form or
    frame; and it changes nothing."""
    desk.machine.http_only()
    port = desk.machine.ready().port
    own, hint = f"http://127.0.0.1:{port}", "api/v1/hints/api/test"
    assert desk.machine.cli("set", "--global", "api", "test", "make test").returncode == 0
    with browser.started(f"--host-resolver-rules=MAP {_EVIL} 127.0.0.1") as chromium, _evil_site() as evil_port:
        tab = chromium.tab()
        tab.sign_in(desk.machine)
        secret = _secret_of(tab)
        assert "make test" in tab.page.evaluate(_FETCH, [f"/{hint}", secret, "GET"])
        evil = Tab(tab.page.context.new_page())
        rebound = evil.page.goto(f"http://{_EVIL}:{port}/")
        assert rebound.status == 421 and "script" not in rebound.text()
        assert str(evil.page.evaluate(_FETCH, [f"/{hint}", secret, "GET"])).startswith("421")
        evil.page.goto(f"http://{_EVIL}:{evil_port}/")
        for method in ("GET", "POST"):
            for shown in (secret, ""):
                assert evil.page.evaluate(_FETCH, [f"{own}/{hint}", shown, method]) == "TypeError"
        assert evil.page.evaluate("() => 'nudge-secret' in sessionStorage") is False
        _send_form(evil, f"{own}/{hint}")
        _frame(evil, f"http://{_EVIL}:{evil_port}/", own)
        assert desk.machine.json("get", "api", "test")["hint"]["value"] == "make test"


def _send_form(evil: Tab, action: str) -> None:
    with evil.page.expect_navigation() as answered:
        evil.page.evaluate("action => { form.action = action; form.submit(); }", action)
    assert answered.value.status in (401, 403), answered.value.status


def _frame(evil: Tab, site: str, page: str) -> None:
    """The browser shows an error in the frame, which no script of the page ran in."""
    evil.page.goto(site)
    with evil.page.expect_response(f"{page}/"):
        evil.page.evaluate("page => { frame.src = page; }", page)
    eventually(lambda: _frame_url(evil).startswith("chrome-error:"), "the frame shows the browser's error")


def _frame_url(tab: Tab) -> str:
    tab.page.evaluate("() => null")  # what the browser did meanwhile is learned with an answer
    return str(tab.page.frames[-1].url)


def page_refuses_old_codes_and_secrets(desk: Desk) -> None:
    """A code that was used, one that is late, and a secret that nobody used for hours: the page says to run
    `nudge open` again."""
    machine = desk.machine
    machine.http_only()
    used = machine.json("open")["address"]
    with browser.started() as chromium:
        tab = chromium.tab()
        tab.page.goto(used)
        tab.page.locator("nav").wait_for()
        _is_refused(chromium.tab(), used)
        late = machine.json("open")["address"]
        _make_older(machine, "code", limits.PAGE_CODE_SECONDS)
        _is_refused(chromium.tab(), late)
        tab.page.reload()
        tab.page.locator("nav").wait_for()
        _make_older(machine, "secret", limits.PAGE_SECRET_SECONDS)
        tab.page.reload()
        tab.page.get_by_text("nudge open", exact=True).wait_for(timeout=TIMEOUT * 1000)
        assert _secret_of(tab) == "None", "the old secret is kept"


def _is_refused(tab: Tab, address: str) -> None:
    tab.page.goto(address)
    alert = tab.page.get_by_role("alert")
    alert.wait_for()
    assert "run nudge open again" in alert.inner_text()
    assert tab.page.locator("nav").count() == 0


def _make_older(machine: Machine, kind: str, seconds: int) -> None:
    """As if so much time had passed since the code or the secret was made."""
    path = Path(machine.runtime) / paths.PAGE
    content = json.loads(path.read_text())
    for entry in content["entries"]:
        entry["at"] = time.time() - seconds if entry["kind"] == kind else entry["at"]
    path.write_text(json.dumps(content))


CHECKS = (page_refuses_other_sites, page_refuses_old_codes_and_secrets)
