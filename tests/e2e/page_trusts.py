"""Hints in repositories on the page, in a real browser: a person sees what a file says, and a click trusts it."""

from __future__ import annotations

from collections.abc import Callable

from tests.contract.test_repo_file import Repo
from tests.e2e import browser
from tests.e2e.clients import Desk


def page_trusts_by_a_click(desk: Desk) -> None:
    """One hint at a time, and forgets it again; a page that a program opened has no button and no hint."""
    desk.machine.http_only()
    repo = Repo(desk.machine)
    repo.work()
    with browser.started() as chromium:
        tab = chromium.tab()
        with repo.person("open", "--print") as person:
            tab.page.goto(person.ends()[1].split()[0])
        tab.page.locator(".state .dot:not(.off)").wait_for()
        tab.view("health")
        tab.page.get_by_role("button", name="Trust api/test", exact=True).click()
        tab.page.get_by_role("button", name="Forget api/test", exact=True).wait_for()
        assert repo.told() == ["make test"]
        assert not tab.violations()
        tab.page.get_by_role("button", name="Forget api/test", exact=True).click()
        tab.page.get_by_role("button", name="Trust api/test", exact=True).wait_for()
        assert repo.told() == []
        other = chromium.tab()
        other.sign_in(desk.machine)
        other.view("health")
        other.page.get_by_text("2 waiting").wait_for()
        assert other.page.get_by_role("button", name="Trust api/test", exact=True).count() == 0
        assert "make test" not in other.text("main")
        assert not [*tab.complaints, *other.complaints]


CHECKS: tuple[Callable[[Desk], None], ...] = (page_trusts_by_a_click,)
