"""Failed tests: which a test runner reports, which a command ran, and which fail in one session after the other.

Supported are the default reports of pytest, jest, vitest, mocha, rspec, `go test` and `cargo test`. The middle of a
long output is cut out before it is stored: the texts on both sides of the cut are never joined. A test whose file,
package or target is not known is left out, since two tests may have its name.

A broken test failed in several sessions, so that its failure is not due to the current one. Broken tests are rows of
the table `facts` with the kind `test`. A failure counts for a session if the session did not edit the test before; a
test is dropped once it passes. There is no fix to recommend.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from nudge.core import limits
from nudge.core.clock import last_time
from nudge.core.programs import NODE_LAUNCHERS, NODE_PACKAGE_MANAGERS
from nudge.core.text import quote, single_line
from nudge.security.secrets import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nudge.learning.command import SimpleCommand
    from nudge.learning.outcome import Outcome

PYTEST, JEST, VITEST, MOCHA, RSPEC, GO, CARGO = "pytest", "jest", "vitest", "mocha", "rspec", "go test", "cargo test"
REPORTING_PROGRAMS = frozenset((PYTEST, JEST, VITEST, MOCHA, RSPEC))
"""The programs that do nothing but run tests, and whose reports are read; tox and nox may run anything."""
TEST = "test"
"""The kind of a broken test among the facts."""

_LEAST_SESSIONS = 2  # earlier sessions in which a test failed, before it is told
_NAMED = 2  # tests in one line
# Reasons that say nothing: assertions without their values, redacted ones, and those that the runner cut too short.
_UNTOLD_REASONS = re.compile(rf"^Assertion|^assert\b|{re.escape(REDACTED)}|^.{{0,20}}\.\.\.$")
_COLOR = r"\x1b\[[\d;]*m"  # vitest 5 writes colors into a pipe
_CUT = "[...]"
_MARKS = ("FAIL", " failing", "rspec ./", "error: test failed")
"""One of them is in every report that a reader finds a failed test in: most outputs need not be read by lines."""
_SCRIPT = r"[\w@.+/-]+\.[cm]?[jt]sx?"  # a JavaScript or TypeScript file


# Broken tests


@dataclass(slots=True)
class BrokenTest:
    """A test, and the sessions in which it failed: each with the time and the id of the latest failure."""

    id: str
    runner: str
    sessions: dict[str, tuple[float, int]] = field(default_factory=dict)
    reason: str = ""
    """The reason of the latest failure; empty where `_UNTOLD_REASONS` matches."""

    @property
    def latest(self) -> tuple[float, int]:
        return max(self.sessions.values(), default=(0.0, 0))

    def before(self, session: str) -> BrokenTest:
        """Return the test without the failures in this session."""
        others = {name: failure for name, failure in self.sessions.items() if name != session}
        return replace(self, sessions=others)

    def text(self, now: float) -> str:
        """One line to tell after a failure; empty when the test's name is too long to be told uncut."""
        if len(self.id) > limits.MAX_TOLD_COMMAND:
            return ""
        timestamp, failure_id = self.latest
        name = quote(self.id, limits.MAX_TOLD_COMMAND)
        return f"{name} failed in {len(self.sessions)} earlier sessions too, {last_time(now - timestamp)} #{failure_id}"


