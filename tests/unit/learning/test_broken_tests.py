"""The reports of test runners, as they print them into a pipe, and tests that are broken whoever works there: when they
are told, and when that is forgotten."""

from __future__ import annotations

import sqlite3

import pytest

from nudge.core import limits
from nudge.learning import store
from nudge.learning.broken_tests import FailedTest, broken_tests_text, covers_test, find_failed, is_edited
from nudge.learning.facts import Changes, Facts
from nudge.learning.outcome import Outcome
from nudge.learning.shell import parse_commands
from nudge.storage.migrations import migrate

JEST = """FAIL src/sum.test.js
  ● math › adds two > numbers

    expect(received).toBe(expected) // Object.is equality

    Expected: 4
    Received: 3

      at Object.toBe (src/sum.test.js:1:71)

  ● top level

    Expected: "b"

PASS src/other.test.js
FAIL src/load.test.js (5.12 s)
  ● Test suite failed to run

    Cannot find module './no-such' from 'src/load.test.js'

Test Suites: 2 failed, 1 passed, 3 total
Tests:       2 failed, 1 passed, 3 total
Ran all test suites."""
VITEST = """ RUN  v3.2.7 /code/shop

 ❯ src/v.spec.ts (3 tests | 2 failed) 21ms
   × math > adds 16ms
     → expected 3 to be 4 // Object.is equality

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 2 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  src/v.spec.ts > math > adds
AssertionError: expected 3 to be 4 // Object.is equality

 ❯ src/v.spec.ts:2:71

⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[1/2]⎯

 FAIL  |unit| src/w.spec.ts > top level
AssertionError: expected 'a' to be 'b' // Object.is equality

 Test Files  2 failed (2)"""
VITEST_5 = (
    "\x1b[41m\x1b[1m FAIL \x1b[22m\x1b[49m \x1b[30m\x1b[42m unit \x1b[49m\x1b[39m src/v.spec.js\x1b[2m > \x1b[22mmath"
    "\x1b[2m > \x1b[22madds\n\x1b[31m\x1b[1mAssertionError\x1b[22m: expected 3 to be 4\x1b[39m\n"
)
MOCHA = """  1) top level
  math
    ✔ ok
    sum
      2) adds numbers


  1 passing (9ms)
  2 failing

  1) top level:

      AssertionError [ERR_ASSERTION]: 'a' == 'b'
      + expected - actual

      -a
      +b

      at Context.<anonymous> (test/m.js:3:32)
      at process.processImmediate (node:internal/timers:484:21)

  2) math
       sum
         adds numbers:

      AssertionError [ERR_ASSERTION]: 3 == 4
      at Context.<anonymous> (test/m.js:2:84)
      at process.processImmediate (node:internal/timers:484:21)
"""
RSPEC = """Finished in 0.91668 seconds (files took 0.2 seconds to load)
3 examples, 2 failures

Failed examples:

rspec ./spec/mailers/mailer_spec.rb:9 # Mailer sends a welcome email
rspec ./spec/cart_spec.rb[1:2:3] # Cart is empty
"""
GO = """=== RUN   TestAdd
--- FAIL: TestAdd (0.00s)
    add_test.go:8: got 3
    --- FAIL: TestAdd/two (0.00s)
--- FAIL: TestSub (1.10s)
FAIL
FAIL\texample.com/shop/cart\t0.557s
ok  \texample.com/shop/user\t0.004s
FAIL\texample.com/shop/broken [build failed]
FAIL"""
CARGO = """running 2 tests
test tests::works ... ok
test tests::breaks ... FAILED

failures:

---- tests::breaks stdout ----

thread 'tests::breaks' (14103) panicked at src/lib.rs:4:27:
assertion `left == right` failed
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    tests::breaks

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.11s

   Compiling shop v0.1.0 (/code/shop)
     Running unittests src/lib.rs (target/debug/deps/shop-507999230d6984fa)
error: test failed, to rerun pass `-p shop --lib`"""
REPORTS = [
    (JEST, ["src/sum.test.js › math › adds two > numbers", "src/sum.test.js › top level"]),
    (VITEST, ["src/v.spec.ts > math > adds", "src/w.spec.ts > top level"]),
    (VITEST_5, ["src/v.spec.js > math > adds"]),
    (MOCHA, ["test/m.js: top level", "test/m.js: math sum adds numbers"]),
    (
        RSPEC,
        [
            "spec/mailers/mailer_spec.rb # Mailer sends a welcome email",
            "spec/cart_spec.rb # Cart is empty",
        ],
    ),
    (GO, ["example.com/shop/cart.TestAdd", "example.com/shop/cart.TestSub"]),
    (CARGO, ["tests::breaks (-p shop --lib)"]),
    ("FAILED tests/a.py::test_b[1] - AssertionError\n1 failed", ["tests/a.py::test_b[1]"]),
]
IDS = ["jest", "vitest", "vitest-5", "mocha", "rspec", "go", "cargo", "pytest"]


