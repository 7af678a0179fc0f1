"""Which notes are told for a file."""

from __future__ import annotations

from nudge.telling.file import Candidate, choose, possible_names


def test_a_text_names_a_file_by_its_path_or_its_end() -> None:
    """The name alone says nothing where every directory has such a file."""
    assert possible_names("src/tax/vat.ts") == ["src/tax/vat.ts", "tax/vat.ts", "vat.ts"]
    assert possible_names("src/tax/index.ts") == ["src/tax/index.ts", "tax/index.ts"]
    assert possible_names("README.md") == ["README.md"]
    assert possible_names("web/package.json") == ["web/package.json"]


def test_given_files_come_before_named_ones_and_new_notes_before_old_ones() -> None:
    """A note that was found twice counts once, as the stronger of both."""
    found = [
        Candidate(1, is_given=True, updated_at=1.0),
        Candidate(2, is_given=False, updated_at=9.0),
        Candidate(3, is_given=False, updated_at=2.0),
        Candidate(3, is_given=True, updated_at=2.0),
    ]
    assert choose(found, 2) == [3, 1] and choose(found, 3) == [3, 1, 2] and choose([], 2) == []
