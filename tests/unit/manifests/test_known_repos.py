"""Repositories that everybody knows, shortened: each gives the commands that its maintainers type."""

from __future__ import annotations

from pathlib import Path

from nudge.manifests import scan_repo
from tests.unit.manifests.repos import commands, reasons, write_repo

DJANGO = {
    "pyproject.toml": """
        [build-system]
        requires = ["setuptools>=75.8.1"]
        build-backend = "setuptools.build_meta"

        [project]
        name = "Django"
        dynamic = ["version"]
        requires-python = ">= 3.12"
        dependencies = ["asgiref>=3.9.1", "sqlparse>=0.5.0"]

        [project.scripts]
        django-admin = "django.core.management:execute_from_command_line"

        [tool.black]
        target-version = ["py312"]
        force-exclude = "tests/test_runner_apps/tagged/tests_syntax_error.py"

        [tool.isort]
        profile = "black"
        """,
    "tox.ini": """
        # Run the whole suite with `tox`, one part with `tox -e flake8`.
        [tox]
        minversion = 4.0
        skipsdist = true
        envlist =
            py3
            black
            flake8 >= 3.7.0
            docs

        [testenv]
        usedevelop = true
        changedir = tests
        commands = {envpython} runtests.py {posargs}

        [testenv:black]
        deps = black
        commands = black --check --diff .

        [testenv:flake8]
        deps = flake8 >= 3.7.0
        changedir = {toxinidir}
        commands = flake8 .
        """,
    "package.json": """
        {
          "name": "Django",
          "private": true,
          "scripts": {
            "pretest": "eslint django/ js_tests/",
            "test": "grunt test --verbose"
          },
          "devDependencies": {"eslint": "^9.0.0", "grunt": "^1.6.1"}
        }
        """,
    ".github/workflows/tests.yml": """
        name: Tests
        on:
          pull_request:
            paths-ignore: ['docs/**']
        jobs:
          tests:
            runs-on: ubuntu-latest
            steps:
              - uses: actions/checkout@v4
              - run: python -m pip install -e .
              - name: Run tests
                run: python -Wall tests/runtests.py -v2
        """,
    "docs/Makefile": """
        SPHINXBUILD ?= sphinx-build

        .PHONY: help
        help:
        \t@echo "html to make HTML files"

        html:
        \t$(SPHINXBUILD) -b html . _build/html
        """,
    "tests/conftest.py": "",
}

PNPM_WORKSPACE = {
    "package.json": """
        {
          "name": "@acme/monorepo",
          "private": true,
          "packageManager": "pnpm@10.4.1",
          "scripts": {
            "preinstall": "npx only-allow pnpm",
            "format": "prettier --write --cache .",
            "lint": "eslint --cache .",
            "test": "run-s test-unit test-serve test-build",
            "test-unit": "vitest run",
            "build": "pnpm -r --filter='./packages/*' run build",
            "dev": "pnpm -r --parallel --filter='./packages/*' run dev"
          }
        }
        """,
    "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n  - 'apps/*'\n",
    "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
    "packages/ui/package.json": """
        {
          "name": "@acme/ui",
          "scripts": {"build": "vite build", "test": "vitest run", "format": "prettier --check ."},
          "peerDependencies": {"react": "^19.0.0"}
        }
        """,
    "apps/web/package.json": """
        {
          "name": "web",
          "scripts": {
            "dev": "vite",
            "build": "tsc -b && vite build",
            "lint": "eslint .",
            "preview": "vite preview",
            "test": "echo \\"Error: no test specified\\" && exit 1"
          },
          "dependencies": {"@acme/ui": "workspace:*", "react": "^19.0.0"}
        }
        """,
    "apps/web/node_modules/react/package.json": '{"name": "react", "scripts": {"test": "jest"}}',
}