def names(output: str, cause: str = "Error: it failed") -> list[str]:
    return [test.id for test in find_failed(f"{cause}\nExit code 1\n{output}")]


@pytest.mark.parametrize(("output", "expected"), REPORTS, ids=IDS)
def test_a_report_names_its_failed_tests(output: str, expected: list[str]) -> None:
    """Each once, with its file, package or target; what passed and what is no test is left out."""
    assert names(output) == expected
    assert names(f"{output}\n{output}" if "error: test failed" not in output else output) == expected


@pytest.mark.parametrize(
    "output",
    [
        "FAIL sum.test.js\n  ● adds\n",
        "FAIL /tmp/x/a.test.js\n  ● adds\n",
        "FAIL node_modules/x/a.test.js\n  ● adds\n",
        "FAIL src/a.test.js\nTests: 1 failed\n  ● adds\n",
        "  ● adds\n",
        " FAIL  src/v.spec.ts [ src/v.spec.ts ]\nError: no such module\n",
        "  1) adds\n  1 passing (9ms)\n",
        "  1 failing\n\n  1) adds:\n\n      Error: no\n      at /code/lib/a.js:3:32\n",
        "  1 failing\n\n  1) adds:\n\n      Error: no\n      at Context.<anonymous> (file:///code/test/m.js:3:32)\n",
        "rspec /tmp/a_spec.rb:9 # Mailer\n",
        "--- FAIL: TestAdd (0.00s)\nFAIL\n",
        "--- FAIL: TestAdd (0.00s)\nFAIL\tcommand-line-arguments\t0.01s\n",
        CARGO.replace("error: test failed", "error: 2 targets failed"),
        f"{CARGO}\nerror: test failed, to rerun pass `--test io`",
        "FAILED tests/a.py::test_[REDACTED:github-token] - no",
        "FAILED test_a.py::test_b - no",
    ],
)
def test_unsure_is_silent(output: str) -> None:
    """A scratch file, a name without its file or package, one target of several, redacted text: nothing is learned."""
    assert names(output) == []


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("FAIL src/a.test.js\n  ● ad", "c\n  ● other\n"),
        ("--- FAIL: TestAdd (0.00s)\n    a_test", "x\nFAIL\texample.com/shop/cart\t0.557s\n"),
        ("  2 failing\n\n  1) adds:\n\n   Err", "or\n      at Context.<anonymous> (test/m.js:3:32)\n"),
        ("FAILED tests/a.py::test_lo", "ng_name - no\n"),
        ("ok\nra", "FAILED tests/a.py::test_b - no"),
    ],
)
def test_nothing_is_joined_across_a_cut(head: str, tail: str) -> None:
    """Nor is a half of a line taken for a whole one."""
    assert names(f"{head}\n[...]\n{tail}") == []


@pytest.mark.parametrize("cause", ["FAIL src/a.test.js", "--- FAIL: TestZ (0.00s)", "FAILED tests/a.py::test_z - no"])
def test_the_cause_stands_alone(cause: str) -> None:
    """The first line is a copy of a line of the output, without what stood around it."""
    assert names("  ● adds\nFAIL\texample.com/shop/cart\t0.1s", cause) == []


