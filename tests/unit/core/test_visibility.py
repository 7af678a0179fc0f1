"""What a caller may see of private projects."""

from __future__ import annotations

from typing import Any

import pytest

from nudge.core.context import Context
from nudge.core.errors import Invalid
from nudge.core.visibility import EVERYTHING, Visibility, visibility_of
from nudge.settings.config import Settings

PAYROLL, WEB = "github.com/acme/payroll", "github.com/acme/web"


@pytest.mark.parametrize(
    ("project", "here", "named", "expected"),
    [
        (PAYROLL, None, None, False),
        (PAYROLL, WEB, None, False),
        (PAYROLL, PAYROLL, None, True),
        (PAYROLL, WEB, "PayRoll", True),
        (PAYROLL, WEB, "acme/payroll", True),
        (PAYROLL, "gitlab.com/other/payroll", None, False),
        (PAYROLL.upper(), WEB, None, False),
        (WEB, None, None, True),
        (None, WEB, None, True),
    ],
)
def test_a_private_project_is_shown_in_it_and_to_who_names_it(
    project: str | None, here: str | None, named: str | None, expected: bool
) -> None:
    """By the whole identity of where the caller is, and by any name that it gives."""
    assert Visibility(["payroll"], here).shows(project, named) is expected


@pytest.mark.parametrize(
    ("scope", "elsewhere", "there"),
    [
        ({}, True, True),
        ({"os": ["linux"]}, True, True),
        ({"repo": f"git:{PAYROLL}"}, False, True),
        ({"repo": "git:acme/payroll"}, False, True),
        ({"repo": [f"git:{PAYROLL}", "git:github.com/acme/api"]}, False, True),
        ({"repo": [f"git:{PAYROLL}", f"git:{WEB}"]}, True, True),
        ({"cwd_glob": ["/home/me/payroll/**"]}, False, True),
        ({"cwd_glob": ["**/payroll/*.py"]}, False, True),
        ({"cwd_glob": ["/home/me/payrolls/**"]}, True, True),
    ],
)
def test_a_hint_is_shown_where_the_projects_are_that_its_scope_names(
    scope: dict[str, Any], elsewhere: bool, there: bool
) -> None:
    """A private project among them hides it from every other place."""
    assert Visibility(["payroll"], WEB, "/home/me/web").shows_scope(scope) is elsewhere
    assert Visibility(["payroll"], PAYROLL, "/home/me/payroll").shows_scope(scope) is there
    assert EVERYTHING.shows_scope(scope)


def test_a_directory_is_a_place_too() -> None:
    """A caller below the directory of a glob sees its hint, whatever its repo is called."""
    inside = Visibility(["payroll"], "github.com/me/fork", "/home/me/payroll/src")
    assert inside.shows_scope({"cwd_glob": ["/home/me/payroll/**"]})


def test_a_caller_hides_more_and_never_shows_more() -> None:
    """Its variables add private projects, and turn the other projects' lines off but not on."""
    settings = Settings({"private_projects": ("payroll",), "cross_project": True})
    own = {"NUDGE_PRIVATE_PROJECTS": "Web", "NUDGE_CROSS_PROJECT": "0"}
    stricter = visibility_of(settings, own, Context(repo=f"git:{PAYROLL}"))
    assert (set(stricter.private), stricter.cross_project, stricter.here) == ({"payroll", "web"}, False, PAYROLL)
    laxer = visibility_of(Settings({"private_projects": ("payroll",)}), {"NUDGE_CROSS_PROJECT": "1"}, Context())
    assert (set(laxer.private), laxer.cross_project, laxer.here) == ({"payroll"}, False, None)
    with pytest.raises(Invalid, match="NUDGE_PRIVATE_PROJECTS"):
        visibility_of(settings, {"NUDGE_PRIVATE_PROJECTS": "x" * 5_000}, Context())