HTTPX_SCRIPTS = ("build", "check", "clean", "coverage", "docs", "install", "lint", "publish", "sync-version", "test")
HTTPX = {
    "pyproject.toml": """
        [build-system]
        requires = ["hatchling", "hatch-fancy-pypi-readme"]
        build-backend = "hatchling.build"

        [project]
        name = "httpx"

        [project.scripts]
        httpx = "httpx:main"

        [tool.ruff.lint]
        select = ["E", "F", "I", "B", "PIE"]

        [tool.mypy]
        strict = true

        [tool.pytest.ini_options]
        addopts = "-rxXs"
        """,
    ".github/workflows/test-suite.yml": """
        name: Test Suite
        jobs:
          tests:
            steps:
              - run: "scripts/install"
              - run: "scripts/check"
              - run: "scripts/build"
              - run: "scripts/test"
              - run: "scripts/coverage"
        """,
    "requirements.txt": "-e .[brotli,cli,http2,socks,zstd]\npytest==8.3.4\n",
    **{f"scripts/{name}": "#!/bin/sh -e\n" for name in HTTPX_SCRIPTS},
    "tests/conftest.py": "",
}

_VITE_APP = '{"name": "@vitejs/test-%s", "scripts": {"dev": "vite", "build": "vite build", "preview": "vite preview"}}'
VITE = {
    "package.json": """
        {
          "name": "@vitejs/vite-monorepo",
          "packageManager": "pnpm@10.4.1",
          "scripts": {
            "format": "prettier --write --cache .",
            "lint": "eslint --cache .",
            "test": "pnpm test-unit && pnpm test-serve && pnpm test-build",
            "build": "pnpm -r --filter='./packages/*' run build",
            "dev": "pnpm -r --parallel --filter='./packages/*' run dev"
          }
        }
        """,
    "packages/vite/package.json": '{"name": "vite", "scripts": {"dev": "rolldown -c -w", "build": "rolldown -c"}}',
    "packages/create-vite/package.json": '{"name": "create-vite", "scripts": {"build": "unbuild"}}',
    "packages/plugin-legacy/package.json": '{"name": "@vitejs/plugin-legacy", "scripts": {"build": "unbuild"}}',
    "docs/package.json": '{"name": "docs", "scripts": {"docs": "vitepress dev", "docs-build": "vitepress build"}}',
    ".github/workflows/ci.yml": """
        jobs:
          test:
            steps:
              - run: pnpm install
              - run: pnpm run build
              - run: pnpm run test-unit
        """,
    **{f"packages/create-vite/template-{name}/package.json": _VITE_APP % name for name in ("react", "vue", "svelte")},
    **{f"playground/app-{number}/package.json": _VITE_APP % number for number in range(90)},
    "packages/vite/src/node/__tests__/fixtures/test-dep/package.json": _VITE_APP % "dep",
}

RIPGREP = {
    "Cargo.toml": """
        [package]
        name = "ripgrep"
        version = "14.1.1"  #:version
        edition = "2021"
        build = "build.rs"
        autotests = false

        [[bin]]
        bench = false
        path = "crates/core/main.rs"
        name = "rg"

        [[test]]
        name = "integration"
        path = "tests/tests.rs"

        [workspace]
        members = ["crates/globset", "crates/ignore"]

        [target.'cfg(target_os = "windows")'.dependencies]
        winapi-util = "0.1.6"
        """,
    "crates/globset/Cargo.toml": '[package]\nname = "globset"\nversion = "0.4.16"\n',
    "crates/ignore/Cargo.toml": '[package]\nname = "ignore"\nversion = "0.4.23"\n',
    "fuzz/Cargo.toml": '[package]\nname = "fuzz"\n\n[[bin]]\nname = "fuzz_glob"\n',
    ".github/workflows/ci.yml": """
        name: ci
        on: {push: {branches: [master]}, schedule: [{cron: '00 01 * * *'}]}
        jobs:
          test:
            steps:
              - name: Run tests
                run: ${{ env.CARGO }} test --verbose --workspace
              - run: cargo fmt --all --check
        """,
}

