"""One word for one thing, wherever a person reads: note, repo, attempt, fact. What a seed calls otherwise keeps its
name in tools, parameters, JSON, settings and names that no help lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nudge.cli import app
from nudge.cli.verbs import all_verbs
from nudge.core.operation import Operation
from nudge.interfaces.operations import OPERATIONS
from tests.contract import readme
from tests.harness import ROOT

_WRONG = {
    "memory": "note, unless it is what the product is, or RAM",
    "memories": "note",
    "ghap": "attempt",
    "ghaps": "attempt",
    "project": "repo",
    "projects": "repo",
    "namespace": "repo",
    "namespaces": "repo",
    "learned": "fact, or what Nudge or an agent found out",
    "score base": "nothing: explain draws the parts of a score",
    "bumped frecency": "counted a success or a failure",
}
_ALLOWED = {
    r"shared memory\b": "what the product is",
    r"\bthe memory that (all|the) coding agents on this machine share": "what the product is",
    r"\bother memory tool|\bmemory tools?\b": "programs of the same kind, which doctor finds",
    r"\b(in|from|in the server's|in its|this process's) memory\b": "RAM",
    r"\bmemory (only|of the server|and in the change log|of an? \w+ process)\b": "RAM",
    r"\bMemory, swap and backups\b": "RAM",
    r"\bnot enough memory\b": "RAM",
    r"\bkept in memory\b": "RAM",
    r"\bsee each other's memory\b": "what the product is",
    r"~/\.claude/projects(/\S*)?|\bprojects in CLAUDE_CONFIG_DIR": "the directory where Claude Code keeps transcripts",
    r"\bmcp remove \S+ -s project\b": "a scope of Claude Code",
    r"\bset by a person or an agent, or learned\b|\b[Ww]hat you learned\b|\bdecided and learned\b": "the verb",
    r"\blearned from \S+ sessions?|\blearned from \{\} |\ba lesson learned\b": "the verb",
    r"\bsource: learned\b": "a value of the field",
    r"\bLearned Values\b": "a heading that seed 004 prescribes",
    r"\bis also called `memory`": "the sentence that names the unlisted name",
    r"\bTools and JSON call it `project`": "the sentence that names the parameter",
    r"\bwas `nudge learned`.*?The old names still work": "the sentence that names the unlisted names",
}
_NAMES = re.compile(
    r"`[^`]*`|\bnudge[._]\w[\w.]*|--[\w-]+|/[\w{}]+(?:/[\w{}]+)+|\b\w*_\w+\b|\b(?:[a-z]+\.)+[a-z]+\b"
    r"|\bmemory-workflow\b"
)
"""What is set as code, options, routes, identifiers."""
_CODE = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|WHERE|PRAGMA)\b|= \?|\bIN \(|NOT IN|^\w+(, \w+)+$|\?[!:=P]|\[\^"
)
"""SQL, lists of columns and regular expressions."""
_READ_FROM_OTHERS = (
    "learning/failures.py",
    "manifests/",
    "telling/common_words.py",
)
"""What these hold are patterns for the text of other programs, not sentences of Nudge."""
_INDEX = "cli/verb_index.py"  # it has the names that verbs had before, too


def wrong_words(text: str, *, with_code: bool = False) -> list[str]:
    """Return the wrong words of a text, each with those around it."""
    for phrase in _ALLOWED:
        text = re.sub(phrase, "", text, flags=re.DOTALL)
    text = " ".join((text if with_code else _NAMES.sub("", text)).split())
    found = re.finditer(rf"\b({'|'.join(_WRONG)})\b", text, re.IGNORECASE)
    return [text[max(0, hit.start() - 30) : hit.end() + 20] for hit in found]


def _messages(path: Path) -> Iterator[str]:
    """Yield the sentences in a module: strings with a blank, without docstrings; `{}` stands for a value."""
    tree = ast.parse(path.read_text())
    left_out = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    left_out |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            text = node.value
        else:
            continue
        if " " in text.strip() and not _CODE.search(text):
            yield text


def _modules() -> list[str]:
    names = sorted(path.relative_to(ROOT / "nudge").as_posix() for path in (ROOT / "nudge").rglob("*.py"))
    return [name for name in names if not name.startswith((*_READ_FROM_OTHERS, _INDEX))]


@pytest.mark.parametrize(
    "text", ["no note in this namespace", "GHAP m1 is open", "m1 of project x", "what was learned"]
)
def test_a_wrong_word_is_found(text: str) -> None:
    """Else the tests below prove nothing."""
    assert wrong_words(text) and not wrong_words("the server keeps hints in memory only; see `nudge memory`")


def test_messages_use_one_word_for_one_thing() -> None:
    """Whatever a module may print."""
    found = {name: wrong for name in _modules() if (wrong := [*_wrong_in(ROOT / "nudge" / name)])}
    assert not found, found


def _wrong_in(path: Path) -> Iterator[str]:
    return (words for text in _messages(path) for words in wrong_words(text))


def _help(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert app.main(words) == 0
    return capsys.readouterr().out


def test_help_uses_one_word_for_one_thing(capsys: pytest.CaptureFixture[str]) -> None:
    """The help and the manual page of every verb, with the names of verbs and options."""
    pages = [("--help",), ("help", "all"), ("man",)]
    pages += [(word, *verb.name.split()) for verb in all_verbs() for word in ("help", "man")]
    settings = re.compile(r"--(private-projects|cross-project|memories)( [A-Z]+)?|`memories`")
    texts = {words: settings.sub("", _help(capsys, *words).replace("\\-", "-")) for words in pages}
    found = {" ".join(words): wrong for words, text in texts.items() if (wrong := wrong_words(text, with_code=True))}
    assert not found, found


def test_tools_use_one_word_for_one_thing() -> None:
    """Descriptions of operations, their parameters and results: OpenAPI shows them to people."""
    texts = {operation.name: list(_descriptions(operation)) for operation in OPERATIONS.values()}
    found = {name: wrong for name, lines in texts.items() if (wrong := [*_wrong_of(lines)])}
    assert not found, found


def _wrong_of(lines: list[str]) -> Iterator[str]:
    return (words for text in lines for words in wrong_words(text))


def _descriptions(operation: Operation) -> Iterator[str]:
    yield operation.summary
    yield from _in_schema(operation.params.model_json_schema())
    yield from _in_schema(operation.result.model_json_schema())


def _in_schema(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(text := node.get("description"), str):
            yield text
        for value in node.values():
            yield from _in_schema(value)


PAGES = [*readme.PAGES, readme.Page.read(ROOT / "CHANGELOG.md"), readme.SECURITY]
PAGES += [readme.Page.read(path) for path in sorted((ROOT / "plugin").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_documents_use_one_word_for_one_thing(page: readme.Page) -> None:
    """In their sentences; what is set as code is a name."""
    assert not wrong_words(page.prose())


@pytest.mark.parametrize("page", readme.PAGES, ids=lambda page: page.path)
def test_documents_name_what_help_lists(page: readme.Page) -> None:
    """No command in a document uses a name that no help lists."""
    unlisted = re.compile(r"nudge (memory|learned)\b|nudge .*--(project|namespace|all-projects)\b")
    assert not [line for code in page.code() for line in code.splitlines() if unlisted.search(line)]
