"""What a failure and the success after it teach, and what teaches nothing."""

from __future__ import annotations

import pytest

from nudge.history.lessons import LessonFinder
from nudge.history.problems import CALL, MODULE, OPTION, PATH, PROGRAM, TARGET, Outcome, find_problem
from nudge.history.shell import split_commands


def ok(command: str) -> Outcome:
    return Outcome(command)


def failed(command: str, error: str) -> Outcome:
    return Outcome(command, f"Exit code 1\n{error}")


NO_PYTEST = failed("/usr/bin/python3 -m pytest tests/a.py", "/usr/bin/python3: No module named pytest")
NO_FILE = failed(
    "pytest tests/test_domain_python.py", "ERROR: file or directory not found: tests/test_domain_python.py"
)


def lessons(*outcomes: Outcome) -> list[tuple[str, str, str]]:
    trail = LessonFinder()
    learned = [
        lesson for outcome in outcomes for lesson in trail.add(outcome, find_problem(outcome), outcome.commands())
    ]
    return [(*lesson.problem.key, lesson.answer) for lesson in learned]


def test_another_invocation_of_the_same_tool() -> None:
    """`python -m pytest` has no pytest, `pytest` works."""
    assert lessons(NO_PYTEST, ok("which pytest"), ok("pytest tests/a.py")) == [
        (MODULE, "/usr/bin/python3 -m pytest", "pytest")
    ]


def test_a_tool_that_ran_and_found_failures_works() -> None:
    """Tests that fail are the tests' matter: the invocation is right."""
    assert lessons(NO_PYTEST, failed("pytest tests/a.py", "1 failed in 0.03s")) == [
        (MODULE, "/usr/bin/python3 -m pytest", "pytest")
    ]


def test_an_install_first() -> None:
    """The same invocation after an install: the install is the answer."""
    missing = failed("tox -e py311", "bash: line 1: tox: command not found")
    assert lessons(missing, ok("pip install tox"), ok("tox -e py311")) == [(PROGRAM, "tox", "pip install tox")]


@pytest.mark.parametrize(
    ("install", "learned"),
    [
        (".venv/bin/pip install -q mypy==1.13.0", []),
        (".venv/bin/python -m pip install mypy", []),
        ("pip install mypy", [".venv/bin/mypy"]),
        (".venv/bin/pip install types-requests", [".venv/bin/mypy"]),
    ],
)
def test_a_module_that_was_installed_is_not_missing(install: str, learned: list[str]) -> None:
    """After an install into that very interpreter, the first invocation works as well as any other."""
    missing = failed(".venv/bin/python -m mypy src", "/a/.venv/bin/python: No module named mypy")
    assert [answer for *_, answer in lessons(missing, ok(install), ok(".venv/bin/mypy src"))] == learned


@pytest.mark.parametrize("right", ["tests/test_domain_py.py", "sphinx/tests/test_domain_python.py"])
def test_another_path_of_the_same_name(right: str) -> None:
    """Nearly the same name in the directory, or the same name in another."""
    assert lessons(NO_FILE, ok("ls tests"), ok(f"pytest {right}::test_x")) == [
        (PATH, "tests/test_domain_python.py", right)
    ]


def test_an_option_that_is_not_known() -> None:
    """The same command without it."""
    unknown = failed("pytest -n 4 tests", "pytest: error: unrecognized arguments: -n 4")
    assert lessons(unknown, ok("pytest tests")) == [(OPTION, "pytest -n", "pytest tests")]


def test_what_the_agent_made_itself_is_no_fact() -> None:
    """A path that it creates later was not missing, and one that it created is no answer."""
    assert lessons(NO_FILE, ok("touch tests/test_domain_python.py"), ok("pytest tests/test_domain_py.py")) == []
    assert lessons(NO_FILE, ok("cp x tests/test_domain_py.py"), ok("pytest tests/test_domain_py.py")) == []


def test_a_fix_is_looked_for_only_nearby() -> None:
    """What is run a hundred commands later has nothing to do with the failure."""
    assert lessons(NO_PYTEST, *[ok("ls")] * 20, ok("pytest tests/a.py")) == []


def test_nothing_is_learned_from_redacted_values() -> None:
    """A command that is not whole teaches nothing, and is no answer."""
    hidden = failed("TOKEN=[REDACTED:token] tox -e py", "bash: line 1: tox: command not found")
    assert lessons(hidden, ok("python -m tox -e py")) == []
    missing = failed("tox -e py", "bash: line 1: tox: command not found")
    assert lessons(missing, ok("TOKEN=[REDACTED:token] python -m tox -e py")) == []


def test_a_failure_behind_a_pipe_is_a_failure() -> None:
    """Its error is what was printed; the exit code was that of `tail`."""
    hidden = Outcome("/usr/bin/python3 -m pytest tests | tail -5", "/usr/bin/python3: No module named pytest")
    assert lessons(hidden, ok("pytest tests | tail -5")) == [(MODULE, "/usr/bin/python3 -m pytest", "pytest")]


