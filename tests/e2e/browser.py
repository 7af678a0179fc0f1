"""A real Chromium that looks at the page: installed where that may be done, with a profile of its own."""

from __future__ import annotations

import functools
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.clients import INSTALLED
from tests.harness import TIMEOUT, Machine

PLAYWRIGHT = "playwright==1.65.2"
AXE = "axe-core@4.14.1"
PICTURES = INSTALLED / "page"
_PYTHON = INSTALLED / f"python{sys.version_info.major}{sys.version_info.minor}"
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
WIDE, NARROW = (1280, 800), (400, 800)


class NoBrowserError(Exception):
    """What is to be installed, and how."""


@functools.cache
def chromium() -> str:
    """Where Chromium is. Installs Debian's package where it may; otherwise raises NoBrowserError."""
    found = _find_chromium()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing chromium", flush=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], check=False, capture_output=True)
        found = _find_chromium()
    if found is None:
        raise NoBrowserError("the page is looked at in Chromium; install it, as root: apt-get install chromium")
    return found


def _find_chromium() -> str | None:
    return next((path for name in _CHROMIUM if (path := shutil.which(name))), None)


@functools.cache
def _playwright() -> Any:
    """Its module, from a directory of its own: the environment of the project has exactly what is in its lock file."""
    if not _PYTHON.exists():
        print("installing", PLAYWRIGHT, flush=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        done = subprocess.run([*pip, "--target", str(_PYTHON), PLAYWRIGHT], check=False, capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(_PYTHON, ignore_errors=True)
            raise NoBrowserError(f"the browser is driven with {PLAYWRIGHT}, which pip cannot install: {done.stderr}")
    sys.path.append(str(_PYTHON))
    return importlib.import_module("playwright.sync_api")


@functools.cache
def axe_script() -> str:
    """The source of axe-core, which finds what people with a screen reader or weak eyes cannot use."""
    path = INSTALLED / "node_modules/axe-core/axe.min.js"
    if not path.exists():
        print("installing", AXE, flush=True)
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(INSTALLED), AXE]
        done = subprocess.run(npm, check=False, capture_output=True, text=True)
        if done.returncode:
            raise NoBrowserError(f"the page is checked with {AXE}, which npm cannot install: {done.stderr}")
    return path.read_text()


class Tab:
    """One tab, with what its scripts complained about."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(TIMEOUT * 1000)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", lambda message: self._note(message.type, message.text))

    def _note(self, kind: str, text: str) -> None:
        """A request that failed is no complaint of a script's: the page says itself what it could not do."""
        if kind in ("error", "warning") and not text.startswith("Failed to load resource"):
            self.complaints.append(f"{kind}: {text}")

    def sign_in(self, machine: Machine) -> None:
        """As `nudge open` does, and wait until the page is live."""
        self.page.goto(machine.json("open")["address"])
        self.page.locator(".state .dot:not(.off)").wait_for()

    def view(self, address: str) -> None:
        """Go to a view of the page, by the part of its address that is after the #."""
        self.page.evaluate("address => { location.hash = address; }", address)
        self.page.locator("main > *").first.wait_for()

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def picture(self, name: str) -> Path:
        """Keep what is to be seen now."""
        path = PICTURES / f"{name}.png"
        self.page.screenshot(path=str(path))
        return path

    def violations(self) -> list[str]:
        """What axe-core has against what is shown."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(axe_script())
        found = self.page.evaluate("async () => (await axe.run()).violations")
        return [f"{one['id']}: {[node['html'][:200] for node in one['nodes']]}" for one in found]


class Browser:
    """A running Chromium; each tab has a profile of its own."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium

    def tab(self, size: tuple[int, int] = WIDE, scheme: str = "light") -> Tab:
        context = self._chromium.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
        )
        return Tab(context.new_page())


@contextmanager
def started(*flags: str) -> Iterator[Browser]:
    """Start Chromium, with more flags than the usual ones."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    executable = chromium()
    with _playwright().sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, args=[*_FLAGS, *flags])
        try:
            yield Browser(running)
        finally:
            running.close()