def test_whose_failure_it_is() -> None:
    """By the file; in Go by any test file, in Rust by any source where the panic does not name one."""
    (test,) = find_failed(f"\n{CARGO}")
    assert test.file == "src/lib.rs" and is_edited(test, ["/code/shop/src/lib.rs"])
    assert not is_edited(test, ["/code/shop/src/mylib.rs"])
    (unnamed,) = find_failed("\n" + CARGO.replace("panicked at", "ended at"))
    assert is_edited(unnamed, ["/code/shop/src/main.rs"]) and not is_edited(unnamed, ["/code/shop/README.md"])
    go = FailedTest("example.com/shop/cart.TestAdd", "go test", "_test.go")
    assert is_edited(go, ["cart/add_test.go"]) and not is_edited(go, ["cart/add.go"])
    jest = FailedTest("src/a.test.js › adds", "jest", "src/a.test.js")
    assert is_edited(jest, ["/code/shop/src/a.test.js"]) and not is_edited(jest, ["/code/shop/xsrc/a.test.js"])


JEST_ID, RSPEC_ID = "src/sum.test.js › math › adds", "spec/cart_spec.rb # Cart adds"
GO_ID, CARGO_ID = "example.com/shop/cart.TestAdd", "tests::breaks (-p shop --lib)"


@pytest.mark.parametrize(
    ("runner", "name", "command"),
    [
        ("jest", JEST_ID, "npx jest"),
        ("jest", JEST_ID, "npm test"),
        ("jest", JEST_ID, "npm run test -- src"),
        ("jest", JEST_ID, "yarn jest sum"),
        ("jest", JEST_ID, "CI=1 node_modules/.bin/jest --maxWorkers 2"),
        ("vitest", "src/v.spec.ts > adds", "pnpm exec vitest run src/v.spec.ts"),
        ("mocha", "test/m.js: adds", "npx mocha test/m.js"),
        ("mocha", "test/m.js: adds", "npx mocha test"),
        ("rspec", RSPEC_ID, "bundle exec rspec"),
        ("rspec", RSPEC_ID, "bin/rspec ./spec/cart_spec.rb"),
        ("go test", GO_ID, "go test ./..."),
        ("go test", GO_ID, "go test -count 1 ./cart/"),
        ("go test", GO_ID, "go test example.com/shop/..."),
        ("cargo test", CARGO_ID, "cargo test --workspace"),
        ("cargo test", CARGO_ID, "cargo test -p shop --lib"),
        ("cargo test", CARGO_ID, "cargo test breaks -- --nocapture"),
        ("pytest", "tests/a.py::test_b", "pytest -n 4"),
    ],
)
def test_a_run_covers_it(runner: str, name: str, command: str) -> None:
    """However the runner is started; a file, directory or package that it is in, or none."""
    assert covers_test(parse_commands(command)[0], runner, name)


@pytest.mark.parametrize(
    ("runner", "name", "command"),
    [
        ("jest", JEST_ID, "npx jest src/other.test.js"),
        ("jest", JEST_ID, "npx jest -t adds"),
        ("jest", JEST_ID, "npm run lint"),
        ("jest", JEST_ID, "npm install"),
        ("jest", JEST_ID, "npx vitest run"),
        ("jest", JEST_ID, "npx jest | tail"),
        ("vitest", "src/v.spec.ts > adds", "npx vitest run --changed"),
        ("mocha", "test/m.js: adds", "npx mocha test/mx.js"),
        ("mocha", "test/m.js: adds", "npx mocha -g other"),
        ("rspec", RSPEC_ID, "rspec spec/user_spec.rb"),
        ("rspec", RSPEC_ID, "rspec spec/cart_spec.rb:12"),
        ("rspec", RSPEC_ID, "rspec --only-failures"),
        ("rspec", RSPEC_ID, "bundle install"),
        ("go test", GO_ID, "go test ./user"),
        ("go test", GO_ID, "go test -run TestSub ./..."),
        ("go test", GO_ID, "go build ./..."),
        ("cargo test", CARGO_ID, "cargo test --test io"),
        ("cargo test", CARGO_ID, "cargo test -p user"),
        ("cargo test", CARGO_ID, "cargo test works"),
        ("cargo test", CARGO_ID, "cargo build"),
        ("pytest", "tests/a.py::test_b", "npm test"),
    ],
)
def test_a_run_leaves_it_out(runner: str, name: str, command: str) -> None:
    """Another file, package or target, a selection, another program, or an exit code that a pipe hides."""
    assert not covers_test(parse_commands(command)[0], runner, name)


