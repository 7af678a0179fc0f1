"""Maven and Gradle: roots, modules and separate projects below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.manifests.repos import commands, reasons, write_repo


def _pom(name: str, inner: str = "") -> str:
    return f"<project><artifactId>{name}</artifactId>{inner}</project>"


def test_maven_modules(tmp_path: Path) -> None:
    """A module is built with its siblings and run alone; a pom of its own is named, or entered where it has a
    wrapper."""
    boot = "<build><plugins><plugin><artifactId>spring-boot-maven-plugin</artifactId></plugin></plugins></build>"
    result = commands(
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
    assert result["parent test"] == "./mvnw test"
    assert result["api test"] == "./mvnw -pl services/api -am test"
    assert result["api run"] == "./mvnw -pl services/api spring-boot:run"
    assert result["tools build"] == "mvn -f tools/pom.xml package"
    assert result["legacy test"] == "cd legacy && ./mvnw test"


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
    assert (commands(tmp_path / "x", {"build.gradle": build}).get("x run") == "gradle run") is runs


def test_gradle_projects(tmp_path: Path) -> None:
    """Included projects are tasks of the root; a plugin that is only named for them does not count for it."""
    root = write_repo(
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
    result = commands(root)
    assert result["shop test"] == "./gradlew test"
    assert result["shop lint"] == "./gradlew spotlessCheck"
    assert result["shop format"] == "./gradlew spotlessApply"
    assert "shop run" not in result
    assert result["app run"] == "./gradlew :app:run"
    assert result["core test"] == "./gradlew :libs:core:test"
    assert result["tools build"] == "gradle -p tools build"
    assert result["other test"] == "other/gradlew -p other test"
    assert result["other lint"] == "other/gradlew -p other checkstyleMain"
    assert reasons(root)["app run"] == "app/build.gradle.kts:2"
