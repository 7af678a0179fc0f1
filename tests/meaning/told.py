"""What is told on a prompt: by its words, and where these say nothing by its meaning."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from nudge.telling.closest import LEAST
from nudge.telling.ledger import Line
from nudge.telling.prompt import without_paths
from nudge.telling.prompt_notes import lines_about, lines_by_meaning
from tests.bench import decisions
from tests.bench.decisions import MAIN, NOW
from tests.meaning.recall import OWN, Asks, Method, documents_of, stored

SETS = {
    "decisions": decisions.DATA / "decisions.json",
    "own_decisions": decisions.DATA / "own_decisions.json",
    "dev_decisions": decisions.DATA / "dev_decisions.json",
    "dev2_decisions": decisions.DATA / "dev2_decisions.json",
    "fieldwork": OWN,
}


TUNED = ("dev_decisions", "dev2_decisions")
"""With these the rule was compared while it was written; the others were only scored."""
CURVE = (0.28, 0.30, 0.32, LEAST, 0.36, 0.38, 0.40)


def on_prompts(method: Method, least: float = LEAST) -> Iterator[tuple[str, Counter[str]]]:
    """For each set how many prompts of a kind there are, and how many were told something, and the right note."""
    for name, file in SETS.items():
        yield name, _count(method, file, least)


def _count(method: Method, file: Path, least: float) -> Counter[str]:
    counts = Counter[str]()
    for repo in json.loads(file.read_text("utf-8")):
        with closing(stored(repo)) as connection:
            ids, asks = decisions.ids_of(connection), method(connection)
            for prompt in repo["prompts"]:
                lines = told(connection, asks, prompt["prompt"], repo["repo"], least)
                kind = prompt["kind"] if prompt["about"] else "silent"
                right = {f"m{ids[about]}" for about in prompt["about"]}
                counts[f"{kind} of"] += 1
                counts[f"{kind} told"] += bool(lines)
                counts[f"{kind} right"] += bool(lines) and lines[0].name in right
    return counts


def told(
    connection: sqlite3.Connection, asks: Asks | None, prompt: str, namespace: str, least: float = LEAST
) -> list[Line]:
    """What a hook prints, in two steps as it does it."""
    lines = lines_about(connection, prompt, namespace, MAIN, NOW)
    if lines or asks is None:
        return lines
    return lines_by_meaning(connection, prompt, namespace, MAIN, NOW, asks.ask(without_paths(prompt)), least)


def carried(method: Method) -> Iterator[tuple[str, float, int]]:
    """The share of the deciding words in what is told, in percent, and how many bug reports there are."""
    data = json.loads((decisions.DATA / "sde_open.json").read_text("utf-8"))
    for name, documents in documents_of(data).items():
        with closing(decisions._documents(documents)) as connection:
            ids, asks = decisions.ids_of(connection), method(connection)
            queries = [query for query in data["queries"] if query["store"] == name]
            shares = []
            for query in queries:
                lines = told(connection, asks, query["query"], "r")
                is_right = bool(lines) and int(lines[0].name[1:]) in {ids[one] for one in query["decides"]}
                shares.append(decisions._carried(lines[0].text, query["deciding_words"]) if is_right else 0.0)
            yield name, 100 * sum(shares) / len(shares), len(shares)
