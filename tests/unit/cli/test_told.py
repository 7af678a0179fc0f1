"""The verbs about what agents are told: inject, learned, stats, replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Nudge, Server, Terminal
from tests.unit.cli.test_history import FACT
from tests.unit.clients.transcripts import LONG_AGO, Script

# inject


def test_inject(nudge: Nudge, server: Server) -> None:
    """Exactly the text, and nothing around it; nobody was told, so no session is named."""
    server.answers["nudge.inject"] = {"text": '# Nudge\n## Recent (x)\n- #4 now command "ls"', "items": []}
    assert (
        nudge("inject", "--source", "compact", "--branch", "dev").out
        == '# Nudge\n## Recent (x)\n- #4 now command "ls"\n'
    )
    assert (
        server.params["source"] == "compact"
        and server.params["context"]["branch"] == "dev"
        and "session_id" not in server.params
    )


def test_inject_explains(nudge: Nudge, server: Server) -> None:
    """Below the text, each line as `nudge explain` shows it: the parts of its score, why it is there, and where."""
    common = {"project": None, "pack_context": {"included": True, "section": "Nudge", "tokens": 3, "sessions": []}}
    items = [
        {
            "id": identity,
            "kind": kind,
            "title": title,
            "retrieval": {"source": "injection", "rank": rank},
            "score": {"total": sum(parts.values()), "components": {**parts, "kind_bonus": None}},
            "matches": {"query_terms": [], "reasons": ["new"]},
            **common,
        }
        for rank, (identity, kind, title, parts) in enumerate(
            [
                ("api/test", "hint", "api/test", {"priority": 0.2, "recency": 0.1}),
                (12, "decision", "Why", {"tier": 0.15}),
                (4, "session", "2h ago", {"base": 0.9}),
            ],
            1,
        )
    ]
    server.answers["nudge.inject"] = {"text": "# Nudge\n- a\n- b\n- c", "items": items}
    assert nudge("inject", "--explain").out.splitlines() == [
        *("# Nudge", "- a", "- b", "- c", ""),
        *("api/test  hint  (rank 1)", "  score  0.3000", "    priority  0.2000", "    recency   0.1000", "  - new"),
        "  injected: section Nudge, 3 tokens",
        *("m12  decision  Why  (rank 2)", "  score  0.1500", "    tier  0.1500", "  - new"),
        "  injected: section Nudge, 3 tokens",
        *("#4  session  2h ago  (rank 3)", "  score  0.9000", "    match  0.9000", "  - new"),
        "  injected: section Nudge, 3 tokens",
    ]
    assert server.params["explain"] is True and json.loads(nudge("inject", "--json").out)["items"] == items


def test_inject_about_a_prompt(nudge: Nudge, server: Server) -> None:
    """What an agent gets with it, by the same operation."""
    server.answers["nudge.inject"] = {"text": "Nudge record: m1", "items": []}
    assert nudge("inject", "--prompt", "move the sessions").out == "Nudge record: m1\n"
    assert server.params["prompt"] == "move the sessions"
    server.answers["nudge.inject"] = {"text": "", "items": []}
    assert "nothing is known here about this prompt" in nudge("inject", "--prompt", "x").err


def test_nothing_to_inject(nudge: Nudge, server: Server) -> None:
    """Nothing on stdout, as an agent would be told nothing."""
    server.answers["nudge.inject"] = {"text": "", "items": []}
    outcome = nudge("inject")
    assert (outcome.code, outcome.out) == (0, "") and "an agent is told nothing" in outcome.err


def test_why_nothing_is_injected(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that is named helps: `nudge on` would not, against what is off everywhere, or for this run."""
    nudge("off")
    assert "recording and telling are off in this repo; turn them on with: nudge on\n" in nudge("inject").err
    nudge("off", "--all")
    assert "recording and telling are off everywhere; turn them on with: nudge on --all\n" in nudge("inject").err
    monkeypatch.setenv("NUDGE_OFF", "1")
    assert "because NUDGE_OFF is set; turn them on with: unset NUDGE_OFF\n" in nudge("inject").err
    assert server.calls == []


# facts


def test_facts_list_what_fails_and_what_works(nudge: Nudge, server: Server) -> None:
    """Two lines for each, escaped; with several projects each is named."""
    server.answers["nudge.learned"] = {"facts": [FACT, {**FACT, "project": "web", "answer": "a\x1b[2J"}]}
    lines = nudge("facts", "--all-repos").out.splitlines()
    assert lines[0] == "python3 -m pytest  No module named pytest  [api]"
    assert lines[1].startswith("  -> pytest  2 sessions, last ") and lines[1].endswith("; exit code 1, then 0; #6, #7")
    assert lines[3].startswith("  -> a\\x1b[2J  ")


