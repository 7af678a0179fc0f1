"""Cargo, Go, Maven and Gradle: roots, members of workspaces and strangers below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .planting import plant, planted, reasons


def test_virtual_cargo_workspace(tmp_path: Path) -> None:
    """Members by pattern, not by reach; an excluded crate and one with a workspace of its own stand alone."""
    found = planted(
        tmp_path / "repo",
        {
            "rust/Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nexclude = ["crates/wasm"]\n',
            "rust/crates/core/Cargo.toml": '[package]\nname = "core"\n',
            "rust/crates/core/src/main.rs": "",
            "rust/crates/wasm/Cargo.toml": '[package]\nname = "wasm"\n',
            "rust/crates/core/fuzz/Cargo.toml": '[package]\nname = "core-fuzz"\n[workspace]\n',
        },
    )
    assert found["rust test"] == "cargo test --manifest-path rust/Cargo.toml --workspace"
    assert found["core test"] == "cargo test --manifest-path rust/Cargo.toml -p core"
    assert found["core run"] == "cargo run --manifest-path rust/Cargo.toml -p core"
    assert found["wasm test"] == "cargo test --manifest-path rust/crates/wasm/Cargo.toml"
    assert found["core-fuzz build"] == "cargo build --manifest-path rust/crates/core/fuzz/Cargo.toml"
    assert "wasm run" not in found


@pytest.mark.parametrize(
    ("manifest", "runs"),
    [
        ('[[bin]]\nname = "a"\n', True),
        ('[[bin]]\nname = "a"\n[[bin]]\nname = "b"\n', False),
        ('default-run = "a"\n[[bin]]\nname = "a"\n[[bin]]\nname = "b"\n', True),
        ("", False),
    ],
)
def test_cargo_run(tmp_path: Path, manifest: str, runs: bool) -> None:
    """`cargo run` is only given where cargo would know which program."""
    assert ("x run" in planted(tmp_path, {"Cargo.toml": f'[package]\nname = "x"\n{manifest}'})) is runs


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"main.go": ""}, {"svc run": "go run ."}),
        ({"cmd/server/main.go": ""}, {"svc run": "go run ./cmd/server"}),
        ({"cmd/a/main.go": "", "cmd/b/main.go": ""}, {}),
        ({".golangci.yml": ""}, {"svc lint": "golangci-lint run"}),
    ],
)
def test_go(tmp_path: Path, files: dict[str, str], expected: dict[str, str]) -> None:
    """The module's name without its major version; the one program; the linter that is configured."""
    usual = {
        "svc build": "go build ./...",
        "svc test": "go test ./...",
        "svc lint": "go vet ./...",
        "svc format": "go fmt ./...",
    }
    assert planted(tmp_path, {"go.mod": "module example.com/acme/svc/v2\n", **files}) == usual | expected


def _pom(name: str, inner: str = "") -> str:
    return f"<project><artifactId>{name}</artifactId>{inner}</project>"


def test_maven_modules(tmp_path: Path) -> None:
    """A module is built with its siblings and run alone; a pom of its own is named, or entered where it has a
    wrapper."""
    boot = "<build><plugins><plugin><artifactId>spring-boot-maven-plugin</artifactId></plugin></plugins></build>"
    found = planted(
        tmp_path,
        {
            "pom.xml": _pom("parent", "<modules><module>services</module></modules>"),
            "mvnw": "",
            "services/pom.xml": _pom("services", "<modules><module>api</module></modules>"),
            "services/api/pom.xml": _pom("api", boot),
            "tools/pom.xml": _pom("tools"),
            "legacy/pom.xml": _pom("${name}"),
            "legacy/mvnw": "",
        },
    )
    assert found["parent test"] == "./mvnw test"
    assert found["api test"] == "./mvnw -pl services/api -am test"
    assert found["api run"] == "./mvnw -pl services/api spring-boot:run"
    assert found["tools build"] == "mvn -f tools/pom.xml package"
    assert found["legacy test"] == "cd legacy && ./mvnw test"


@pytest.mark.parametrize(
    ("build", "runs"),
    [
        ("plugins { application; id('java') }", True),
        ("plugins { java; application }", True),
        ("plugins { id 'java'; id 'application' }", True),
        ("plugins { application }", True),
        ("plugins { id 'application' apply false; id 'java' }", False),
        ("plugins { java }", False),
        ("subprojects { apply plugin: 'application' }", False),
    ],
)
def test_gradle_plugins_on_one_line(tmp_path: Path, build: str, runs: bool) -> None:
    """As short build scripts have them."""
    assert (planted(tmp_path / "x", {"build.gradle": build}).get("x run") == "gradle run") is runs


def test_gradle_projects(tmp_path: Path) -> None:
    """Included projects are tasks of the root; a plugin that is only named for them does not count for it."""
    root = plant(
        tmp_path / "x",
        {
            "settings.gradle.kts": 'rootProject.name = "shop"\ninclude(\n    "app",\n    ":libs:core",\n)\n',
            "build.gradle.kts": """
                plugins {
                    id("org.springframework.boot") version "3.4.0" apply false
                    id("com.diffplug.spotless")
                }
                """,
            "gradlew": "",
            "app/build.gradle.kts": "plugins {\n    application\n}\n",
            "libs/core/build.gradle": "apply plugin: 'java'\n",
            "tools/build.gradle": "// id 'application'\n",
            "other/build.gradle": "plugins { id 'checkstyle' }\n",
            "other/gradlew": "",
        },
    )
    found = planted(root, {})
    assert found["shop test"] == "./gradlew test"
    assert found["shop lint"] == "./gradlew spotlessCheck"
    assert found["shop format"] == "./gradlew spotlessApply"
    assert "shop run" not in found
    assert found["app run"] == "./gradlew :app:run"
    assert found["core test"] == "./gradlew :libs:core:test"
    assert found["tools build"] == "gradle -p tools build"
    assert found["other test"] == "other/gradlew -p other test"
    assert found["other lint"] == "other/gradlew -p other checkstyleMain"
    assert reasons(root)["app run"] == "app/build.gradle.kts:2"
