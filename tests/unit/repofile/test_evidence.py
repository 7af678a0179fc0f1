"""What a hint rests on: a file, or one section of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nudge.repofile.evidence import GONE, digest, section_of, stale_reason

TEXT = """# Development
intro
## Running the tests ##
make test
```sh
# Running the tests
```
### In a container
docker
## Releasing: how?
tag it
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("running-the-tests", "make test\n```sh\n# Running the tests\n```\n### In a container\ndocker"),
        ("Running the tests", "make test\n```sh\n# Running the tests\n```\n### In a container\ndocker"),
        ("in-a-container", "docker"),
        ("releasing-how", "tag it"),
        ("nothing", None),
    ],
)
def test_a_section_ends_at_the_next_heading_of_its_level(name: str, expected: str | None) -> None:
    """By its anchor or its words; what looks like a heading in a block of code is none."""
    found = section_of(TEXT, name)
    assert (found and found.partition("\n")[2]) == expected


def test_a_section_of_toml() -> None:
    assert section_of("[a]\nx = 1\n[tool.pytest]\ny = 2\n[b]\n", "tool.pytest") == "[tool.pytest]\ny = 2"


def test_only_a_change_of_the_section_counts(tmp_path: Path) -> None:
    file = tmp_path / "dev.md"
    file.write_text(TEXT)
    known = digest(str(tmp_path), "dev.md#running-the-tests")
    assert stale_reason(str(tmp_path), "dev.md#running-the-tests", known) is None
    file.write_text(TEXT.replace("intro", "other").replace("tag it", "push"))
    assert stale_reason(str(tmp_path), "dev.md#running-the-tests", known) is None
    file.write_text(TEXT.replace("make test", "make check"))
    assert "changed since it was trusted" in str(stale_reason(str(tmp_path), "dev.md#running-the-tests", known))
    file.write_text("# Development\n")
    assert "is not here" in str(stale_reason(str(tmp_path), "dev.md#running-the-tests", known))


def test_what_leads_out_of_the_clone_is_not_there(tmp_path: Path) -> None:
    root = tmp_path / "api"
    root.mkdir()
    (tmp_path / "secret").write_text("x")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").mkdir()
    assert [digest(str(root), name) for name in ("link", "folder", "nowhere")] == [GONE] * 3