class BrokenTests:
    """The tests of all projects that failed and did not pass since."""

    def __init__(self) -> None:
        self._projects: dict[str, dict[str, BrokenTest]] = {}

    def observe(
        self, project: str, session: str, outcome: Outcome, edited: set[str], timestamp: float
    ) -> list[BrokenTest]:
        """Add the failed tests of a command; return those that are new in this session."""
        tests = self._projects.setdefault(project, {})
        added = []
        for failed in _unedited_failures(outcome, edited):
            test = tests.setdefault(failed.id, BrokenTest(failed.id, failed.runner))
            if session not in test.sessions:
                added.append(test)
            test.sessions[session] = (timestamp, outcome.id)
            test.reason = (
                "" if _UNTOLD_REASONS.search(failed.reason) else single_line(failed.reason, limits.MAX_TOLD_ERROR)
            )
        while len(tests) > limits.MAX_BROKEN_TESTS:
            del tests[min(tests, key=lambda name: tests[name].latest)]
        return added

    def withdraw(self, project: str, commands: list[SimpleCommand]) -> list[str]:
        """Drop the tests that were run by commands which succeeded; return their ids."""
        tests = self._projects.get(project, {})
        passed = [
            name for name, test in tests.items() if any(covers_test(command, test.runner, name) for command in commands)
        ]
        for name in passed:
            del tests[name]
        return passed

    def find(self, project: str, session: str, outcome: Outcome, edited: set[str], now: float) -> list[BrokenTest]:
        """Return the tests of a failure that failed in enough earlier sessions, those of most sessions first."""
        tests = self._projects.get(project, {})
        candidates = [
            tests[failed.id].before(session) for failed in _unedited_failures(outcome, edited) if failed.id in tests
        ]
        recent = [test for test in candidates if now - test.latest[0] <= limits.FACT_SECONDS]
        frequent = [test for test in recent if len(test.sessions) >= _LEAST_SESSIONS]
        return sorted(frequent, key=lambda test: -len(test.sessions))

    def list_frequent(self) -> list[tuple[str, BrokenTest]]:
        """Return the tests that failed in several sessions, each with its project."""
        return [
            (project, test)
            for project, tests in sorted(self._projects.items())
            for test in tests.values()
            if len(test.sessions) >= _LEAST_SESSIONS
        ]

    def at_start(
        self, project: str, now: float, count_sessions: Callable[[], int] = lambda: 0
    ) -> dict[str, list[BrokenTest]]:
        """Return the tests to tell a session at its start: of each runner, those that failed in most sessions, and in
        half of the latest ones, which `count_sessions` counts. A session that meets another is told of it then."""
        tests = self._projects.get(project, {}).values()
        recent = [test for test in tests if now - test.latest[0] <= limits.FACT_SECONDS]
        runners: dict[str, list[BrokenTest]] = {}
        for test in sorted(recent, key=lambda test: -len(test.sessions)):
            worst = runners.setdefault(test.runner, [])
            if len(test.sessions) >= max(_LEAST_SESSIONS, len(worst[0].sessions) if worst else 0):
                worst.append(test)
        half = count_sessions() / 2 if any(runners.values()) else 0.0
        return {runner: worst for runner, worst in runners.items() if worst and len(worst[0].sessions) >= half}

    def add_row(
        self, project: str, name: str, runner: str, reason: str, session: str, failure_id: int, timestamp: float
    ) -> None:
        test = self._projects.setdefault(project, {}).setdefault(name, BrokenTest(name, runner))
        if (timestamp, failure_id) >= test.latest:
            test.reason = reason
        test.sessions[session] = (timestamp, failure_id)


def broken_tests_text(tests: Sequence[BrokenTest], now: float) -> str:
    """One line about tests that failed in the same number of sessions; empty when their names are too long."""
    variants: dict[str, list[BrokenTest]] = {}
    for test in tests:
        variants.setdefault(test.id.partition("[")[0], []).append(test)
    names = [(same[0].id if len(same) == 1 else f"{name}[...]", same[0].reason) for name, same in variants.items()]
    labels = [_label(name, reason) for name, reason in names if len(name) <= limits.MAX_TOLD_COMMAND]
    if not labels:
        return ""
    left = len(names) - len(labels[:_NAMED])
    others = f" and {left} more" if left else ""
    timestamp, failure_id = max(test.latest for test in tests)
    seen = f"failed in {len(tests[0].sessions)} earlier sessions, {last_time(now - timestamp)}"
    return f"known to fail here: {' and '.join(labels[:_NAMED])}{others} ({seen} #{failure_id})"


def _label(name: str, reason: str) -> str:
    return quote(name, limits.MAX_TOLD_COMMAND) + (f" ({quote(reason, limits.MAX_TOLD_ERROR)})" if reason else "")