def test_facts_say_why_a_start_is_not_told(nudge: Nudge, server: Server) -> None:
    """The reason ends the line of a fact that has one; the server gets the caller's directory, where an answer may not
    run."""
    server.answers["nudge.learned"] = {"facts": [{**FACT, "not_at_start": "needs 2 sessions"}, FACT]}
    lines = nudge("facts", "--all-repos").out.splitlines()
    assert lines[1].endswith("; #6, #7; not told at a start: needs 2 sessions") and lines[3].endswith("; #6, #7")
    assert server.context["cwd"] == str(Path.cwd())


def test_facts_are_forgotten(nudge: Nudge, server: Server) -> None:
    """By the words that the list shows, in one project."""
    server.answers["nudge.forget_learned"] = {"forgotten": 1}
    assert nudge("facts", "--repo", "api", "--forget", "python3 -m pytest").code == 0
    assert server.calls[-1] == ("nudge.forget_learned", {"project": "api", "subject": "python3 -m pytest"})
    assert nudge("facts", "--all-repos", "--forget", "x").code == 2


# stats


def _counts(told: int, used: int, met: int, answered: int, spared: int) -> dict[str, int]:
    counts = {"told": told, "used": used, "in_vain": told - used}
    return {**counts, "met_again": met, "answered": answered, "spared": spared}


def test_stats_are_a_table_that_explains_its_counts(nudge: Nudge, server: Server) -> None:
    """A row for each week and one for each kind of moment in it, with what was told in vain beside the rest; without a
    week there is nothing to explain."""
    moments = [
        {"moment": "start", **_counts(10, 1, 0, 0, 1)},
        {"moment": "failure", **_counts(2, 1, 3, 2, 0)},
    ]
    week = {"week": 0, **_counts(12, 2, 3, 2, 1), "moments": moments, "shadow": None}
    server.answers["nudge.stats"] = {"weeks": [week], "comparison": None}
    *table, legend = nudge("stats", "--all-repos").out.splitlines()
    assert table == [
        "week        moment   told  used  in vain  met again  answered  spared",
        "1970-01-01  all        12     2       10          3         2       1",
        "            start      10     1        9          0         0       1",
        "            failure     2     1        1          3         2       0",
    ]
    assert all(f"{name}: " in legend for name in ("used", "met again", "answered", "spared"))
    assert "\x1b[2mtold = " in nudge.on(Terminal(), "stats", "--all-repos").out
    server.answers["nudge.stats"] = {"weeks": [], "comparison": None}
    assert nudge("stats", "--all-repos").out == ""


def test_stats_have_the_shadow_beside_them(nudge: Nudge, server: Server) -> None:
    """What was withheld and done all the same, in the same rows; a kind of moment that only the shadow has gets one."""
    withheld = {**_counts(4, 3, 2, 0, 1), "moments": [{"moment": "prompt", **_counts(4, 3, 0, 0, 0)}]}
    week = {"week": 0, **_counts(0, 0, 0, 0, 0), "moments": [], "shadow": withheld}
    server.answers["nudge.stats"] = {"weeks": [week], "comparison": None}
    heading, whole, prompt, _, legend = nudge("stats", "--all-repos").out.splitlines()
    assert heading.partition("|")[2].split() == ["withheld", "done", "anyway", "met", "again", "spared"]
    assert whole.partition("|")[2].split() == ["4", "3", "2", "1"]
    assert prompt.split()[0] == "prompt" and prompt.partition("|")[2].split() == ["4", "3", "0", "0"]
    assert "told nothing" in legend


# replay


def test_replay_says_what_would_have_been_spared(nudge: Nudge, tmp_path: Path) -> None:
    """Three lines of counts, one for each failure, on a terminal a table; no server is asked. The first failure
    teaches, the second is answered, the third is spared: what two sessions met is told at a start."""
    for number in (1, 2, 3):
        script = Script(tmp_path / f"s-{number}.jsonl", f"s-{number}", at=LONG_AGO + 86_400 * number)
        for command, error in (("tox", "bash: line 1: tox: command not found"), ("python -m tox", "")):
            identity = f"{number}-{command}"
            script.call(identity, command=command)
            script.result(identity, error, error=bool(error))
    lines = nudge("replay", str(tmp_path)).out.splitlines()
    assert lines[0] == "read 3 transcripts: 3 sessions, 6 commands, 3 failures, 2 of them known by then"
    assert "1 spared at the start, 1 answered" in lines[1]
    assert lines[2] == "of 2 answers, 2 are what worked then, 0 are not, after 0 nothing worked"
    assert [line.split("  ")[1:] for line in lines[3:]] == [
        ["proj", "answered", "yes", "tox -> python -m tox"],
        ["proj", "spared", "yes", "tox -> python -m tox"],
    ]
    table = nudge.on(Terminal(), "replay", str(tmp_path)).out.splitlines()
    assert table[3].split() == ["\x1b[1mdate", "repo", "Nudge", "right", "failed", "what", "Nudge", "knew\x1b[0m"]
    assert table[4].split()[1:4] == ["proj", "answered", "yes"] and len(table) == 6
    empty = tmp_path / "empty"
    empty.mkdir()
    outcome = nudge("replay", str(empty))
    assert outcome.code == 1 and f"there are no transcripts in {empty}; " in outcome.err
