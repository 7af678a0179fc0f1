"""A command that failed because something is missing here, and what then worked in its place. Rules only.

Missing is a program, a module, a path, an option, or a target of a task runner; or a command works as it is only with a
variable, in another directory or after an install, which the same command shows that ends well soon after. Failed
tests, exceptions in a script of the agent's own, syntax errors, findings of linters and timeouts are no problems in
this sense: they say nothing about the surroundings.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from nudge.history.calls import ShellCall, is_install, may_edit, parse_call
from nudge.history.shell import Simple, join_words, relative_commands, relative_text, split_commands

PROGRAM, MODULE, PATH, OPTION, TARGET, CALL = "program", "module", "path", "option", "target", "call"

_WITHIN = 12  # commands after a failure in which its fix is looked for
_SOON = 3  # commands after a failure in which the same command may end well with a variable or elsewhere
_REDACTED = "[REDACTED"
_SIMILAR = 0.72  # share of a name that the right one has in common
# `cause` is what is told: without the path of the interpreter, or the shell and its line.
_MODULE_ERROR = re.compile(r"^\S+: (?P<cause>No module named '?(?P<name>[\w.]+)'?)\s*$", re.MULTILINE)
_PROGRAM_ERRORS = (
    re.compile(
        r"^(?:\S+: )?(?:(?:line )?\d+: )?(?P<cause>(?P<name>[^\s:]\S*): (?:command )?not found)\s*$", re.MULTILINE
    ),
    re.compile(r"^(?:\S+ )?(?P<cause>[Cc]ommand not found: (?P<name>\S+))\s*$", re.MULTILINE),  # zsh, poetry
    re.compile(r"^fish: (?P<cause>Unknown command:? '?(?P<name>[^\s']+)'?)\s*$", re.MULTILINE),
    re.compile(r"(?P<cause>Failed to spawn: `(?P<name>[^`\s]+)`)"),  # uv
)
_PATH_ERRORS = (
    re.compile(r"file or directory not found: (\S+)"),
    re.compile(r"cannot (?:access|open|stat) '?([^':\n]+)'?(?: for reading)?: No such file or directory"),
    re.compile(r"can't open file '([^']+)'"),
    re.compile(
        r"^\S+: (?:(?:line )?\d+: )?(?:can't read )?([^:\n]+): No such file or directory(?: \(os error 2\))?\s*$",
        re.MULTILINE,
    ),
    re.compile(r"IO error for operation on ([^:\n]+): No such file or directory"),  # ripgrep
    re.compile(r"^(?:zsh|fish): no such file or directory: (\S+)", re.MULTILINE),
    re.compile(r"No such file or directory: '([^']+)'"),
    re.compile(r"^stat ([^:\n]+): directory not found", re.MULTILINE),  # go
    re.compile(r"Cannot find module '(/[^']+\.[cm]?[jt]s)'"),  # node, of its script
)
_OPTION_ERRORS = (
    re.compile(r"unrecognized arguments?: (-\S+)"),
    re.compile(r"[Nn]o such option:? '?(-[\w-]+)"),
    re.compile(r"(?i)(?:unknown|unrecognized|invalid) (?:compiler )?(?:option|flag):?(?: --)? ?['`\"]?(-{0,2}[\w-]+)"),
    re.compile(r"unexpected argument '(-[\w-]+)"),  # cargo and others that are built with clap
    re.compile(r"flag provided but not defined: (-[\w-]+)"),  # go
)
_TARGET_ERRORS = (
    re.compile(r"(?P<cause>[Mm]issing script: \"?(?P<name>[\w:./-]+)\"?)"),  # npm, pnpm
    re.compile(r"(?P<cause>Command \"(?P<name>[\w:./-]+)\" not found)"),  # yarn
    re.compile(r"(?P<cause>No rule to make target [`'](?P<name>[\w:./-]+)')"),
    re.compile(r"(?P<cause>[Jj]ustfile does not contain recipe `(?P<name>[\w:./-]+)`)"),
    re.compile(r"(?P<cause>no such (?:sub)?command: `(?P<name>[\w-]+)`)"),  # cargo
)
_PACKAGE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_TASK_RUNNERS = _PACKAGE_MANAGERS | {"make", "gmake", "just", "cargo"}
# Tools whose first argument says what to do: an option of `cargo test` is none of `cargo build`.
_WITH_SUBCOMMANDS = frozenset(
    ("cargo", "go", "git", "npm", "pnpm", "yarn", "docker", "docker-compose", "kubectl", "gh")
)

# Commands that look at files or move them, and git: what they need is what the moment needs.
_NOT_CALLS = frozenset(
    (
        *("cat", "head", "tail", "less", "ls", "find", "fd", "tree", "stat", "wc", "diff", "grep", "rg", "sed", "awk"),
        *("cd", "pwd", "echo", "printf", "test", "[", "which", "true", "false", "sleep", "kill", "pkill", "xargs"),
        *("rm", "cp", "mv", "mkdir", "rmdir", "touch", "ln", "chmod", "chown", "git", "gh", "jq", "curl", "wget"),
    )
)

# What a session's own work causes: failed tests, findings of linters and compilers, syntax errors, timeouts.
_FINDINGS = re.compile(
    r"""
      ^FAILED[ ] | \b[1-9]\d*[ ]failed\b | \bAssertionError\b | ^E[ ]{2,}assert\b | ^FAILED[ ]\((?:failures|errors)=
    | ^\s*---[ ]FAIL: | \btest[ ]result:[ ]FAILED | \b[1-9]\d*[ ]failing\b | \bexamples?,[ ][1-9]\d*[ ]failures?
    | ^not[ ]ok\b | ^FAILURES! | Failures:[ ][1-9] | \btests[ ]failed[ ]out[ ]of\b | ^\s*●[ ] | failing[ ]tests
    | ^\s*[^\s:()]+\.\w+:\d+(?::\d+)?:?[ \t]+\S | \(\d+,\d+\):[ ](?:error|warning)\b | ^\s*\d+:\d+\s+(?:error|warning)\b
    | ^\s*-->[ ]\S+:\d+:\d+ | \bFound[ ]\d+[ ]errors?\b | \b\d+[ ]problems?\b | \bwould[ ](?:be[ ])?reformat
    | \bCode[ ]style[ ]issues | \bcode[ ]has[ ]been[ ]rated | \b(?:Syntax|Indentation)Error\b | \btimed[ ]out\b
    """,
    re.MULTILINE | re.VERBOSE,
)
_INSTALLABLE = re.compile(
    r"^(?:\S+: )?(?:\d+: )?\S+: (?:command )?not found\s*$|No module named |Cannot find (?:module|package)"
    r"|command not found: ",
    re.MULTILINE,
)
_CAUSE = re.compile(
    r"\w(?:Error|Exception)\b|(?i:\b(?:error|fatal|panic)\b)"
    r"|(?i:\b(?:not found|no such|cannot|can't|undefined|refused|denied|missing|required|not set)\b)"
)
# Lines that say only that something failed, or what is run.
_NOT_A_CAUSE = re.compile(
    r"\s*(?:$|Exit code \d+|[>$+] |make(?:\[\d+\])?: (?:\*\*\* \[|Entering|Leaving)"
    r"|npm (?:ERR!|error) (?:code|errno|A)\b|(?:error )?Command failed with exit code|.*ELIFECYCLE)"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What was missing when a command failed."""

    kind: str
    missing: str
    head: str
    """The invocation that failed, without arguments."""
    tool: str
    error: str

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.head if self.kind in (PROGRAM, MODULE) else self.missing


@dataclass(frozen=True, slots=True)
class Outcome:
    """One command of a session as its hook reported it. `cwd` is where it ran, `root` the top of that clone."""

    command: str
    error: str = ""
    id: int = 0
    cwd: str | None = None
    root: str | None = None
    exit_code: int | None = 0
    """Of a command without an error; None when the client does not report it."""

    @property
    def succeeded(self) -> bool:
        return not self.error and self.exit_code == 0

    def commands(self) -> list[Simple]:
        """Its simple commands, with the paths in the clone relative to the directory."""
        return relative_commands(split_commands(self.command), self.cwd, self.root)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A problem and what worked in its place; the ids are those of the two observations."""

    problem: Problem
    answer: str
    failure_id: int
    success_id: int


# What failed


def find_problem(outcome: Outcome, commands: list[Simple] | None = None) -> Problem | None:
    """Return what was missing, if the command failed for that reason and names it itself. A pipe hides a failure: then
    the error is what was printed."""
    if not outcome.error:
        return None
    error = relative_text(outcome.error, outcome.cwd, outcome.root)
    for command in outcome.commands() if commands is None else commands:
        finders = (_missing_module, _missing_program, _missing_path, _unknown_option, _missing_target)
        if problem := next(filter(None, (find(command, error) for find in finders)), None):
            return problem
    return None


def _missing_module(command: Simple, error: str) -> Problem | None:
    match = _MODULE_ERROR.search(error)
    if match and command.is_python_module and match["name"].split(".")[0] == command.tool.split(".")[0]:
        return Problem(MODULE, match["name"], command.head, command.tool, match["cause"])
    return None


def _missing_program(command: Simple, error: str) -> Problem | None:
    for match in filter(None, (pattern.search(error) for pattern in _PROGRAM_ERRORS)):
        if match["name"] in (command.program, command.launched_program):
            return Problem(PROGRAM, match["name"], command.head, command.tool, match["cause"])
    return None


def _missing_path(command: Simple, error: str) -> Problem | None:
    for match in (match for pattern in _PATH_ERRORS for match in pattern.finditer(error)):
        path = match[1].strip()
        for word in (command.launched_program, *command.arguments):
            if _is_repo_path(word) and _is_same_path(path, word):
                return Problem(PATH, word, command.head, command.tool, match[0].strip())
    return None


def _is_same_path(path: str, word: str) -> bool:
    """Python and node print the whole path of a script that is missing."""
    plain = word.removeprefix("./")
    return path in (word, plain) or (path.startswith("/") and not word.startswith("/") and path.endswith(f"/{plain}"))


def _unknown_option(command: Simple, error: str) -> Problem | None:
    for match in filter(None, (pattern.search(error) for pattern in _OPTION_ERRORS)):
        if option := _option_of(command, match[1]):
            return Problem(OPTION, f"{name_of(command)} {option}", command.head, command.tool, match[0].strip())
    return None


def _missing_target(command: Simple, error: str) -> Problem | None:
    if command.tool not in _TASK_RUNNERS:
        return None
    for match in filter(None, (pattern.search(error) for pattern in _TARGET_ERRORS)):
        if match["name"] in command.arguments:
            subject = target_call(command, match["name"])
            return Problem(TARGET, subject, command.head, command.tool, match["cause"])
    return None


def target_call(command: Simple, target: str) -> str:
    """The command up to its target: `npm run lint` for `npm run lint -- --fix`."""
    return " ".join(command.words[: command.words.index(target) + 1])


def is_same_tool(one: str, other: str) -> bool:
    """Whether two tools do the same: every package manager runs the scripts of one package.json."""
    return one == other or {one, other} <= _PACKAGE_MANAGERS


def name_of(command: Simple) -> str:
    """The tool, with its subcommand where it has one."""
    has_subcommand = command.tool in _WITH_SUBCOMMANDS and command.arguments[:1] and command.arguments[0][:1] != "-"
    return f"{command.tool} {command.arguments[0]}" if has_subcommand else command.tool


def has_findings(error: str) -> bool:
    """Whether it shows failed tests, findings of a linter or compiler, a syntax error or a timeout: the session's own
    matter."""
    return _FINDINGS.search(error) is not None


def error_line(error: str) -> str:
    """The line of an error that says most about its cause."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    causes = [line for line in lines if not _NOT_A_CAUSE.match(line)]
    named = (line for line in causes if _CAUSE.search(line))
    return next(named, causes[0] if causes else (lines[0] if lines else ""))


def is_same_error(one: str, other: str) -> bool:
    """Whether two lines say the same but for numbers, addresses and directories."""
    return _normalized(one) == _normalized(other)


def _normalized(line: str) -> str:
    plain = re.sub(r"(?:/[\w.@+~-]+)+/", "/", line.casefold())
    return " ".join(re.sub(r"0x[\da-f]+|\b[\da-f]{7,}\b|\d+(?:\.\d+)*", "0", plain).split())


# What worked


class LessonFinder:
    """The commands of one session, in order: finds what worked in the place of what failed."""

    def __init__(self) -> None:
        self._waiting: list[_OpenProblem] = []
        self._failed: list[_FailedCall] = []
        self._created: set[str] = set()

    def note_edit(self) -> None:
        """A file was edited: what works from now on may work because of that."""
        self._failed.clear()
        self._waiting = [entry for entry in self._waiting if entry.problem.kind != TARGET]

    def add(self, outcome: Outcome, problem: Problem | None, commands: list[Simple]) -> list[Lesson]:
        """Take the next command, and return what it teaches about those before it."""
        self._created |= _created(commands)
        if any(map(may_edit, commands)):
            self.note_edit()
        lessons = [
            lesson for entry in list(self._waiting) if (lesson := self._match(entry, outcome, problem, commands))
        ]
        if problem is not None and problem.missing not in self._created and _REDACTED not in outcome.command:
            self._waiting.append(_OpenProblem(problem, outcome))
        return lessons + self._match_call(outcome, problem, commands)

    def _match_call(self, outcome: Outcome, problem: Problem | None, commands: list[Simple]) -> list[Lesson]:
        """What the same words with another variable, in another directory or after an install show when they end
        well."""
        for entry in self._failed:
            entry.left -= 1
        self._failed = [entry for entry in self._failed if entry.left >= 0]
        call = parse_call(commands, outcome.cwd)
        if outcome.error:
            if call is not None and _is_candidate(call, outcome, problem):
                self._failed.append(_FailedCall(call, outcome, error_line(outcome.error)))
            return []
        lessons = []
        for entry in list(self._failed):
            answer = _same_call(entry, call) if call is not None else None
            if answer and _REDACTED not in answer + entry.outcome.command:
                command = entry.call.command
                call_problem = Problem(CALL, call_of(command), command.head, command.tool, entry.error)
                lessons.append(Lesson(call_problem, answer, entry.outcome.id, outcome.id))
                self._failed.remove(entry)
            elif call is not None and is_install(call.command):
                entry.installed = call.text()
        return lessons

    def _match(
        self, entry: _OpenProblem, outcome: Outcome, problem: Problem | None, commands: list[Simple]
    ) -> Lesson | None:
        entry.left -= 1
        is_same = problem is not None and problem.key == entry.problem.key
        answer = None if is_same else _answer(entry, commands, problem, outcome)
        if answer or entry.left <= 0 or entry.problem.missing in self._created:
            self._waiting.remove(entry)
        if not answer or answer in self._created or _REDACTED in answer:
            return None
        return Lesson(entry.problem, answer, entry.outcome.id, outcome.id)


@dataclass(slots=True)
class _FailedCall:
    """A command that failed, and may only lack a variable, a directory or an install."""

    call: ShellCall
    outcome: Outcome
    error: str
    left: int = _SOON
    installed: str | None = None


@dataclass(slots=True)
class _OpenProblem:
    """A problem whose answer is looked for."""

    problem: Problem
    outcome: Outcome
    left: int = _WITHIN
    installed: str | None = None
    is_repaired: bool = False
    """Whether the missing module was installed for the very interpreter that lacked it."""


def call_of(command: Simple) -> str:
    """A command without its variables, by which its failure is looked up."""
    return " ".join(command.words)


def _is_candidate(call: ShellCall, outcome: Outcome, problem: Problem | None) -> bool:
    """Whether a failure may be about the variables or the directory. A missing path or target may be in another
    directory; what else is missing has its own rules."""
    is_plain = not call.directory and not call.setup and not call.command.is_anonymous
    is_open = problem is None or problem.kind in (PATH, TARGET)
    return is_plain and is_open and call.command.tool not in _NOT_CALLS and not has_findings(outcome.error)


def _same_call(failed: _FailedCall, call: ShellCall) -> str | None:
    """The call that ended well, if it is what failed with more variables, elsewhere, or as it is after an install."""
    before = failed.call.command
    if call.setup:
        return None
    if call.command.words != before.words:
        is_elsewhere = not call.directory and call.command.variables == before.variables
        return call.text() if is_elsewhere and call.moved_words() == before.words else None
    if call.directory or set(call.command.variables) > set(before.variables):
        return call.text()
    is_repaired = failed.installed and _INSTALLABLE.search(failed.outcome.error)
    return failed.installed if is_repaired and call.command.variables == before.variables else None


def _answer(entry: _OpenProblem, commands: list[Simple], problem: Problem | None, outcome: Outcome) -> str | None:
    """Return what worked: an invocation, an install, a path. A later failure counts when the tool itself ran."""
    wanted = entry.problem
    for at, command in enumerate(commands):
        if problem is not None and problem.head == command.head and problem.kind in (PROGRAM, MODULE):
            continue
        if wanted.kind in (PROGRAM, MODULE):
            if is_install(command) and problem is None and command.tool != wanted.tool:
                entry.installed = join_words(command)
                if wanted.kind == MODULE and _installs(command, wanted):
                    entry.is_repaired = True
            elif command.tool == wanted.tool:
                answer = invocation(commands[:at], command, outcome.cwd)
                if answer != wanted.head:
                    return None if entry.is_repaired else answer
                if entry.installed:
                    return entry.installed
        elif wanted.kind == PATH and not (problem is not None and problem.kind == PATH):
            if path := _similar_path(wanted.missing, command):
                return path
        elif wanted.kind == OPTION and command.head == wanted.head and problem is None:
            name, _, option = wanted.missing.rpartition(" ")
            if name_of(command) == name and option not in {argument.split("=")[0] for argument in command.arguments}:
                return join_words(command)
        elif wanted.kind == TARGET and not outcome.error and (target := _similar_target(wanted, command)):
            return target_call(command, target)
    return None


def invocation(before: list[Simple], command: Simple, cwd: str | None) -> str:
    """How a command is run after those of its line: in the environment that they activate, and, if its program is named
    by a relative path, in the directory from which that is found."""
    activations = [join_words(other) for other in before if other.tool in ("source", ".") and other.arguments]
    call = parse_call([*before, command], cwd)
    program = command.launched_program
    needs_directory = call is not None and ("/" in program or activations) and not program.startswith("/")
    cd = [f"cd {call.directory}"] if call is not None and call.directory and needs_directory else []
    return " && ".join((*cd, *activations, command.head))


def _installs(command: Simple, wanted: Problem) -> bool:
    """Whether a command installs the module that was missing, with the interpreter that lacked it or the pip beside
    it."""
    interpreter = wanted.head.split()[-3]  # PROGRAM -m MODULE, after variables
    beside = posixpath.dirname(command.program) == posixpath.dirname(interpreter)
    is_same = command.program == interpreter if command.is_python_module else beside
    names = {re.split(r"[^\w.-]", argument)[0].replace("-", "_").casefold() for argument in command.arguments}
    return is_same and wanted.missing.partition(".")[0].casefold() in names


def _similar_path(missing: str, command: Simple) -> str | None:
    """Return an argument that is plainly the path that was meant: the same name elsewhere, or nearly the same name."""
    name, folder = posixpath.basename(missing), posixpath.dirname(missing)
    for argument in (command.launched_program, *command.arguments):
        path = argument.split("::")[0]
        other = posixpath.basename(path)
        if posixpath.normpath(path) == posixpath.normpath(missing) or not _is_repo_path(path):
            continue
        if posixpath.splitext(other)[1] != posixpath.splitext(name)[1]:
            continue
        if other == name or (
            posixpath.dirname(path) == folder and "." in name and SequenceMatcher(None, name, other).ratio() >= _SIMILAR
        ):
            return path
    return None


def _similar_target(wanted: Problem, command: Simple) -> str | None:
    """The target of a command that is plainly the one that was meant: `test` for `tests`, `test:unit` for `test`."""
    missing = wanted.missing.split(" ")[-1]
    for word in command.arguments if is_same_tool(command.tool, wanted.tool) else ():
        if word.startswith("-") or word in ("run", "run-script") or "=" in word:
            continue
        is_part = len(min(missing, word, key=len)) > 2 and (word in missing or missing in word)
        is_near = SequenceMatcher(None, missing, word).ratio() >= _SIMILAR
        return word if word != missing and (is_part or is_near) else None
    return None


def _is_repo_path(path: str) -> bool:
    return "/" in path and not path.startswith(("/tmp", "/dev", "/proc", "-", "~", "$", "http")) and "*" not in path


def _option_of(command: Simple, option: str) -> str | None:
    for argument in command.arguments:
        name = argument.split("=")[0]
        if name == option or name.lstrip("-") == option.lstrip("-"):
            return name if name.startswith("-") else None
    return None


def _created(commands: list[Simple]) -> set[str]:
    """Return the files that these commands make: redirections, `touch`, `tee`, the targets of `cp` and `mv`."""
    made = {path for command in commands for path in command.outputs}
    for command in commands:
        if command.tool in ("touch", "tee", "mkdir"):
            made |= {argument for argument in command.arguments if not argument.startswith("-")}
        elif command.tool in ("cp", "mv", "ln") and command.arguments:
            made.add(command.arguments[-1])
    return made
