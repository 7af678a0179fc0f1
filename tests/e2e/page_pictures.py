"""The pictures of the page in the README and in docs/page.md: `make pictures` makes them anew."""

from __future__ import annotations

import shutil

from tests.e2e import browser, page_world
from tests.e2e.browser import Tab
from tests.e2e.clients import Desk
from tests.harness import ROOT

_SIZE = (1080, 600)
_MOST_BYTES = 150_000
NAMES = ("page-now.png", "page-known.png")


def page_pictures(desk: Desk) -> None:
    """Two views with what agents did and were told, each small enough for a README."""
    desk.machine.http_only()
    page_world.build(desk.machine)
    with browser.started() as chromium:
        light, dark = chromium.tab(_SIZE), chromium.tab(_SIZE, "dark")
        for tab in (light, dark):
            tab.sign_in(desk.machine)
        light.page.locator("aside .fact").nth(2).wait_for()
        dark.view("/known")
        dark.page.locator(".row", has_text="DOCKER=1 make test").locator("a").click()
        dark.page.get_by_text("Told ", exact=False).first.wait_for()
        dark.page.mouse.move(0, 0)
        assert all(_is_small(tab, name) for tab, name in zip((light, dark), NAMES, strict=True))


def _is_small(tab: Tab, name: str) -> bool:
    return 10_000 < tab.picture(name.removesuffix(".png")).stat().st_size < _MOST_BYTES


def keep() -> None:
    """Put the pictures that the check made where the documents show them."""
    for name in NAMES:
        shutil.copyfile(browser.PICTURES / name, ROOT / "docs" / name)


CHECKS = (page_pictures,)