KUBERNETES = {
    "go.mod": """
        // This is a generated file. Do not edit directly.

        module k8s.io/kubernetes

        go 1.24.0
        """,
    "Makefile": """
        # Commonly used targets:
        #   all: Build code.
        #   test: Run tests.
        DBG_MAKEFILE ?=
        ifeq ($(DBG_MAKEFILE),1)
            $(warning ***** starting Makefile for goal(s) "$(MAKECMDGOALS)")
        endif
        SHELL := /usr/bin/env bash -o errexit
        OUT_DIR ?= _output
        BIN_DIR := $(OUT_DIR)/bin
        .EXPORT_ALL_VARIABLES:
        .SUFFIXES:

        define ALL_HELP_INFO
        # Example:
        lint: make all WHAT=cmd/kubelet
        endef
        .PHONY: all
        ifeq ($(PRINT_HELP),y)
        all:
        \techo "$$ALL_HELP_INFO"
        else
        all: generated_files
        \thack/make-rules/build.sh $(WHAT)
        endif

        .PHONY: check test
        check test: generated_files
        \thack/make-rules/test.sh $(WHAT) $(TESTS)

        .PHONY: vet
        vet: generated_files
        \thack/make-rules/vet.sh $(WHAT)

        release release-in-a-container: KUBE_BUILD_CONFORMANCE = y
        release:
        \tbuild/release.sh

        $(CMD_TARGET): generated_files
        \thack/make-rules/build.sh cmd/$@

        %.pb.go: %.proto
        \tprotoc $<
        """,
    "cmd/kubelet/kubelet.go": "package main\n",
    "staging/src/k8s.io/kubectl/go.mod": "module k8s.io/kubectl\n\ngo 1.24.0\n",
    "vendor/github.com/x/y/go.mod": "module github.com/x/y\n",
}

PETCLINIC = {
    "pom.xml": """
        <?xml version="1.0" encoding="UTF-8"?>
        <project xmlns="http://maven.apache.org/POM/4.0.0">
          <modelVersion>4.0.0</modelVersion>
          <parent>
            <groupId>org.springframework.boot</groupId>
            <artifactId>spring-boot-starter-parent</artifactId>
            <version>3.4.2</version>
          </parent>
          <groupId>org.springframework.samples</groupId>
          <artifactId>spring-petclinic</artifactId>
          <name>petclinic</name>
          <dependencies>
            <dependency><groupId>com.h2database</groupId><artifactId>h2</artifactId></dependency>
          </dependencies>
          <build>
            <plugins>
              <plugin>
                <groupId>io.spring.javaformat</groupId>
                <artifactId>spring-javaformat-maven-plugin</artifactId>
              </plugin>
              <plugin>
                <artifactId>maven-checkstyle-plugin</artifactId>
                <dependencies><dependency><artifactId>checkstyle</artifactId></dependency></dependencies>
              </plugin>
              <plugin><artifactId>spring-boot-maven-plugin</artifactId></plugin>
            </plugins>
          </build>
        </project>
        """,
    "mvnw": "#!/bin/sh\n",
    "build.gradle": """
        plugins {
          id 'java'
          id 'org.springframework.boot' version '3.4.2'
        }
        """,
    "settings.gradle": "rootProject.name = 'spring-petclinic'\n",
    "gradlew": "#!/bin/sh\n",
    "docker-compose.yml": """
        services:
          mysql:
            image: mysql:9.2
        """,
    ".github/workflows/gradle-build.yml": "jobs:\n  build:\n    steps:\n      - run: ./gradlew build\n",
    ".github/workflows/maven-build.yml": "jobs:\n  build:\n    steps:\n      - run: ./mvnw -B verify\n",
}

VOTING_APP = {
    "docker-compose.yml": """
        # started with `docker compose up`
        services:
          vote:
            build:
              context: ./vote
              target: dev
            depends_on:
              redis:
                condition: service_healthy
            ports:
              - "8080:80"

          result:
            build: ./result

          redis:
            image: redis:alpine

        volumes:
          db-data:
        """,
    "docker-stack.yml": "services:\n  redis:\n    image: redis\n",
    "result/package.json": '{\n  "name": "result",\n  "scripts": {\n    "start": "node server.js"\n  }\n}\n',
    "result/package-lock.json": "{}",
}