def _unedited_failures(outcome: Outcome, edited: set[str]) -> list[FailedTest]:
    """The tests that a command reports as failed, without those edited in this session."""
    return [test for test in find_failed(outcome.printed) if not is_edited(test, edited)]


# Failed tests in the output of a runner


@dataclass(frozen=True, slots=True)
class FailedTest:
    """`id` is the runner's name of the test. `file` is the end of the paths whose edit may have caused the failure.
    `reason` is empty where the runner prints none in the same line."""

    id: str
    runner: str
    file: str
    reason: str = field(default="", compare=False)


def find_failed(output: str) -> list[FailedTest]:
    """Return the tests of the repo that failed, each once. The first line of `output` is skipped: it may be the cause
    of the failure, copied there from further down."""
    plain = re.sub(_COLOR, "", output)
    if not any(mark in plain for mark in _MARKS):
        return []
    lines = _whole_lines(plain.splitlines()[1:])
    tests = [test for read in _READERS for test in read(lines)]
    return list(dict.fromkeys(test for test in tests if REDACTED not in test.id))


def _whole_lines(lines: list[str]) -> list[str]:
    """The lines without the two halves around a cut."""
    cuts = [number for number, line in enumerate(lines) if line == _CUT]
    halves = {half for number in cuts for half in (number - 1, number + 1)}
    return [line for number, line in enumerate(lines) if number not in halves]


def edited_files(command: SimpleCommand) -> Iterator[str]:
    """Yield the files that a command writes or edits in place."""
    yield from map(str, command.outputs)
    if command.tool == "sed" and any(argument.startswith("-i") for argument in command.arguments):
        yield from map(str, command.arguments)


def is_edited(test: FailedTest, edited: Iterable[str]) -> bool:
    return any(path == test.file or path.endswith(_ending(test.file)) for path in edited)


def _ending(file: str) -> str:
    return file if file[:1] in "._" else f"/{file}"


def _is_of_repo(path: str) -> bool:
    """Whether a path is that of a test in the repo. Files at the top or outside of it are mostly scratch files, which
    have the same name but another content in each session."""
    return "/" in path and not path.startswith(("/", "../")) and "node_modules/" not in path


# Reports, as the runners print them where there is no terminal


def _read_pytest(lines: list[str]) -> Iterator[FailedTest]:
    """`FAILED tests/a.py::test_b - AssertionError`"""
    for line in lines:
        if (match := re.match(r"FAILED ((\S+?\.py)::\S+)(?: - (.+))?", line)) and _is_of_repo(match[2]):
            yield FailedTest(match[1], PYTEST, match[2], match[3] or "")


def _read_jest(lines: list[str]) -> Iterator[FailedTest]:
    """`FAIL src/a.test.js`, and below it `  ● suite › test`; what is not indented ends it."""
    path = None
    for line in lines:
        if match := re.match(rf"FAIL (?:\S+ )?({_SCRIPT})(?: \([\d.]+ m?s\))?$", line):
            path = match[1]
        elif line[:1].strip():
            path = None
        elif path and _is_of_repo(path) and (match := re.match(r"  ● (.+)", line)) and match[1] not in _NOT_TESTS:
            yield FailedTest(f"{path} › {match[1].strip()}", JEST, path)


_NOT_TESTS = frozenset(("Console", "Test suite failed to run"))


def _read_vitest(lines: list[str]) -> Iterator[FailedTest]:
    """` FAIL  src/a.test.ts > suite > test`, with the name of a project before the path where there are several: `|a|`,
    since version 4 ` a `."""
    for line in lines:
        match = re.match(rf" ?FAIL  (?:\|[^|]+\| | \S+  )?(({_SCRIPT}) > .+)", line)
        if match and _is_of_repo(match[2]):
            yield FailedTest(match[1].strip(), VITEST, match[2])


