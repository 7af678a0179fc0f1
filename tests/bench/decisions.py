"""What is told about decisions: the note that a prompt or a file is about, and silence where none is.

`own_decisions.json` was written before the rules, on other topics; its figures count first. With `dev_decisions.json`
and `dev2_decisions.json` the rules were compared while they were written; before, 35 of 48 and 42 of 60 direct prompts
were right, 5 and 2 of 40 told in vain. `hard_decisions.json` was met by the finished rules, and none was changed for
it. `sde_open.json` has conversations and commits that hold a rule, and bug reports that need it: does what is told
carry the rule?
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from nudge.core.note_files import changed_files, with_files
from nudge.core.words import split_words, stem
from nudge.notes import store
from nudge.notes.fields import Draft
from nudge.notes.note import Lifetimes
from nudge.storage import migrations
from nudge.telling.file_notes import lines_for_files
from nudge.telling.prompt_notes import lines_about
from tests.bench.report import Row
from tests.harness import Machine

DATA = Path(__file__).parent / "data"
SETS = {
    "own": "own_decisions.json",
    "given": "decisions.json",
    "dev": "dev_decisions.json",
    "dev2": "dev2_decisions.json",
    "hard": "hard_decisions.json",
}
TOUCHED, QUIET = 75.0, 5.0  # %
DIRECT, CARRIED = {"own": 85.0, "given": 85.0, "dev": 80.0, "dev2": 78.0, "hard": 70.0}, 60.0  # %
SILENT = {**dict.fromkeys(SETS, 3.0), "hard": 15.0}  # %
NOW = 1_800_000_000.0
_DAY = 86_400.0
MAIN = "main"
_OTHERS = ("paraphrase", "implicit")


def prompts(_: Machine) -> Iterator[Row]:
    for name, file in SETS.items():
        counts = Counter[str]()
        for repo in json.loads((DATA / file).read_text("utf-8")):
            with closing(stored_notes(repo["notes"], repo["repo"])) as notes:
                ids = ids_of(notes)
                for prompt in repo["prompts"]:
                    told = _told(notes, prompt["prompt"], repo["repo"])
                    kind = prompt["kind"] if prompt["about"] else "silent"
                    counts[f"{kind} of"] += 1
                    counts[f"{kind} told"] += bool(told)
                    counts[f"{kind} right"] += bool(told) and told[0] in {ids[about] for about in prompt["about"]}
        wrong = counts["direct told"] - counts["direct right"]
        yield _share(
            f"{name} set: direct prompts, right note first", counts, "direct right", DIRECT[name], f"{wrong} wrong"
        )
        others = ", ".join(f"{kind} {counts[f'{kind} right']} of {counts[f'{kind} of']}" for kind in _OTHERS)
        spoken, of = counts["silent told"], counts["silent of"]
        what = f"{name} set: told where silence is due"
        yield Row("decisions", what, 100 * spoken / of, SILENT[name], "%", f"{spoken} of {of}", others)


def _share(what: str, counts: Counter[str], right: str, budget: float, note: str) -> Row:
    kind = right.partition(" ")[0]
    share = 100 * counts[right] / counts[f"{kind} of"]
    return Row("decisions", what, share, budget, "%", f"{counts[right]} of {counts[f'{kind} of']}", note, at_least=True)


def stored_notes(rows: list[dict[str, Any]], namespace: str, *, files: str = "given") -> sqlite3.Connection:
    """The notes of a repository; one that replaces another was resolved so. `files`: whether the agent gave the files
    of a note, left them to the `text`, or stored it after `edits` of them, of those of another note, and of a
    manifest."""
    notes = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(notes)
    ids: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: -row["age_days"]):
        now = NOW - row["age_days"] * _DAY
        given = {"given": row["files"], "text": [], "edits": _edited(rows, row)}[files]
        draft = Draft(
            title=row["title"],
            content=row["content"],
            kind=row["kind"],
            tier="long",
            namespace=namespace,
            metadata=with_files({"ref": row["id"]}, given),
            origin={"branch": row.get("branch") or MAIN},
        )
        ids[row["id"]] = store.store(notes, draft, now, Lifetimes())[0].id
        if row.get("supersedes"):
            store.resolve(notes, ids[row["id"]], ids[row["supersedes"]], now, Lifetimes())
    return notes


def _edited(rows: list[dict[str, Any]], row: dict[str, Any]) -> list[str]:
    other = rows[rows.index(row) - 1]["files"]
    return changed_files([*row["files"], "package.json", *other], f"{row['title']}\n{row['content']}")


def ids_of(notes: sqlite3.Connection) -> dict[str, int]:
    return dict(notes.execute("SELECT json_extract(metadata, '$.ref'), id FROM notes").fetchall())


def _told(notes: sqlite3.Connection, prompt: str, namespace: str) -> list[int]:
    return [int(line.name[1:]) for line in lines_about(notes, prompt, namespace, MAIN, NOW)]


# Files


def touches(_: Machine) -> Iterator[Row]:
    """Files that are read or edited, each in a session of its own: one of the first two notes told is about it."""
    for name, file in SETS.items():
        repos = json.loads((DATA / file).read_text("utf-8"))
        counts, by_text, by_edits = (_count_touches(repos, how) for how in ("given", "text", "edits"))
        others = (("the text alone", by_text), ("edits before the note was stored", by_edits))
        told = (f"by {name} {one['touch right']}, {one['quiet told']} where silence is due" for name, one in others)
        note = "; ".join(told)
        yield _share(f"{name} set: a note about a file that is touched", counts, "touch right", TOUCHED, note)
        spoken, of = counts["quiet told"], counts["quiet of"]
        what = f"{name} set: told about a file that no note is about"
        yield Row("decisions", what, 100 * spoken / of, QUIET, "%", f"{spoken} of {of}")


def _count_touches(repos: list[dict[str, Any]], files: str) -> Counter[str]:
    counts = Counter[str]()
    for repo in repos:
        with closing(stored_notes(repo["notes"], repo["repo"], files=files)) as notes:
            ids = ids_of(notes)
            for touch in repo["touches"]:
                lines = lines_for_files(notes, [touch["path"]], repo["repo"], MAIN, None, NOW)
                told = {int(line.name[1:]) for line in lines}
                kind = "touch" if touch["about"] else "quiet"
                counts[f"{kind} of"] += 1
                counts[f"{kind} told"] += bool(told)
                counts[f"{kind} right"] += not told.isdisjoint(ids[about] for about in touch["about"])
    return counts


# Conversations and commits


def carried(_: Machine) -> Iterator[Row]:
    data = json.loads((DATA / "sde_open.json").read_text("utf-8"))
    stores = {
        "chats": [
            (one["id"], one["turns"][0][1][:120], "\n".join(text for _, text in one["turns"]))
            for one in (*data["chats"], *data["decoys"])
        ],
        "commits": [(one["id"], one["subject"], one["body"]) for one in data["commits"]],
    }
    for name, documents in stores.items():
        with closing(_documents(documents)) as notes:
            ids = ids_of(notes)
            queries = [query for query in data["queries"] if query["store"] == name]
            right, shares = 0, []
            for query in queries:
                lines = lines_about(notes, query["query"], "r", MAIN, NOW)
                found = bool(lines) and int(lines[0].name[1:]) in {ids[one] for one in query["decides"]}
                right += found
                shares.append(_carried(lines[0].text, query["deciding_words"]) if found else 0.0)
        note = f"right note first {right} of {len(queries)}"
        share = 100 * sum(shares) / len(shares)
        yield Row("decisions", f"deciding words carried, {name}", share, CARRIED, "%", note=note, at_least=True)


def _documents(documents: list[tuple[str, str, str]]) -> sqlite3.Connection:
    notes = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(notes)
    for number, (identity, title, content) in enumerate(documents):
        draft = Draft(
            title=f"{title} {number}", content=content, kind="decision", namespace="r", metadata={"ref": identity}
        )
        store.store(notes, draft, NOW, Lifetimes())
    return notes


def _carried(told: str, deciding: list[str]) -> float:
    words = set(map(stem, split_words(told)))
    wanted = {stem(part) for word in deciding for part in split_words(word)}
    return len(wanted & words) / len(wanted) if wanted else 1.0
