"""What a pom.xml says about itself, read as a stream that refuses entities."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

_COLLECTED = {
    ("project", "artifactId"): "name",
    ("project", "modules", "module"): "modules",
    ("project", "build", "plugins", "plugin", "artifactId"): "plugins",
    ("project", "build", "pluginManagement", "plugins", "plugin", "artifactId"): "plugins",
}
_DEEPEST = max(map(len, _COLLECTED))


@dataclass(slots=True)
class Pom:
    name: str | None = None
    modules: list[str] = field(default_factory=list)
    plugins: dict[str, int] = field(default_factory=dict)  # artifactId -> line


def parse_pom(text: str) -> Pom:
    return _Reader().read(text)


class _Reader:
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
            # As text, whatever encoding the declaration names: it was decoded on the way here.
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            raise ValueError(str(error)) from None
        return self._pom

    def _refuse_doctype(self, *_: object) -> None:
        # No pom has one; entities, which could grow without bound, can be declared nowhere else.
        raise ValueError("document type declarations are not read")

    def _start(self, tag: str, _: object) -> None:
        self._depth += 1
        if self._depth <= _DEEPEST:
            self._path.append(tag)
        self._text.clear()

    def _end(self, _: str) -> None:
        if self._depth <= _DEEPEST:
            self._keep("".join(self._text).strip())
            self._path.pop()
        self._depth -= 1
        self._text.clear()

    def _keep(self, value: str) -> None:
        what = _COLLECTED.get(tuple(self._path))
        if what == "name":
            self._pom.name = value
        elif what == "modules":
            self._pom.modules.append(value)
        elif what == "plugins":
            self._pom.plugins.setdefault(value, self._parser.CurrentLineNumber)
