"""Canonical values of attributes, and the text that identifies a group."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TypeAlias

import orjson

Scalar: TypeAlias = bool | int | float | str | None

_EXACT = 2**53


def canonical(value: object) -> Scalar:
    """Return an attribute's value in canonical form: whole numbers are ``int``, and NaN, lists and objects are null."""
    if isinstance(value, float):
        if isnan(value):
            return None
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    return value if isinstance(value, bool | int | str) else None


def key_of(value: Scalar) -> object:
    """Return a canonical value as a dictionary key. ``True`` and 1, equal in Python, get different keys."""
    return (value,) if isinstance(value, bool) else value


def group_text(group: Sequence[Scalar]) -> str:
    """Return the canonical text of a group, given by its ``by`` values. It identifies and orders groups.

    The numbers 1 and 1.0 are the same.
    """
    return orjson.dumps([canonical(part) for part in group]).decode()
