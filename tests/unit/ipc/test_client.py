from __future__ import annotations

from typing import Any

import pytest

from nudge.errors import Invalid
from nudge.ipc.client import Client

BAD = "a\udcff"  # as Python has a byte of the command line that is no UTF-8


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"component": "a", "key": BAD}, "key"),
        ({"value": {"type": "command", "cmd": BAD}}, "value.cmd"),
        ({"meta": {"tags": ["é", BAD]}}, "meta.tags[1]"),
        ({"value": {"type": "template", "defaults": {"x": "y", BAD: "z"}}}, "value.defaults"),
        ({"value": {"type": "json", "data": [1, None, {"x": [BAD]}]}}, "value.data[2].x[0]"),
    ],
)
def test_what_is_no_text_is_refused_by_its_field(params: dict[str, Any], field: str) -> None:
    """Before anything is started or sent: no server could take it, nor say which of the words it was."""
    with pytest.raises(Invalid, match="is not text in UTF-8") as refused:
        Client(environ={"NUDGE_RUNTIME_DIR": "/nowhere"}).call("nudge.set_hint", params)
    assert refused.value.field == field