PYTEST = {
    "pyproject.toml": """
        [build-system]
        build-backend = "setuptools.build_meta"
        requires = ["setuptools>=77", "setuptools-scm[toml]>=6.2.3"]

        [project]
        name = "httpx-like"

        [dependency-groups]
        dev = ["pytest>=8", "nox"]

        [tool.ruff]
        lint.select = ["E"]

        [tool.ruff.format]
        docstring-code-format = true

        [tool.mypy]
        strict = true

        [tool.pytest.ini_options]
        addopts = "-ra"
        """,
    "uv.lock": "version = 1\n",
    "noxfile.py": """
        import nox

        raise SystemExit("imported")

        @nox.session(python=["3.11", "3.12"], name="tests")
        def run_the_tests(session: nox.Session) -> None:
            session.run("pytest")

        @nox.session
        def docs(session):
            session.run("sphinx-build")
        """,
}


def test_django(tmp_path: Path) -> None:
    """Python with tox: its environments win over the tools' defaults; a formatter that only checks is not how one
    formats."""
    root = write_repo(tmp_path / "django", DJANGO)
    assert commands(root) == {
        "Django build": "python -m build",
        "Django test": "tox -e py3",
        "Django run": "django-admin",
        "Django lint": "tox -e flake8",
        "Django format": "black .",
    }
    assert reasons(root) == {
        "Django build": "pyproject.toml:1",
        "Django test": "tox.ini:2",
        "Django run": "pyproject.toml:12",
        "Django lint": "tox.ini:20",
        "Django format": "pyproject.toml:14",
    }


def test_uv_and_nox(tmp_path: Path) -> None:
    """A noxfile is read, not imported; tools run through the runner of the lock file."""
    assert commands(write_repo(tmp_path, PYTEST)) == {
        "httpx-like build": "uv build",
        "httpx-like test": "uv run nox -s tests",
        "httpx-like lint": "uv run ruff check .",
        "httpx-like format": "uv run ruff format .",
    }


def test_pnpm_workspace(tmp_path: Path) -> None:
    """A pnpm workspace: the manager is named at its top, npm's placeholder test and node_modules say nothing."""
    root = write_repo(tmp_path / "checkout", PNPM_WORKSPACE)
    assert commands(root) == {
        "monorepo build": "pnpm build",
        "monorepo test": "pnpm test",
        "monorepo run": "pnpm dev",
        "monorepo lint": "pnpm lint",
        "monorepo format": "pnpm format",
        "web build": "pnpm --dir apps/web build",
        "web run": "pnpm --dir apps/web dev",
        "web lint": "pnpm --dir apps/web lint",
        "ui build": "pnpm --dir packages/ui build",
        "ui test": "pnpm --dir packages/ui test",
    }
    assert reasons(root)["monorepo build"] == "package.json:11"
    assert reasons(root)["web lint"] == "apps/web/package.json:6"


def test_httpx(tmp_path: Path) -> None:
    """Scripts that the repo has for people, and its CI runs, come before what its pyproject.toml suggests."""
    root = write_repo(tmp_path / "checkout", HTTPX)
    assert commands(root) == {
        "httpx build": "scripts/build",
        "httpx test": "scripts/test",
        "httpx check": "scripts/check",
        "httpx lint": "scripts/lint",
        "httpx run": "httpx",
    }
    assert reasons(root)["httpx test"] == "scripts/test:1"
    assert [row.key for row in scan_repo(root).commands if row.is_guess] == ["run"]


