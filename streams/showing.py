"""How values from outside appear in messages."""

from __future__ import annotations

from reprlib import Repr


def shown(value: object) -> str:
    """A value as Python would write it, cut to a readable length and depth."""
    writer = Repr()
    writer.maxlevel = 2
    writer.maxstring = writer.maxother = 60
    return writer.repr(value)
