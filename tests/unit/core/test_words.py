from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from nudge.core.words import has_word, split_words, stem
from nudge.storage.migrations import TOKENIZER

ROOT = Path(__file__).parents[3]
SUFFIXES = [
    "s",
    "es",
    "ies",
    "ed",
    "ing",
    "eed",
    "ational",
    "tional",
    "enci",
    "anci",
    "izer",
    "logi",
    "bli",
    "alli",
    "entli",
    "eli",
    "ousli",
    "ization",
    "ation",
    "ator",
    "alism",
    "iveness",
    "fulness",
    "ousness",
    "aliti",
    "iviti",
    "biliti",
    "icate",
    "ative",
    "alize",
    "iciti",
    "ical",
    "ful",
    "ness",
    "ement",
    "ance",
    "ence",
    "able",
    "ible",
    "ment",
    "ant",
    "ent",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "al",
    "er",
    "ic",
    "ou",
    "sion",
    "tion",
    "ly",
    "y",
    "e",
    "ll",
]
ROOTS = [
    "a",
    "b",
    "ab",
    "run",
    "hop",
    "fil",
    "plan",
    "agree",
    "cav",
    "ad",
    "tr",
    "sky",
    "happ",
    "gener",
    "commun",
    "oscill",
    "rat",
    "controll",
    "probat",
    "x",
    "yy",
    "ay",
    "oy",
]


def vocabulary() -> list[str]:
    """Words of our own documents, and roots with every suffix, alone and two in a row."""
    paths = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "seeds").glob("*"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    words = {word for text in texts for word in re.findall("[a-z]+", text.lower())}
    words |= {root + one + other for root in ROOTS for one in SUFFIXES for other in ("", *SUFFIXES)}
    return sorted(words)


def fts5_terms(texts: list[str]) -> dict[int, list[str]]:
    """What SQLite makes of each text, in order."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(content, tokenize='{TOKENIZER}')")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(texts, 'instance')")
    connection.executemany("INSERT INTO texts (rowid, content) VALUES (?, ?)", enumerate(texts))
    terms: dict[int, list[str]] = {}
    for number, term in connection.execute("SELECT doc, term FROM terms ORDER BY doc, offset"):
        terms.setdefault(number, []).append(term)
    connection.close()
    return terms


def test_a_stem_is_the_one_of_sqlite() -> None:
    """A word finds the same among hints and in the history."""
    words = vocabulary()
    terms = fts5_terms(words)
    assert len(words) > 50_000
    assert [(word, terms[number]) for number, word in enumerate(words) if terms[number] != [stem(word)]] == []


@pytest.mark.parametrize(
    "text",
    [
        "http_proxy.build-all",
        "docker compose run -- pytest -q 'a b'",
        "Café Über straße İx",
        "v1.2.3 (x86_64)",
        "日本語 text",
        "",
    ],
)
def test_words_are_those_of_sqlite(text: str) -> None:
    """Letters and digits, in any case and with or without accents; the parts of a name are words."""
    assert [stem(word) for word in split_words(text)] == fts5_terms([text]).get(0, [])


def test_a_stem_but_for_its_last_letter_begins_every_form_of_the_word() -> None:
    """What `has_word` relies on to leave most words of a text alone."""
    assert [word for word in vocabulary() if not word.startswith(stem(word)[:-1])] == []


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("the tests are running", "run", True),
        ("the tests are running", "runs", True),
        ("a runner", "run", False),
        ("prune it", "run", False),
        ("happiness", "happy", True),
        ("files: filing", "file", True),
        ("brun run", "run", True),
        ("run_all", "run", True),
    ],
)
def test_a_word_is_in_a_text_in_any_form(text: str, word: str, expected: bool) -> None:
    """As the index of notes has it."""
    assert has_word(text, word) is expected


def test_has_word_agrees_with_sqlite() -> None:
    """For words and texts of our own documents."""
    paths = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths).lower()
    lines = [line for line in text.splitlines() if line.isascii()][:300]
    words = sorted({word for line in lines[::7] for word in split_words(line)})
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(content, tokenize='{TOKENIZER}')")
    connection.executemany("INSERT INTO texts (rowid, content) VALUES (?, ?)", enumerate(lines))
    assert len(words) > 100
    for word in words:
        rows = connection.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (f'"{word}"',))
        assert {row[0] for row in rows} == {number for number, line in enumerate(lines) if has_word(line, word)}, word
    connection.close()
