"""Formatting of external values for messages."""

from __future__ import annotations

from reprlib import Repr


def shown(value: object) -> str:
    """Return a value's Python representation, cut to a readable length and depth."""
    writer = Repr()
    writer.maxlevel = 2
    writer.maxstring = writer.maxother = 60
    return writer.repr(value)