def test_vite(tmp_path: Path) -> None:
    """Playgrounds, templates and fixtures are no packages to work on."""
    root = write_repo(tmp_path, VITE)
    assert commands(root) == {
        "vite-monorepo build": "pnpm build",
        "vite-monorepo test": "pnpm test",
        "vite-monorepo run": "pnpm dev",
        "vite-monorepo lint": "pnpm lint",
        "vite-monorepo format": "pnpm format",
        "create-vite build": "pnpm --dir packages/create-vite build",
        "plugin-legacy build": "pnpm --dir packages/plugin-legacy build",
        "vite build": "pnpm --dir packages/vite build",
        "vite run": "pnpm --dir packages/vite dev",
    }
    assert scan_repo(root).problems == []


def test_ripgrep(tmp_path: Path) -> None:
    """A Cargo workspace whose root is a package: its tests are all tests, a member is chosen with -p, any other by
    path."""
    assert commands(write_repo(tmp_path, RIPGREP)) == {
        "ripgrep build": "cargo build",
        "ripgrep test": "cargo test --workspace",
        "ripgrep run": "cargo run",
        "ripgrep lint": "cargo clippy --workspace",
        "ripgrep format": "cargo fmt --all",
        "globset build": "cargo build -p globset",
        "globset test": "cargo test -p globset",
        "globset lint": "cargo clippy -p globset",
        "globset format": "cargo fmt -p globset",
        "ignore build": "cargo build -p ignore",
        "ignore test": "cargo test -p ignore",
        "ignore lint": "cargo clippy -p ignore",
        "ignore format": "cargo fmt -p ignore",
        "fuzz build": "cargo build --manifest-path fuzz/Cargo.toml",
        "fuzz test": "cargo test --manifest-path fuzz/Cargo.toml",
        "fuzz run": "cargo run --manifest-path fuzz/Cargo.toml",
        "fuzz lint": "cargo clippy --manifest-path fuzz/Cargo.toml",
        "fuzz format": "cargo fmt --manifest-path fuzz/Cargo.toml",
    }


def test_kubernetes(tmp_path: Path) -> None:
    """Make wins over Go's defaults; help texts, variables, pattern rules and vendored modules are no targets."""
    root = write_repo(tmp_path / "src", KUBERNETES)
    assert commands(root) == {
        "kubernetes build": "make all",
        "kubernetes test": "make test",
        "kubernetes lint": "make vet",
        "kubernetes format": "go fmt ./...",
        "kubectl build": "go -C staging/src/k8s.io/kubectl build ./...",
        "kubectl test": "go -C staging/src/k8s.io/kubectl test ./...",
        "kubectl lint": "go -C staging/src/k8s.io/kubectl vet ./...",
        "kubectl format": "go -C staging/src/k8s.io/kubectl fmt ./...",
    }
    assert reasons(root)["kubernetes build"] == "Makefile:20"
    assert reasons(root)["kubernetes test"] == "Makefile:28"
    assert reasons(root)["kubernetes format"] == "go.mod:3"


def test_petclinic(tmp_path: Path) -> None:
    """Maven and Gradle side by side are one component; the wrapper is typed; a database in compose does not run the
    service."""
    root = write_repo(tmp_path, PETCLINIC)
    assert commands(root) == {
        "spring-petclinic build": "./mvnw package",
        "spring-petclinic test": "./mvnw test",
        "spring-petclinic run": "./mvnw spring-boot:run",
        "spring-petclinic lint": "./mvnw checkstyle:check",
        "spring-petclinic format": "./mvnw spring-javaformat:apply",
    }
    (root / "pom.xml").unlink()
    assert commands(root) == {
        "spring-petclinic build": "./gradlew build",
        "spring-petclinic test": "./gradlew test",
        "spring-petclinic run": "./gradlew bootRun",
    }


def test_compose_project(tmp_path: Path) -> None:
    """The whole and each service that is built here; a package's own script says better how to run it."""
    root = write_repo(tmp_path / "voting-app", VOTING_APP)
    assert commands(root) == {
        "voting-app build": "docker compose build",
        "voting-app run": "docker compose up",
        "vote build": "docker compose build vote",
        "vote run": "docker compose up vote",
        "result build": "docker compose build result",
        "result run": "npm --prefix result start",
    }
    assert reasons(root)["vote run"] == "docker-compose.yml:3"
