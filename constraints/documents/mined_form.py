"""A document's description of the log from which its constraints were mined; kept unchanged, for people and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constraints.documents.name_form import shown
from constraints.documents.source import Bare, Path

MINED_KEY = "mined"


def read_mined(value: object, problems: list[tuple[Path, str]]) -> Mapping[str, Any] | None:
    """The member ``mined`` of a document as plain JSON values, None if missing; problems are added to ``problems``."""
    if not isinstance(value, Mapping) or MINED_KEY not in value:
        return None
    given = value[MINED_KEY]
    if not isinstance(given, Mapping):
        problems.append(((MINED_KEY,), f"mined is a mapping that says where the set comes from; got {shown(given)}"))
        return None
    return {str(key): _plain(item) for key, item in given.items()}


def _plain(value: object) -> object:
    """A value of a text in JSON's types: YAML's bare numbers and words are converted."""
    if isinstance(value, Bare):
        return _scalar(value.written)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _scalar(written: str) -> object:
    words = {"true": True, "false": False, "null": None, "~": None, "": None}
    if written.lower() in words:
        return words[written.lower()]
    for read in (int, float):
        try:
            return read(written)
        except ValueError:
            continue
    return written
