"""Maven and Gradle, through the wrapper where the repo has one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nudge.manifests.model import Claim, Rank
from nudge.manifests.pom import Pom, parse_pom
from nudge.manifests.shell import argument, is_plain_word, within
from nudge.manifests.tree import Place, line_of

_POM = "pom.xml"
_BUILDS = ("build.gradle", "build.gradle.kts")
_SETTINGS = ("settings.gradle", "settings.gradle.kts")
_PROJECT_NAME = re.compile(r"""^[ \t]*rootProject\.name[ \t]*=[ \t]*["'](?P<name>[^"'\n]+)["']""", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*include\b(?P<projects>(?:[^\n]*[,(][ \t]*\n)*[^\n]*)", re.MULTILINE)
_ALL_PLUGINS = re.compile(r"[ \t]*plugins[ \t]*\{(?P<plugins>[^{}]*)\}")
_QUOTED = re.compile(r"""["']:?([\w:./-]+)["']""")

_MAVEN_PLUGINS = {
    "spring-boot-maven-plugin": {"run": "spring-boot:run"},
    "quarkus-maven-plugin": {"run": "quarkus:dev"},
    "maven-checkstyle-plugin": {"lint": "checkstyle:check"},
    "spotless-maven-plugin": {"lint": "spotless:check", "format": "spotless:apply"},
    "spring-javaformat-maven-plugin": {"format": "spring-javaformat:apply"},
    "fmt-maven-plugin": {"format": "fmt:format"},
    "formatter-maven-plugin": {"format": "formatter:format"},
}
# A plugin's id as the build script spells it, in either language.
_GRADLE_PLUGINS = {
    re.compile(pattern): tasks
    for pattern, tasks in {
        r"""["']org\.springframework\.boot["']""": {"run": "bootRun"},
        r"""["']io\.quarkus["']""": {"run": "quarkusDev"},
        r"""^\s*(?:id[ (]*["']application["']|application\s*$|apply plugin:\s*["']application["'])""": {"run": "run"},
        r"""["']com\.diffplug\.spotless["']""": {"lint": "spotlessCheck", "format": "spotlessApply"},
        r"""["']org\.jlleitschuh\.gradle\.ktlint["']""": {"lint": "ktlintCheck", "format": "ktlintFormat"},
        r"""["']io\.gitlab\.arturbosch\.detekt["']""": {"lint": "detekt"},
        r"""^\s*(?:id[ (]*["']checkstyle["']|checkstyle\s*$)""": {"lint": "checkstyleMain"},
        r"""["']io\.spring\.javaformat["']""": {"format": "format"},
    }.items()
}


def maven_name(place: Place) -> str | None:
    pom = _pom(place)
    return pom.name if pom and is_plain_word(pom.name) else None


def gradle_name(place: Place) -> str | None:
    settings = place.first(*_SETTINGS)
    match = _PROJECT_NAME.search(place.text(settings) or "") if settings else None
    return match["name"] if match else None


def read_maven(place: Place) -> Iterator[Claim]:
    pom = _pom(place)
    if pom is None:
        return
    line = line_of(place.text(_POM) or "", r"<project\b")
    goals = {"build": ("package", line), "test": ("test", line)}
    for plugin in sorted(pom.plugins.keys() & _MAVEN_PLUGINS.keys()):
        for key, goal in _MAVEN_PLUGINS[plugin].items():
            goals.setdefault(key, (goal, pom.plugins[plugin]))
    for key, (goal, where) in goals.items():
        yield Claim(key, _maven(place, key, goal), Rank.LANGUAGE, place.rel, place.path(_POM), where, maven_name(place))


def _maven(place: Place, key: str, goal: str) -> str:
    top = _aggregator_of(place)
    if top is not None:
        module = argument(place.rel[len(top.rel) :].lstrip("/"))
        # Its sibling modules have to be built with it, but only it can be run.
        others = "" if key == "run" else " -am"
        return within(top.rel, f"{_maven_program(top)} -pl {module}{others} {goal}")
    if place.rel and "mvnw" not in place.files:
        return f"mvn -f {argument(place.path(_POM))} {goal}"
    return within(place.rel, f"{_maven_program(place)} {goal}")


def _maven_program(place: Place) -> str:
    return "./mvnw" if "mvnw" in place.files else "mvn"


def _aggregator_of(place: Place) -> Place | None:
    """The topmost directory from which a chain of `<modules>` leads here."""
    found, below = None, place
    for above in place.upwards():
        pom = _pom(above)
        if above is place or pom is None:
            continue
        inner = below.rel[len(above.rel) :].lstrip("/")
        if any(module.removeprefix("./").rstrip("/") == inner for module in pom.modules):
            found = below = above
    return found


def _pom(place: Place) -> Pom | None:
    pom = place.parsed(_POM, parse_pom)
    return pom if isinstance(pom, Pom) else None


def read_gradle(place: Place) -> Iterator[Claim]:
    file = place.first(*_BUILDS) or place.first(*_SETTINGS)
    text = place.text(file) if file else None
    if file is None or text is None:
        return
    top = _gradle_root_of(place)
    name = gradle_name(place) if top is place else None
    for key, (task, line) in _gradle_tasks(text).items():
        yield Claim(key, _gradle(place, top, task), Rank.LANGUAGE, place.rel, place.path(file), line, name)


def _gradle_tasks(text: str) -> dict[str, tuple[str, int]]:
    tasks = {"build": ("build", 1), "test": ("test", 1)}
    for number, line in enumerate(text.split("\n"), 1):
        for statement in _statements(line):
            if "apply false" in statement or statement.lstrip().startswith(
                "//"
            ):  # named for subprojects, or not at all
                continue
            for given in (tasks_of for plugin, tasks_of in _GRADLE_PLUGINS.items() if plugin.search(statement)):
                for key, task in given.items():
                    tasks.setdefault(key, (task, number))
    return tasks


def _statements(line: str) -> list[str]:
    """The line itself, unless it lists all plugins at once."""
    listed = _ALL_PLUGINS.match(line)
    return listed["plugins"].split(";") if listed else [line]


def _gradle(place: Place, top: Place, task: str) -> str:
    program = argument(top.path("gradlew")) if "gradlew" in top.files else "gradle"
    program = f"./{program}" if program == "gradlew" else program
    switch = f" -p {argument(top.rel)}" if top.rel else ""
    inner = place.rel[len(top.rel) :].strip("/").replace("/", ":")
    return f"{program}{switch} {argument(f':{inner}:{task}') if inner else task}"


def _gradle_root_of(place: Place) -> Place:
    """The directory whose settings include this one; itself when none does."""
    for above in place.upwards():
        inner = place.rel[len(above.rel) :].strip("/").replace("/", ":")
        if above is not place and inner in _included(above):
            return above
    return place


def _included(place: Place) -> set[str]:
    settings = place.first(*_SETTINGS)
    text = place.text(settings) or "" if settings else ""
    return {name for match in _INCLUDE.finditer(text) for name in _QUOTED.findall(match["projects"])}
