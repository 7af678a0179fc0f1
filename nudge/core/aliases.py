"""Other names of parameters: agents call a parameter by the name that it has in a sibling tool. They are accepted and
stand in no schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from nudge.core.errors import Invalid

ALIASES: Mapping[str, tuple[str, ...]] = {
    "query": ("text", "q"),
    "text": ("query", "q"),
    "context": ("query", "text", "q"),  # of memory_recall, where it is the words; nowhere an alias itself
    "file_path": ("path", "file"),
    "status": ("outcome",),
    "outcome": ("status",),
}


def with_own_names(model: type[BaseModel], params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters under the names of the model. Raises Invalid when one is given under two names."""
    fields = model.model_fields
    renamed = params
    for name, aliases in ALIASES.items():
        if name not in fields or (name == "context" and fields[name].annotation is not str):
            continue
        given = [alias for alias in aliases if alias in params and alias not in fields]
        if not given:
            continue
        if len(given) > 1 or name in params:
            raise Invalid(f"is another name of {name}: give one of them", field=given[-1])
        renamed = {name if key == given[0] else key: value for key, value in renamed.items()}
    return renamed