def _read_mocha(lines: list[str]) -> Iterator[FailedTest]:
    """After `  2 failing`: `  1) suite`, `       test:`, and the file in the first line of the stack."""
    titles: list[str] = []
    is_report = is_title = False
    for line in lines:
        if re.match(r"  \d+ failing$", line):
            is_report = True
        elif line[:1].strip():
            is_report = False
        elif is_report and (match := re.match(r"  \d+\) (.+)", line)):
            titles, is_title = [match[1]], not match[1].endswith(":")
        elif is_title and line.strip():
            titles.append(line.strip())
            is_title = not line.endswith(":")
        elif is_report and titles and (match := re.match(rf" +at (?:async )?Context\.\S+ \(({_SCRIPT}):\d+", line)):
            if not is_title and _is_of_repo(match[1]):
                yield FailedTest(f"{match[1]}: {' '.join(titles).removesuffix(':')}", MOCHA, match[1])
            titles = []


def _read_rspec(lines: list[str]) -> Iterator[FailedTest]:
    """`rspec ./spec/a_spec.rb:12 # Cart adds up`; the line changes with every edit above it."""
    for line in lines:
        match = re.match(r"rspec \./(\S+?_spec\.rb)(?::\d+|\[[\d:,]+\]) # (.+)", line)
        if match and _is_of_repo(match[1]):
            yield FailedTest(f"{match[1]} # {match[2].strip()}", RSPEC, match[1])


def _read_go(lines: list[str]) -> Iterator[FailedTest]:
    """`--- FAIL: TestA (0.00s)`, and after the last of a package `FAIL\texample.com/x/pkg\t0.01s`."""
    names: list[str] = []
    for line in lines:
        if match := re.match(r"--- FAIL: (\w+) \([\d.]+s\)$", line):
            names.append(match[1])
        elif match := re.match(r"FAIL\s+(\S+)\s+[\d.]+s$", line):
            if match[1] != "command-line-arguments":  # files, not a package
                yield from (FailedTest(f"{match[1]}.{name}", GO, "_test.go") for name in names)
            names = []
        elif line == _CUT or line.startswith(("ok ", "FAIL\t")):
            names = []


def _read_cargo(lines: list[str]) -> Iterator[FailedTest]:
    """`test tests::a ... FAILED`, or `    tests::a` below the last `failures:`. Cargo ends with the targets that
    failed; with several, it is not known to which of them a test belongs."""
    targets = [match[1] for line in lines if (match := re.match(r"error: test failed, to rerun pass `([^`]+)`", line))]
    if len(targets) != 1:
        return
    files = {}
    names = []
    is_list = False
    for line in lines:
        if match := re.match(r"test (\S+) \.\.\. FAILED$", line):
            names.append(match[1])
        elif match := re.match(r"thread '([^']+)' (?:\(\d+\) )?panicked at (\S+?\.rs):", line):
            files[match[1]] = match[2]
        elif is_list and (match := re.match(r"    (\S+)$", line)):
            names.append(match[1])
        is_list = line == "failures:" or (is_list and line.startswith("    "))
    for name in names:
        yield FailedTest(f"{name} ({targets[0]})", CARGO, files.get(name, ".rs"))


_READERS: tuple[Callable[[list[str]], Iterator[FailedTest]], ...] = (
    _read_pytest,
    _read_jest,
    _read_vitest,
    _read_mocha,
    _read_rspec,
    _read_go,
    _read_cargo,
)


# Which tests a command ran


def covers_test(command: SimpleCommand, runner: str, name: str) -> bool:
    """Whether a command that succeeded ran a test, given by its id. Not if it was piped, which hides its exit code, or
    if its options may have left out the test."""
    if command.piped:
        return False
    if runner == GO:
        return command.words[:2] == ("go", "test") and _covers_package(command.words[2:], name)
    if runner == CARGO:
        is_test = command.words[:2] in (("cargo", "test"), ("cargo", "t"))
        return is_test and _covers_target(command.words[2:], name)
    arguments = _runner_arguments(command, runner)
    return arguments is not None and _covers_file(arguments, runner, name)


