"""Operators in the log: a named, versioned definition of some kind that listens to inputs.

``shards.operators`` runs them in a shard; ``shards.kinds`` lists the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Input:
    """A stream as input of an operator, by a further key; empty: by the correlation key."""

    stream: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One version of an operator, counted from 1 for each name and never repeated; its kind reads the body."""

    kind: str
    name: str
    version: int
    inputs: tuple[Input, ...]
    body: Mapping[str, Any]
