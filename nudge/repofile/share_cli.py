"""The verb `share`: write a hint of one's own into the repo's file. The one place where Nudge writes into a work tree,
since it was told to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

import click

from nudge.cli import completion
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, EXIT_REFUSED, Styler, Usage
from nudge.cli.params import option
from nudge.cli.plain import Invocation, context_params, split_name
from nudge.cli.prompts import ask, yes_option
from nudge.cli.verbs import HINTS
from nudge.core import files, limits
from nudge.core.errors import Conflict, Invalid, NotFound, StorageFailed
from nudge.core.repos import is_same_repo
from nudge.core.text import escape
from nudge.learning import jobs
from nudge.repofile import FILE
from nudge.repofile import clone as clones
from nudge.repofile.cli import this_clone
from nudge.repofile.clone import Clone
from nudge.repofile.document import COMMAND, FACT, KINDS, PATH, Document, RepoHint, parse
from nudge.repofile.edit import CannotEdit, with_hint

_JOBS = frozenset(
    (
        *(jobs.TEST, jobs.LINT, jobs.FORMAT, jobs.TYPES, jobs.BUILD, jobs.INSTALL, jobs.GENERATE),
        *(jobs.MIGRATE, jobs.RUN, jobs.DEPLOY, jobs.START, jobs.CLEAN, *jobs.CHECKS),
    )
)
"""Keys under which a plain text is a command: most people set `api test` without saying so."""
_MARKS = {"+": "green", "-": "red", "@": "dim"}


@verb(
    "share",
    "nudge share api/test",
    "nudge share api/port --kind fact --evidence docs/development.md#ports",
    group=HINTS,
    summary="write a hint of your own into the repo's .nudge.toml",
    operations=("nudge.get_hint",),
)
@click.argument("name", metavar="NAME", help="The hint, as component/key.", shell_complete=completion.hints)
@option("--kind", type=click.Choice(KINDS), help="What the value is (default: as the hint says).")
@option("--evidence", metavar="FILE", help="A file of the repo that it rests on, or a section: docs/dev.md#testing.")
@yes_option
def share(invocation: Invocation, name: str, kind: str | None, evidence: str | None, yes: bool) -> int:
    """Takes the variant that applies here, shows the change of the file as a diff, and asks. Comments and order of the
    file stay. The others, and you, are told it from the file only once they trust it: nudge trust."""
    component, key = split_name(name)
    if key is None:
        raise Usage(f"{name!a} is not component/key", "try: nudge share api/test")
    clone = this_clone()
    found = invocation.client().call(
        "nudge.get_hint", {"component": component, "key": key, "context": context_params()}
    )
    hint = written(component, key, found["hint"], clone, kind, evidence or "")
    before = _read(clone)
    after = _edited(before, hint)
    console = invocation.console
    change = list(_diff(console.styler, before, after))
    if not change:
        console.result({"changed": False}, [console.styler.done(f"{FILE} has this hint already")])
        return EXIT_OK
    if not console.as_json:
        console.show(change)
    if not ask(f"Write this to {clone.file}?", yes=yes):
        console.note("nothing was changed")
        return EXIT_REFUSED
    _write(clone, before, after)
    advice = "review and commit it; others, and you, are told it from there once they trust it: nudge trust"
    console.result({"changed": True, "path": clone.file}, [console.styler.done(f"wrote {escape(clone.file)}"), advice])
    return EXIT_OK


# The hint


def written(
    component: str, key: str, hint: Mapping[str, Any], clone: Clone, kind: str | None, evidence: str
) -> RepoHint:
    """A hint of one's own as the file has it. Raises Invalid for one that only this machine can use."""
    if "file" in hint or "evidence" in hint:
        where = f"in {FILE} already" if "file" in hint else "a fact, not a hint; set it first with: nudge set"
        raise Invalid(f"{component}/{key} is {where}")
    meta = hint["meta"]
    if meta.get("sensitivity") == "secret":
        raise Invalid(f"{component}/{key} is a secret; it must not be in a repository")
    found, text = _value(key, hint["value"], clone)
    scope = _scope(meta.get("scope", {}), clone)
    return RepoHint(component, key, kind or found, text, scope, meta.get("reason", ""), evidence)


def _value(key: str, value: Any, clone: Clone) -> tuple[str, str]:
    if isinstance(value, str):
        return (COMMAND if key in _JOBS else FACT), value
    if value["type"] == "command":
        return COMMAND, value["cmd"]
    if value["type"] == "path":
        return PATH, _below(value["abs"], clone)
    raise Invalid(f"a {value['type']} cannot be shared; only commands, paths and short texts are")


def _scope(scope: Mapping[str, Any], clone: Clone) -> dict[str, list[str]]:
    repos = scope.get("repo") or []
    repos = [repos] if isinstance(repos, str) else repos
    if repos and not any(is_same_repo(repo, clone.repo) for repo in repos):
        raise Invalid(f"the hint is for another repo: {', '.join(repos)}")
    if other := {"env_required", "env_match"} & scope.keys():
        raise Invalid(
            f"a hint with the condition {min(other)} cannot be shared: the file knows branch, os and cwd_glob"
        )
    kept = {name: sorted(scope[name]) for name in ("branch", "os") if scope.get(name)}
    globs = sorted(_below(glob, clone) for glob in scope.get("cwd_glob", ()))
    return {**kept, **({"cwd_glob": globs} if globs else {})}


def _below(path: str, clone: Clone) -> str:
    """A path or glob from the top of the clone."""
    for root in (clone.root, os.path.realpath(clone.root)):
        if path.startswith(f"{root}/"):
            return path.removeprefix(f"{root}/")
    raise Invalid(f"{path} is not below {clone.root}; others have no such place")


# The file


def _read(clone: Clone) -> bytes:
    try:
        return files.read_unlinked(clone.file, limits.MAX_REPO_FILE_BYTES + 1)[0]
    except FileNotFoundError:
        return b""
    except OSError:
        raise Invalid(f"{FILE} is refused as it is; see: nudge status") from None


def _edited(before: bytes, hint: RepoHint) -> bytes:
    """The new content of the file, checked as a whole."""
    document = parse(before) if before else Document()
    if document.problems:
        raise Invalid(f"{FILE} is refused as it is: {'; '.join(map(str, document.problems))}")
    try:
        after = with_hint(before.decode(), document.hints, hint).encode()
    except CannotEdit as error:
        raise Invalid(f"{FILE} cannot be changed: {error}") from None
    if problems := parse(after).problems:
        raise Invalid(f"this hint cannot be shared: {'; '.join(problem.text for problem in problems)}")
    return after


def _diff(styler: Styler, before: bytes, after: bytes) -> Iterator[str]:
    lines: Sequence[str] = before.decode().splitlines()
    for line in unified_diff(lines, after.decode().splitlines(), FILE, FILE, lineterm=""):
        yield styler.paint(_MARKS.get(line[0], "dim"), escape(line))


def _write(clone: Clone, before: bytes, after: bytes) -> None:
    """Replace the file, unless it changed since it was read."""
    if _read(clone) != before:
        raise Conflict(f"{FILE} changed while you looked; nothing was written; share it again")
    if clones.find_twin([*os.listdir(clone.root), FILE]):
        raise NotFound(f"{FILE} has a twin that some systems take for the same file; rename that first")
    try:
        with files.Replacement(clone.file, mode=0o666, preserve=True) as file:
            file.write(after)
    except OSError as error:
        raise StorageFailed(f"cannot write {clone.file}: {error.strerror}") from None
