"""What stands in the client's own file, and what only looks like it."""

from __future__ import annotations

import pytest

from nudge.telling.own_file import OwnFile

FILE = OwnFile(
    """# shop

Build with `cmake --build --preset dev`; run npm run lint before a commit. We like pytest.

```sh
$ docker compose up -d db && bin/test --fast   # the tests need it
```

    go vet ./...

* Prices are integers of cents.
"""
)


@pytest.mark.parametrize(
    "command",
    [
        "cmake --build --preset dev",
        "cmake --build …",
        "npm run lint",
        "docker compose up -d db",
        "bin/test",
        "bin/test …",
        "go vet ./...",
    ],
)
def test_a_command_stands_in_the_file(command: str) -> None:
    assert FILE.has_command(command)


@pytest.mark.parametrize("command", ["pytest", "cmake --build --preset debug", "npm run lint:fix", "bin/tes", "", None])
def test_the_name_of_a_program_in_a_sentence_or_another_command_does_not(command: str | None) -> None:
    assert not FILE.has_command(command)


def test_a_title_of_several_words_stands_in_the_file() -> None:
    assert FILE.has_sentence("prices are integers of cents")
    assert not FILE.has_sentence("Prices are floats")
    assert not FILE.has_sentence("shop")


def test_without_a_file_nothing_stands_in_it() -> None:
    assert not OwnFile().has_command("make test") and not OwnFile().has_sentence("a b c")