@pytest.mark.parametrize("right", ["DOCKER=1 make test", "cd web && make test"])
def test_a_variable_or_a_directory(right: str) -> None:
    """The same words end well soon after, with a variable or behind `cd`."""
    failing = failed("make test", "make: *** No rule to make target 'test'.  Stop.")
    assert lessons(failing, ok("ls"), ok(right)) == [(CALL, "make test", right)]
    assert lessons(failing, ok("vi a"), ok("vi b"), ok("vi c"), ok(right)) == []
    assert lessons(failing, ok(f"{right} && echo done")) == []
    assert lessons(failing, failed(right, "1 failed")) == []


@pytest.mark.parametrize(
    "error",
    [
        "FAILED tests/test_a.py::test_tax - assert 1 == 2\n1 failed in 0.1s",
        "E       assert 1 == 2\n=== 1 failed, 2 passed in 0.1s ===",
        "--- FAIL: TestTax (0.00s)\nFAIL\tx\t0.1s",
        "test result: FAILED. 0 passed; 1 failed",
        "Tests:       1 failed, 3 passed",
        "3 examples, 1 failure",
        "a.py:1:1: F401 unused import\nFound 1 error.",
        "src/app.ts\n  1:1  error  x is not defined  no-undef\n\n1 problem",
        "src/a.ts(3,1): error TS2304: Cannot find name 'x'",
        "a.py:4: error: Incompatible types  [arg-type]",
        "error[E0433]: failed to resolve\n --> src/main.rs:1:5",
        "would reformat a.py",
        "SyntaxError: invalid syntax",
        "Command timed out after 2m",
    ],
)
def test_findings_of_tests_and_linters_teach_nothing(error: str) -> None:
    """That the same command ends well later, with a variable or elsewhere, is due to the work in between."""
    for right in ("DEBUG=1 bin/check", "cd web && bin/check"):
        assert lessons(failed("bin/check", error), ok(right)) == []


@pytest.mark.parametrize(
    "edit",
    [
        "sed -i s/1/2/ a.py",
        "cat fix.patch | patch -p1",
        "git checkout main",
        "echo x > config.ini",
        "python - <<'EOF'\nopen('a', 'w')\nEOF",
        "ruff check --fix .",
    ],
)
def test_what_works_after_an_edit_teaches_nothing_about_variables(edit: str) -> None:
    """By a tool of the client, too; output that is thrown away is no edit."""
    failing = failed("make test", "no docker")
    assert lessons(failing, ok(edit), ok("DOCKER=1 make test")) == []
    assert lessons(failing, ok("docker ps > /dev/null 2>&1"), ok("DOCKER=1 make test"))
    trail = LessonFinder()
    trail.add(failing, None, failing.commands())
    trail.note_edit()
    assert trail.add(ok("DOCKER=1 make test"), None, ok("DOCKER=1 make test").commands()) == []


@pytest.mark.parametrize("directory", ["/repo", "/repo/", ".", "/repo/web/.."])
def test_a_cd_to_where_the_command_ran_is_none(directory: str) -> None:
    """It says nothing; `cd` to another directory of the clone is learned as it is typed in any clone."""
    failing = Outcome("make all", "Exit code 2\nno configuration", 1, "/repo", "/repo")
    assert lessons(failing, Outcome(f"cd {directory} && make all", "", 2, "/repo", "/repo")) == []
    assert lessons(failing, Outcome("cd /repo/sub && make all", "", 2, "/repo", "/repo")) == [
        (CALL, "make all", "cd sub && make all")
    ]


@pytest.mark.parametrize("command", ["grep -rn foo src", "cat notes", "git push", "ls web", "rm x"])
def test_looking_at_files_needs_no_directory(command: str) -> None:
    """A search without a match, a missing file, git: what they need is what the moment needs."""
    assert lessons(failed(command, "fatal: nothing here"), ok(f"cd web && {command}")) == []


@pytest.mark.parametrize(
    ("command", "error", "right", "answer"),
    [
        ("pytest -q", "zsh: command not found: pytest", "uv run pytest -q", "uv run pytest"),
        ("pytest -q", "(eval):1: command not found: pytest", "poetry run pytest -q", "poetry run pytest"),
        ("vitest run", "fish: Unknown command: vitest", "npx vitest run", "npx vitest"),
        ("vitest run", "sh: 1: vitest: not found", "npx --yes vitest run", "npx --yes vitest"),
        ("python manage.py test", "bash: line 1: python: command not found", "python3 manage.py test", "python3"),
        ("docker-compose up -d", "bash: docker-compose: command not found", "docker compose up -d", "docker compose"),
        ("pip install x", "bash: pip: command not found", "python3 -m pip install x", "python3 -m pip"),
        ("rspec spec", "bash: rspec: command not found", "bundle exec rspec spec", "bundle exec rspec"),
        (
            "pytest -q",
            "bash: pytest: command not found",
            "source .venv/bin/activate && pytest -q",
            "source .venv/bin/activate && pytest",
        ),
        ("poetry run pytest", "Command not found: pytest", ".venv/bin/pytest", ".venv/bin/pytest"),
        ("uv run pytest", "error: Failed to spawn: `pytest`", "uv run --dev pytest", "uv run --dev pytest"),
        ("pytest", "bash: pytest: command not found", "cd api && .venv/bin/pytest", "cd api && .venv/bin/pytest"),
    ],
)
def test_a_program_that_is_run_in_another_way(command: str, error: str, right: str, answer: str) -> None:
    """As bash, zsh, fish, dash and launchers report it; through a launcher, an environment or a module."""
    assert lessons(failed(command, error), ok(right)) == [(PROGRAM, split_commands(command)[0].head, answer)]


