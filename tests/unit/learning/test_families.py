"""What a failing command prints tells the family of its failure, also when nobody has heard of the tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nudge.learning.failures import CHANCE, OWN_WORK, SURROUNDINGS, UNKNOWN, diagnose
from nudge.learning.families import CHANCE_SIGNS, FAMILIES

DATA = Path(__file__).parents[2] / "bench" / "data"

# Family, what is missing or refused, and what a tool prints.
SENTENCES: tuple[tuple[str, str, str], ...] = (
    ("hook", "", "error: pre-push script declined the update: hook exited with 3"),
    ("hook", "", "pre-push checks for refs/heads/main failed"),
    ("option", "-z", "pack: error: unrecognized arguments: -z"),
    ("option", "--deep", "Error: No such option: --deep"),
    ("option", "--fast", "invalid command line option '--fast'"),
    ("option", "--jobs", "error: unexpected argument '--jobs' found"),
    ("option", "-quick", "flag provided but not defined: -quick"),
    ("port", ":7001", "bind failed: address already in use 127.0.0.1:7001"),
    ("port", ":4100", "listen tcp 0.0.0.0:4100: bind: address already in use"),
    ("port", "4100", "fatal: port 4100 is already taken"),
    ("port", "", "the address [::]:9 is already in use by another process"),
    ("module", "acme/gen/api", "server.go:9:2: package acme/gen/api is not in std (/usr/lib/go/src/acme/gen/api)"),
    ("module", "com.acme.gen", "src/Api.java:3: error: package com.acme.gen does not exist"),
    ("connection", "", "java.lang.IllegalStateException: Could not find a valid Docker environment."),
    ("version", "", "No version is set for command terraform"),
    ("tool", "elm", "Error: could not find the elm binary. Is elm installed?"),
    ("locale", "", "notes.txt: hGetContents: invalid argument (cannot decode byte sequence starting from 195)"),
    ("setting", "", "error: please specify a board, or give one with --board"),
    ("setting", "", "fatal: a region must be given"),
    ("setting", "", "Error: no default region has been chosen"),
    ("setting", "", 'forge: no such preset: "fast"'),
    ("setting", "", "error: profile 'staging' could not be found"),
    ("setting", "", "npm error No workspaces found:"),
    ("script", "check", 'fatal: Missing script: "check"'),
    ("script", "e2e", 'Command "e2e" not found'),
    ("script", "docs", "gmake: *** No rule to make target 'docs'.  Stop."),
    ("script", "chek", "error: Justfile does not contain recipe `chek`"),
    ("script", "smoke", "error: target 'smoke' is not defined in forge.lua"),
    ("script", "db:prime", "Don't know how to build task 'db:prime' (See the list of available tasks)"),
    ("script", "nextest", "error: no such command: `nextest`"),
    ("script", "types", 'None of the selected packages has a "types" script'),
    ("script", "deploy", "unknown task: deploy"),
    ("script", "types", 'error: Script not found "types"'),
    ("directory", "", "could not find stack.yaml in the current directory or any parent"),
    ("directory", "", "cannot find Tiltfile"),
    ("directory", "", "fatal: gleam.toml not found"),
    ("directory", "", "No Vagrantfile was found here"),
    ("directory", "", "no playbook inventory found"),
    ("directory", "", "error: no configuration file provided"),
    ("directory", "", "Directory '/srv/app' does not contain a Gradle build"),
    ("directory", "", "You are not inside a Hardhat project."),
    ("directory", "", "This command must be run from the root of a workspace; execute this command inside the project"),
    ("directory", "", "A Vagrant environment or target machine is required to run this command."),
    ("tool", "hatchet", "bash: line 1: hatchet: command not found"),
    ("tool", "hatchet", "zsh:1: command not found: hatchet"),
    ("tool", "nextest", "error: unknown command 'nextest' for 'forge'"),
    ("tool", "ffprobe", 'exec: "ffprobe": executable file not found in $PATH'),
    ("tool", "hatchet", "error: Failed to spawn: `hatchet`"),
    ("tool", "protoc-gen-x", "protoc-gen-x: program not found or is not executable; protoc-gen-x is not on your PATH"),
    ("tool", "hatchet", "'hatchet' is not recognized as an internal or external command"),
    ("tool", "lint", "git: 'lint' is not a git command. See 'git --help'."),
    ("tool", "graphviz", "fatal: graphviz is not installed"),
    ("tool", "dot", "Error: spawn dot ENOENT"),
    ("tool", "ninja", "could not find the program: ninja"),
    ("tool", "ld.lld", "the program 'ld.lld' could not be found"),
    ("tool", "node", "/usr/bin/env: ‘node’: No such file or directory"),
    ("tool", "nasm", "ERROR: Program 'nasm' not found or not executable"),
    ("generated", "", "package assets: embed.go:3: pattern dist: no matching files found"),
    ("generated", "config.h", "main.c:1:10: fatal error: config.h: No such file or directory"),
    ("generated", "", "The client has not been generated for this schema"),
    ("generated", "", "Backend needs to be initialized before anything else"),
    ("generated", "", "error: Prisma client not generated"),
    ("module", "lxml", "ModuleNotFoundError: No module named 'lxml'"),
    ("module", "uvicorn", "importlib.metadata.PackageNotFoundError: No package metadata was found for uvicorn"),
    ("module", "./gen", "Error: Cannot find module './gen'"),
    ("module", "golang.org/x/sync", "no required module provides package golang.org/x/sync; to add it"),
    ("module", "nokogiri", "cannot load such file -- nokogiri"),
    ("module", "sf", "Error in library(sf) : there is no package called ‘sf’"),
    ("module", "Try/Tiny.pm", "Can't locate Try/Tiny.pm in @INC"),
    ("module", "kelp", "error: could not resolve plugin 'kelp'"),
    ("module", "geo", "The provider 'geo' is not installed"),
    ("module", "fmt", "ERROR: Dependency lookup for fmt with method 'pkgconfig' failed: tool not found. Giving up."),
    ("module", "", "the packages of this workspace have not been installed"),
    ("module", "", "Error: unmet dependencies"),
    ("module", "org.acme.Main", "java.lang.ClassNotFoundException: org.acme.Main"),
    ("module", "@rail/core", 'Failed to resolve entry for package "@rail/core"'),
    ("module", "rack-3.0", "Could not find rack-3.0 in locally installed gems"),
    ("module", "", "the dependency is not available, run the fetch"),
    ("module", "App\\Kernel", 'PHP Fatal error: Class "App\\Kernel" not found'),
    ("schema", "visits", 'ERROR: relation "visits" does not exist'),
    ("schema", "", "You have 2 unapplied migrations"),
    ("connection", "127.0.0.1:6379", "Error: connect ECONNREFUSED 127.0.0.1:6379"),
    ("connection", "127.0.0.1:4646", "dial tcp 127.0.0.1:4646: connect: connection refused"),
    ("connection", "db", 'connection to server at "db", port 5432 failed: Connection refused'),
    ("connection", "", "Is the docker daemon running?"),
    ("connection", "", "Connection to node -1 could not be established."),
    ("connection", "", "error: could not reach the index"),
    ("connection", "", "getaddrinfo ENOTFOUND queue"),
    ("connection", "", "error: no emulators are running"),
    ("connection", "", "The broker may not be available"),
    ("connection", "", "the scheduler is offline"),
    ("connection", "", "no live upstreams while connecting"),
    ("auth", "", "fatal: could not read Username for 'https://git.kelp.example'"),
    ("auth", "", "Error: no access token available"),
    ("auth", "", "Your session has expired"),
    ("auth", "", "You are not logged in"),
    ("auth", "", "npm error 404 Not Found - GET https://npm.kelp.example/@kelp%2fui"),
    ("auth", "", "HTTP 401 Unauthorized"),
    ("auth", "", "You do not currently have an active account selected"),
    ("variable", "STAGE", "KeyError: 'STAGE'"),
    ("variable", "KELP_HOME", "The environment variable KELP_HOME must point to the toolchain"),
    ("variable", "EM_CACHE", "EM_CACHE must point to a writable directory"),
    ("variable", "SDK_ROOT", "fatal: please set SDK_ROOT"),
    ("variable", "", "No value for required variable"),
    ("variable", "SDK_ROOT", "build.sh: line 3: SDK_ROOT: unbound variable"),
    ("version", "", "npm error code EBADENGINE"),
    ("version", "", "npm error ERESOLVE could not resolve"),
    ("version", "", "error: package `kelp v1.0` requires rustc 1.81 or newer"),
    ("version", "", "this project requires a newer compiler"),
    ("version", "", "wire protocol version mismatch"),
    ("version", "", "The current version is 14.2"),
    ("version", "", "error: toolchain 'nightly-2024' is not installed"),
    ("version", "", "Node.js v16.20.2 is not supported by this tool"),
    ("tls", "", "SSL certificate problem: unable to get local issuer certificate"),
    ("platform", "", "exec /app: exec format error"),
    ("platform", "", "libGL.so.1: cannot open shared object"),
    ("platform", "", "this only works on linux"),
    ("resources", "", "write /var/tmp/x: no space left on device"),
    ("resources", "", "java.lang.OutOfMemoryError: Java heap space"),
    ("permission", "", "error: system operation Deploy not allowed for user"),
    ("timeout", "", "Error: exceeded timeout of 5000 ms for a hook"),
    ("runner", "", "SyntaxError: Cannot use import statement outside a module"),
    ("runner", "", 'TypeError [ERR_UNKNOWN_FILE_EXTENSION]: Unknown file extension ".ts"'),
    ("runner", "", "The global launcher is no longer supported. Run the local one."),
    ("path", "tests/a.py", "ERROR: file or directory not found: tests/a.py"),
    ("path", "data/x", "ls: cannot access 'data/x': No such file or directory"),
    ("path", "res://tests/a.gd", "ERROR: Cannot open file 'res://tests/a.gd'."),
    ("path", "notes.txt", "wc: notes.txt: No such file or directory"),
    ("path", "/srv/a.db", "IO error for operation on /srv/a.db: No such file"),
    ("path", "conf/a.yml", "no such file or directory: conf/a.yml"),
    ("path", "./pkg/wal", "stat ./pkg/wal: directory not found"),
    ("connection", "127.0.0.1:4021", "The connection to the server 127.0.0.1:4021 was refused"),
    ("path", "data/grid.h5", 'h5dump error: unable to open file "data/grid.h5"'),
    ("path", "web/spec", "the directory web/spec is missing"),
    ("path", "lib/a.lua", "lua: 'lib/a.lua' not found"),
    ("path", "Ferry.xcworkspace", "error: 'Ferry.xcworkspace' does not exist."),
    ("path", "out/a.json", "FileNotFoundError: [Errno 2] No such file: 'out/a.json'"),
    ("path", "lib/std/Test.sol", 'Source "lib/std/Test.sol" not found: File not found.'),
)


@pytest.mark.parametrize(("family", "detail", "printed"), SENTENCES)
def test_a_sentence_tells_its_family(family: str, detail: str, printed: str) -> None:
    """Whatever tool says it, and what it says is missing."""
    failure = diagnose(printed, 1)
    assert (failure.nature, failure.family) == (SURROUNDINGS, family)
    assert not detail or failure.detail == detail


OF_CHANCE = (
    "curl: (56) Recv failure: Connection reset by peer",
    "Temporary failure in name resolution",
    "429 Too Many Requests",
    'container "a" in pod "a-1" is waiting to start: PodInitializing',
    "Error: Error acquiring the state lock",
    "error: unable to download 'https://mirror.example/nar/1l.xz': HTTP error 502",
    "could not fetch the record of pier from the registry: i/o timeout",
)


def _outputs() -> Iterator[str]:
    yield from (printed for _, _, printed in SENTENCES)
    yield from OF_CHANCE
    for name in (
        "failure_pairs",
        "dev_failure_pairs",
        "dev2_failure_pairs",
        "dev4_failure_pairs",
        "dev5_failure_pairs",
    ):
        for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines():
            case = json.loads(line)
            yield case["then"]["output"]
            for session in case["sessions"]:
                yield from (step["output"] for step in session if step.get("exit"))


SIGNS = [(family.name, sign) for family in FAMILIES for sign in family.signs]
SIGNS += [("chance", sign) for sign in CHANCE_SIGNS]


@pytest.mark.parametrize(("family", "sign"), SIGNS)
def test_each_sign_has_a_case(family: str, sign: str) -> None:
    """A sign that no sentence here and no case of the benchmarks shows is none."""
    pattern = re.compile(sign, re.MULTILINE)
    assert any(pattern.search(text) for text in _outputs()), family


@pytest.mark.parametrize(
    ("nature", "printed"),
    [
        (OWN_WORK, "[FAIL: revert: Vault: paused] test_withdraw() (gas: 21231)\n5 passed; 1 failed"),
        (OWN_WORK, "error: Type mismatch\n  ┌─ src/cart.gleam:9:3\nExpected type: Int\nFound type: Float"),
        (OWN_WORK, "src/a.py:3:1: F401 'os' imported but unused"),
        (OWN_WORK, "error: could not compile `kelp` (lib) due to 1 previous error"),
        (UNKNOWN, "error: something went wrong while deploying"),
        *((CHANCE, printed) for printed in OF_CHANCE),
    ],
)
def test_what_is_no_failure_of_the_surroundings(nature: str, printed: str) -> None:
    """A failed test, a finding, an error in code; an error that says nothing; a network that failed by chance."""
    assert diagnose(printed, 1).nature == nature
