"""INI files as tox and setuptools write them: sections with their lines, values as they stand."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Section:
    line: int
    values: dict[str, list[str]] = field(default_factory=dict)  # each with the lines it goes on in

    def get(self, key: str) -> str:
        return "\n".join(self.values.get(key, ()))


def parse_ini(text: str) -> dict[str, Section]:
    """A section that comes twice goes on where it stopped; a value may go on in indented lines."""
    sections: dict[str, Section] = {}
    current, value = Section(0), list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith(("#", ";")):
            continue
        if line.startswith("["):
            current = sections.setdefault(content[1:].partition("]")[0], Section(number))
        elif line[0].isspace():
            value.append(content)
        else:
            key, _, first = content.partition("=")
            value = current.values[key.strip()] = [first.strip()]
    return sections
