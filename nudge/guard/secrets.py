from __future__ import annotations
def find_secret(text: str) -> str | None:
    return None
def redact(text: str) -> str:
    return text