_SELECTING = {
    PYTEST: ("-k", "-m", "--lf", "--last-failed", "--deselect", "--ignore", "--sw", "--stepwise"),
    RSPEC: ("-e", "--example", "-E", "--example-matches", "-t", "--tag", "--only-failures", "-n", "--next-failure"),
    GO: ("-run", "-skip", "-short", "-list"),
}
_SELECTING_SCRIPTS = (
    *("-t", "--testNamePattern", "-o", "--onlyChanged", "--onlyFailures", "-f", "--changedSince", "--shard"),
    *("--findRelatedTests", "--changed", "--project", "--selectProjects", "-g", "--grep", "--fgrep"),
)
_SUBCOMMANDS = frozenset(("run", "watch", "--"))
_PACKAGE_RUNNERS = NODE_PACKAGE_MANAGERS | NODE_LAUNCHERS | {"node", "bundle"}


def _runner_arguments(command: SimpleCommand, runner: str) -> Sequence[str] | None:
    """The arguments of the runner in a command like `npx jest src`, `npm test`, `bundle exec rspec`; None when the
    command does not run it."""
    if command.tool in (runner, "py.test" if runner == PYTEST else runner):
        return list(command.arguments)
    if command.tool not in _PACKAGE_RUNNERS or runner == PYTEST:
        return None
    words: list[str] = list(command.arguments)
    if runner in words:
        return words[words.index(runner) + 1 :]
    script = words[1:] if words[:1] == ["run"] else words
    return script[1:] if runner != RSPEC and script[:1] in (["test"], ["t"]) else None


def _covers_file(arguments: Sequence[str], runner: str, name: str) -> bool:
    if _has_option(arguments, _SELECTING.get(runner, _SELECTING_SCRIPTS)):
        return False
    words = [argument for argument in arguments if argument not in _SUBCOMMANDS and argument[:1] != "-"]
    targets = [word.removeprefix("./").rstrip("/") for word in words if not word.isdigit()]  # `-n 4`
    return not targets or any(_is_below(name, target, runner) for target in targets)


def _is_below(name: str, target: str, runner: str) -> bool:
    if runner in (JEST, VITEST):  # they take any part of a path
        return target in name.split(" ")[0]
    return name == target or name.startswith(tuple(f"{target}{end}" for end in ("/", "::", ":", " #")))


def _covers_package(arguments: Iterable[str], name: str) -> bool:
    """`./pkg/...` covers the packages below, a path covers that package. Without any, the package of the directory is
    tested; as it is not known which that is, the test counts as run."""
    if _has_option(arguments, _SELECTING[GO]):
        return False
    package = name.rpartition(".")[0]
    targets = [argument.removeprefix("./") for argument in arguments if argument[:1] != "-" and not argument.isdigit()]
    return not targets or any(_is_package(package, target) for target in targets)


def _is_package(package: str, target: str) -> bool:
    path = target.removesuffix("...").rstrip("/")
    if path in ("", "."):
        return True
    return f"/{package}".endswith(f"/{path}") or (target.endswith("...") and f"/{path}/" in f"/{package}/")


def _covers_target(arguments: Iterable[str], name: str) -> bool:
    """A name, `-p shop` and `--lib` select tests; the flags in `_HARMLESS` do not."""
    test, _, flags = name.removesuffix(")").partition(" (")
    chosen = [argument for argument in arguments if argument not in _HARMLESS]
    return all(word in flags.split() or (word[:1] != "-" and word in test) for word in chosen)


_HARMLESS = frozenset(
    (
        *("--workspace", "--all", "--all-targets", "--all-features", "--release", "--no-fail-fast", "--offline"),
        *("--locked", "--frozen", "-q", "--quiet", "-v", "--verbose", "-r", "--", "--nocapture", "--no-capture"),
    )
)


def _has_option(arguments: Iterable[str], options: Iterable[str]) -> bool:
    return not {argument.split("=")[0] for argument in arguments}.isdisjoint(options)
