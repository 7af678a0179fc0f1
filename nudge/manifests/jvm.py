"""Maven (pom.xml) and Gradle, called through the wrapper where the repo has one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from nudge.manifests.commands import Claim, Rank, is_plain_word, quote_path, run_in
from nudge.manifests.formats import line_of
from nudge.manifests.tree import Directory

_POM = "pom.xml"
_POM_ELEMENTS = {
    ("project", "artifactId"): "name",
    ("project", "modules", "module"): "modules",
    ("project", "build", "plugins", "plugin", "artifactId"): "plugins",
    ("project", "build", "pluginManagement", "plugins", "plugin", "artifactId"): "plugins",
}
_POM_DEPTH = max(map(len, _POM_ELEMENTS))
_MAVEN_PLUGINS = {
    "spring-boot-maven-plugin": {"run": "spring-boot:run"},
    "quarkus-maven-plugin": {"run": "quarkus:dev"},
    "maven-checkstyle-plugin": {"lint": "checkstyle:check"},
    "spotless-maven-plugin": {"lint": "spotless:check", "format": "spotless:apply"},
    "spring-javaformat-maven-plugin": {"format": "spring-javaformat:apply"},
    "fmt-maven-plugin": {"format": "fmt:format"},
    "formatter-maven-plugin": {"format": "formatter:format"},
}

_GRADLE_BUILDS = ("build.gradle", "build.gradle.kts")
_GRADLE_SETTINGS = ("settings.gradle", "settings.gradle.kts")
_GRADLE_NAME = re.compile(r"""^[ \t]*rootProject\.name[ \t]*=[ \t]*["'](?P<name>[^"'\n]+)["']""", re.MULTILINE)
_GRADLE_INCLUDE = re.compile(r"^[ \t]*include\b(?P<projects>(?:[^\n]*[,(][ \t]*\n)*[^\n]*)", re.MULTILINE)
_GRADLE_PROJECT = re.compile(r"""["']:?([\w:./-]+)["']""")
_GRADLE_PLUGIN_LINE = re.compile(r"[ \t]*plugins[ \t]*\{(?P<plugins>[^{}]*)\}")
# The id of a plugin as the build script spells it, in Groovy or Kotlin.
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


def maven_project_name(directory: Directory) -> str | None:
    pom = _pom(directory)
    return pom.name if pom and is_plain_word(pom.name) else None


def read_maven(directory: Directory) -> Iterator[Claim]:
    pom = _pom(directory)
    if pom is None:
        return
    line = line_of(directory.read(_POM) or "", r"<project\b")
    goals = {"build": ("package", line), "test": ("test", line)}
    for plugin in sorted(pom.plugins.keys() & _MAVEN_PLUGINS.keys()):
        for job, goal in _MAVEN_PLUGINS[plugin].items():
            goals.setdefault(job, (goal, pom.plugins[plugin]))
    path, name = directory.path(_POM), maven_project_name(directory)
    for job, (goal, line) in goals.items():
        yield Claim(job, _maven_command(directory, job, goal), Rank.LANGUAGE, directory.rel, path, line, name)


def _maven_command(directory: Directory, job: str, goal: str) -> str:
    root = _maven_aggregator(directory)
    if root is not None:
        module = quote_path(directory.below(root))
        # Its sibling modules have to be built with it, but only the module itself can be run.
        siblings = "" if job == "run" else " -am"
        return run_in(root.rel, f"{_maven_program(root)} -pl {module}{siblings} {goal}")
    if directory.rel and "mvnw" not in directory.files:
        return f"mvn -f {quote_path(directory.path(_POM))} {goal}"
    return run_in(directory.rel, f"{_maven_program(directory)} {goal}")


def _maven_program(directory: Directory) -> str:
    return "./mvnw" if "mvnw" in directory.files else "mvn"


def _maven_aggregator(directory: Directory) -> Directory | None:
    """Return the topmost directory from which a chain of `<modules>` leads here."""
    top, child = None, directory
    for ancestor in directory.with_parents():
        pom = _pom(ancestor)
        if ancestor is not directory and pom is not None:
            modules = [module.removeprefix("./").rstrip("/") for module in pom.modules]
            if child.below(ancestor) in modules:
                top = child = ancestor
    return top


@dataclass(slots=True)
class Pom:
    """The parts of a pom.xml that commands depend on; each plugin's artifactId with its line."""

    name: str | None = None
    modules: list[str] = field(default_factory=list)
    plugins: dict[str, int] = field(default_factory=dict)


def _pom(directory: Directory) -> Pom | None:
    pom = directory.parse(_POM, _parse_pom)
    return pom if isinstance(pom, Pom) else None


def _parse_pom(text: str) -> Pom:
    return _PomReader().read(text)


class _PomReader:
    """Reads XML as a stream and refuses entities, which could expand without bound."""

    def __init__(self) -> None:
        self._pom = Pom()
        self._path: list[str] = []
        self._depth = 0
        self._text: list[str] = []
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.CharacterDataHandler = self._text.append
        self._parser.EndElementHandler = self._end

    def read(self, text: str) -> Pom:
        try:
            # As text: it is decoded already, so the encoding in the XML declaration does not apply.
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            raise ValueError(str(error)) from None
        return self._pom

    def _refuse_doctype(self, *_: object) -> None:
        # A pom has no document type, and entities can be declared nowhere else.
        raise ValueError("document type declarations are not supported")

    def _start(self, tag: str, _: object) -> None:
        self._depth += 1
        if self._depth <= _POM_DEPTH:
            self._path.append(tag)
        self._text.clear()

    def _end(self, _: str) -> None:
        if self._depth <= _POM_DEPTH:
            self._store("".join(self._text).strip())
            self._path.pop()
        self._depth -= 1
        self._text.clear()

    def _store(self, value: str) -> None:
        element = _POM_ELEMENTS.get(tuple(self._path))
        if element == "name":
            self._pom.name = value
        elif element == "modules":
            self._pom.modules.append(value)
        elif element == "plugins":
            self._pom.plugins.setdefault(value, self._parser.CurrentLineNumber)


def gradle_project_name(directory: Directory) -> str | None:
    match = _GRADLE_NAME.search(_gradle_settings(directory))
    return match["name"] if match else None


def read_gradle(directory: Directory) -> Iterator[Claim]:
    file = directory.first_file(*_GRADLE_BUILDS, *_GRADLE_SETTINGS)
    text = directory.read(file) if file else None
    if file is None or text is None:
        return
    root, path = _gradle_root(directory), directory.path(file)
    name = gradle_project_name(directory) if root is directory else None
    for job, (task, line) in _gradle_tasks(text).items():
        yield Claim(job, _gradle_command(directory, root, task), Rank.LANGUAGE, directory.rel, path, line, name)


def _gradle_settings(directory: Directory) -> str:
    file = directory.first_file(*_GRADLE_SETTINGS)
    return (directory.read(file) or "") if file else ""


def _gradle_tasks(text: str) -> dict[str, tuple[str, int]]:
    tasks = {"build": ("build", 1), "test": ("test", 1)}
    for number, line in enumerate(text.split("\n"), 1):
        one_line_block = _GRADLE_PLUGIN_LINE.match(line)
        for statement in one_line_block["plugins"].split(";") if one_line_block else [line]:
            # `apply false` declares a plugin for the subprojects only.
            if "apply false" in statement or statement.lstrip().startswith("//"):
                continue
            for plugin, plugin_tasks in _GRADLE_PLUGINS.items():
                if plugin.search(statement):
                    for job, task in plugin_tasks.items():
                        tasks.setdefault(job, (task, number))
    return tasks


def _gradle_command(directory: Directory, root: Directory, task: str) -> str:
    program = quote_path(root.path("gradlew")) if "gradlew" in root.files else "gradle"
    program = f"./{program}" if program == "gradlew" else program
    option = f" -p {quote_path(root.rel)}" if root.rel else ""
    project = directory.below(root).replace("/", ":")
    return f"{program}{option} {quote_path(f':{project}:{task}') if project else task}"


def _gradle_root(directory: Directory) -> Directory:
    """Return the directory above whose settings include this one, or the directory itself."""
    for ancestor in directory.with_parents():
        includes = _GRADLE_INCLUDE.finditer(_gradle_settings(ancestor))
        projects = {name for match in includes for name in _GRADLE_PROJECT.findall(match["projects"])}
        if ancestor is not directory and directory.below(ancestor).replace("/", ":") in projects:
            return ancestor
    return directory