def test_a_version_that_is_named_is_meant() -> None:
    """`python` says nothing about `python2`."""
    assert lessons(failed("python2 a.py", "bash: python2: command not found"), ok("python a.py")) == []


@pytest.mark.parametrize(
    ("command", "error", "right", "answer"),
    [
        ("make test", "Error: DB is not set", "export DB=x && make test", "DB=x make test"),
        ("make test", "make: *** No rule to make target 'test'.  Stop.", "make -C api test", "make -C api test"),
        ("npm test", "npm error enoent package.json", "npm --prefix web test", "npm --prefix web test"),
        (
            "pytest tests/test_a.py",
            "ERROR: file or directory not found: tests/test_a.py",
            "cd api && pytest tests/test_a.py",
            "cd api && pytest tests/test_a.py",
        ),
        ("cargo test", "error: could not find `Cargo.toml` in `/r`", "cd rs && cargo test", "cd rs && cargo test"),
    ],
)
def test_a_variable_or_directory_in_another_form(command: str, error: str, right: str, answer: str) -> None:
    """An export, an option that names the directory, a path that is in another one."""
    assert lessons(failed(command, error), ok(right)) == [(CALL, command, answer)]


@pytest.mark.parametrize("install", ["npm ci", "npm install", "yarn", "pnpm i"])
def test_an_install_before_a_task(install: str) -> None:
    """A script of the repo lacks a program or a module; other errors are not mended by an install."""
    missing, other = (failed("npm run test", error) for error in ("sh: 1: vitest: not found", "bad config"))
    assert lessons(missing, ok(install), ok("npm run test")) == [(CALL, "npm run test", install)]
    assert lessons(other, ok(install), ok("npm run test")) == []


@pytest.mark.parametrize(
    ("command", "error", "right", "subject", "answer"),
    [
        ("npm test", 'npm error Missing script: "test"', "npm run test:unit -- -x", "npm test", "npm run test:unit"),
        ("pnpm lint:all", "ERR_PNPM_NO_SCRIPT  Missing script: lint:all", "pnpm lint", "pnpm lint:all", "pnpm lint"),
        ("yarn tests", 'error Command "tests" not found.', "yarn test", "yarn tests", "yarn test"),
        ("make tests -j4", "make: *** No rule to make target 'tests'.", "make test", "make tests", "make test"),
        ("just tests", "error: Justfile does not contain recipe `tests`.", "just test", "just tests", "just test"),
        ("cargo nextest run", "error: no such command: `nextest`", "cargo test", "cargo nextest", "cargo test"),
    ],
)
def test_a_target_of_nearly_the_same_name(command: str, error: str, right: str, subject: str, answer: str) -> None:
    """Of npm, pnpm, yarn, make, just and cargo. Another target, and one that was written meanwhile, is none."""
    missing = failed(command, error)
    assert lessons(missing, ok("ls"), ok(right)) == [(TARGET, subject, answer)]
    assert lessons(missing, ok(f"{right.split()[0]} deploy")) == []
    assert lessons(missing, ok("echo 'all:' >> Makefile"), ok(right)) == []
    assert lessons(missing, failed(right, "boom")) == []


def test_another_subcommand_is_no_answer_for_an_option() -> None:
    """`cargo build` says nothing about `cargo test --foo`."""
    unknown = failed("cargo test --foo", "error: unexpected argument '--foo' found")
    assert lessons(unknown, ok("cargo build"), ok("cargo test")) == [(OPTION, "cargo test --foo", "cargo test")]


@pytest.mark.parametrize(
    ("command", "error", "missing", "right", "answer"),
    [
        (
            "python scripts/run.py",
            "python: can't open file '/repo/scripts/run.py': [Errno 2] No such file or directory",
            "scripts/run.py",
            "python tools/run.py",
            "tools/run.py",
        ),
        (
            "./scripts/test -x",
            "/bin/bash: line 1: ./scripts/test: No such file or directory",
            "./scripts/test",
            "./bin/test",
            "./bin/test",
        ),
        ("rg foo src/lib", "rg: src/lib: No such file or directory (os error 2)", "src/lib", "rg foo lib/lib", None),
        ("node a/gen.js", "Error: Cannot find module '/repo/a/gen.js'", "a/gen.js", "node b/gen.js", "b/gen.js"),
    ],
)
def test_a_path_that_is_printed_in_another_form(
    command: str, error: str, missing: str, right: str, answer: str | None
) -> None:
    """Interpreters print it whole; a program may be the path that is missing."""
    assert lessons(failed(command, error), ok(right)) == [(PATH, missing, answer or "lib/lib")]