NOW = 1_700_000_000.0
DAY = 86_400.0
PROJECT = "github.com/x/api"
NAME = "tests/test_io.py::test_symlinks[True]"


def failed(
    command: str = "pytest tests", name: str = NAME, identity: int = 7, reason: str = "AssertionError"
) -> Outcome:
    return Outcome(command, f"Exit code 1\nFAILED {name} - {reason}\n1 failed, 40 passed", 1, identity)


def learn(known: Facts, session: str, outcome: Outcome, now: float = NOW) -> Changes:
    return known.observe(PROJECT, session, outcome, now, now)[1]


def told(known: Facts, session: str, outcome: Outcome, now: float = NOW) -> str | None:
    answer, _ = known.observe(PROJECT, session, outcome, now, now)
    return answer.text(now) if answer else None


def broken_in(*sessions: str) -> Facts:
    known = Facts()
    for session in sessions:
        learn(known, session, failed(), NOW - 2 * DAY)
    return known


def test_told_after_two_earlier_sessions() -> None:
    """With their number, the age and the id of the latest failure; once in a session."""
    known = broken_in("s1")
    assert told(known, "s2", failed(identity=8), NOW - DAY) is None
    line = f'"{NAME}" failed in 2 earlier sessions too, last 1d ago #8'
    assert told(known, "s3", failed(identity=9)) == line
    assert told(known, "s3", failed()) is None


def at_start(known: Facts, now: float = NOW) -> list[str]:
    return [broken_tests_text(tests, now) for tests in known.tests.at_start(PROJECT, now).values()]


def test_told_at_the_start_after_two_sessions() -> None:
    """Variants of one test by its name; only those that failed in most sessions, two of them by name."""
    known = broken_in("s1")
    assert at_start(known) == []
    learn(known, "s2", failed(identity=8), NOW - DAY)
    assert at_start(known) == [f'known to fail here: "{NAME}" (failed in 2 earlier sessions, last 1d ago #8)']
    for session in ("s3", "s4", "s5"):
        for name in ("tests/a.py::test_a[1]", "tests/a.py::test_a[2]", "tests/b.py::test_b", "tests/c.py::test_c"):
            learn(known, session, failed(name=name, identity=9))
    names = '"tests/a.py::test_a[...]" and "tests/b.py::test_b" and 1 more'
    assert at_start(known) == [f"known to fail here: {names} (failed in 3 earlier sessions, just now #9)"]
    assert at_start(known, NOW + 90 * DAY + 1) == []


def test_at_the_start_only_what_half_of_the_sessions_met() -> None:
    """The others are told of it once it fails."""
    known = broken_in("s1")
    learn(known, "s2", failed(identity=8), NOW - DAY)
    assert known.tests.at_start(PROJECT, NOW, lambda: 4) and not known.tests.at_start(PROJECT, NOW, lambda: 5)
    assert told(known, "s3", failed(identity=9))


