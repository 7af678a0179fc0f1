"""Projects are told apart by the whole identity of their repository."""

from __future__ import annotations

import pytest

from nudge.core.errors import Invalid
from nudge.core.visibility import Visibility
from nudge.history import projects
from nudge.history.purge import Conditions, purge_observations
from nudge.storage.sqlite import match_texts
from tests.unit.history.stored import NOW, event, filled, rows

X, Y, WEB = "example.com/x/api", "example.com/y/api", "example.com/x/web"


def test_a_project_is_shown_by_its_short_name_while_that_is_unambiguous() -> None:
    """By as many parts as tell it apart, when not."""
    connection = filled(*(event(project=project, session_id=project) for project in (X, WEB)))
    names = projects.Names(connection)
    assert (names.name(X), names.name(WEB)) == ("api", "web")
    connection = filled(*(event(project=project, session_id=project) for project in (X, Y, WEB, "other.org/x/web")))
    names = projects.Names(connection)
    assert [names.name(project) for project in (X, Y, WEB)] == ["x/api", "y/api", "example.com/x/web"]


def test_a_short_name_stands_for_a_project_while_it_is_unambiguous() -> None:
    """When it is not, the error names the candidates; a name that no project has is no error."""
    connection = filled(*(event(project=project, session_id=project) for project in (X, Y, WEB)))
    result = [projects.find(connection, name) for name in ("web", "x/api", "git:y/api", X, "nothing", None)]
    assert result == [WEB, X, Y, X, "nothing", None]
    with pytest.raises(Invalid, match="project: api matches 2 repos; name one of x/api, y/api"):
        projects.find(connection, "api")


def test_a_private_name_hides_every_project_that_has_it() -> None:
    """A longer name hides one; where the caller is, nothing of it is hidden."""
    connection = filled(*(event(project=project, session_id=project) for project in (X, Y, WEB)))
    assert projects.find_hidden(connection, Visibility(["api"])) == {X, Y}
    assert projects.find_hidden(connection, Visibility(["x/api"])) == {X}
    assert projects.find_hidden(connection, Visibility(["api", "web"], here=X)) == {Y, WEB}
    assert projects.find_hidden(connection, Visibility(["api", "web"]), X) == {Y, WEB}


def test_an_ambiguous_name_does_not_tell_private_projects() -> None:
    """It stands for the one that the caller may see; of several private ones, none is named."""
    connection = filled(*(event(project=project, session_id=project) for project in (X, Y)))
    assert projects.find(connection, "api", Visibility([X])) == Y
    with pytest.raises(Invalid) as refused:
        projects.find(connection, "api", Visibility(["api"]))
    assert "x/api" not in refused.value.message and "name one in full" in refused.value.message


def test_a_project_of_which_nothing_is_left_is_forgotten() -> None:
    """The other one is then shown by its short name."""
    connection = filled(*(event(project=project, session_id=project) for project in (X, Y)))
    purge_observations(connection, Conditions(now=NOW, project=Y), NOW, match_texts)
    assert rows(connection, "identity", "projects") == [X]
    assert projects.Names(connection).name(X) == "api"