def test_the_latest_reason_is_told_at_the_start_unless_it_is_an_assertion() -> None:
    """It is quoted, and the tables keep it."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    known = broken_in("s1")
    reason = 'OSError: no "route"'
    store.store(connection, learn(known, "s2", failed(identity=8, reason="KeyError: 1"), NOW - DAY))
    store.store(connection, learn(known, "s3", failed(identity=9, reason=reason)))
    told = rf'known to fail here: "{NAME}" ("OSError: no \"route\"")'
    assert at_start(known) == [f"{told} (failed in 3 earlier sessions, just now #9)"]
    assert at_start(store.load(connection)) == [f"{told} (failed in 2 earlier sessions, just now #9)"]
    for reason in ("AssertionError: a", "assert 1 == 2", "ValueError: [REDACTED:token]"):
        learn(known, "s4", failed(identity=10, reason=reason))
        assert at_start(known) == [f'known to fail here: "{NAME}" (failed in 4 earlier sessions, just now #10)']


def test_a_test_whose_name_is_too_long_is_not_told_at_the_start() -> None:
    """It would be cut."""
    known = Facts()
    for session in ("s1", "s2"):
        learn(known, session, failed(name=f"tests/a.py::test_{'x' * limits.MAX_TOLD_COMMAND}"))
    assert at_start(known) == [""]


def test_an_edit_in_this_session_makes_it_its_own() -> None:
    """By a tool of the client or by a command: whoever changed a test need not be told that it fails."""
    for edit in ("cat > tests/test_io.py <<EOF\nEOF", "sed -i s/a/b/ tests/test_io.py"):
        known = broken_in("s1", "s2")
        learn(known, "s3", Outcome(edit))
        assert told(known, "s3", failed()) is None
    known = broken_in("s1", "s2")
    known.note_edit("s3", "/code/api/tests/test_io.py")
    assert told(known, "s3", failed()) is None
    assert told(known, "s4", failed()) is not None


def test_a_pass_forgets_it() -> None:
    """Of the file, its directory or everything; not of another file, of a selection, or of what a pipe hides."""
    for command in ("pytest", "python -m pytest tests/test_io.py", "pytest -q ./tests/"):
        known = broken_in("s1", "s2")
        assert learn(known, "s3", Outcome(command)).passed_tests
        assert told(known, "s4", failed()) is None
    for command in ("pytest tests/test_a.py", "pytest -k other tests", "pytest tests | tail", "ls"):
        known = broken_in("s1", "s2")
        assert not learn(known, "s3", Outcome(command)).passed_tests
        assert told(known, "s4", failed()) is not None


def test_scratch_files_are_no_tests_of_the_repo() -> None:
    """Sessions write files of the same name, each with its own content."""
    for name in ("reproduce.py::test_a", "/tmp/x/test_a.py::test_a", "../test_a.py::test_a"):
        known = Facts()
        for session in ("s1", "s2", "s3"):
            assert told(known, session, failed(name=name)) is None


def test_old_failures_are_not_told() -> None:
    """After 90 days nothing is known about a test."""
    assert told(broken_in("s1", "s2"), "s3", failed(), NOW + 90 * DAY) is None


def test_it_is_no_fact_with_an_answer() -> None:
    """Nothing is recommended for it, at a session's start or on failure."""
    known = broken_in("s1", "s2", "s3")
    assert known.at_start(PROJECT, NOW, None) == [] and known.listed(PROJECT, NOW) == []


def test_the_table_keeps_them() -> None:
    """Stored once for each session, loaded again, deleted when one passes."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    known = Facts()
    for session in ("s1", "s2"):
        for identity in (3, 4):
            store.store(connection, learn(known, session, failed(identity=identity)))
    loaded = store.load(connection)
    assert [(project, len(test.sessions)) for project, test in loaded.tests.list_frequent()] == [(PROJECT, 2)]
    assert told(loaded, "s3", failed()) is not None
    store.store(connection, learn(known, "s4", Outcome("pytest")))
    assert store.load(connection).tests.list_frequent() == []
    connection.close()


def test_other_runners_are_known_by_their_reports() -> None:
    """Learned, stored with the runner, told, and forgotten by a run of that runner."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    report = Outcome(
        "npm test", "FAIL src/a.test.js\nExit code 1\nFAIL src/a.test.js\n  ● cart › adds\n\nTests: 1 failed", 1, 7
    )
    for session in ("s1", "s2"):
        store.store(connection, learn(Facts(), session, report))
    loaded = store.load(connection)
    assert told(loaded, "s3", report) == '"src/a.test.js › cart › adds" failed in 2 earlier sessions too, just now #7'
    for command, is_forgotten in (("pytest", False), ("npx jest src/b.test.js", False), ("npx jest", True)):
        passed = learn(loaded, "s4", Outcome(command))
        assert bool(passed.passed_tests) is is_forgotten, command
    connection.close()
