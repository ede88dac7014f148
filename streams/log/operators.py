"""What an operator is to the log: a named, versioned definition of some kind that listens to inputs.

What runs it in a shard is ``shards.operators``; what kinds exist is said by ``shards.kinds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Input:
    """One stream as an operator listens to it.

    Attributes:
        stream: Its name.
        key: Name of the further key by which its events come; empty for the correlation key.
    """

    stream: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One version of an operator.

    Attributes:
        kind: Which kind of operator: ``pattern``, ``join``, ….
        name: Distinct among the operators of a kind.
        version: Counts from 1 for each name and never repeats.
        inputs: What it listens to, at least one.
        body: What the kind reads, as plain JSON.
    """

    kind: str
    name: str
    version: int
    inputs: tuple[Input, ...]
    body: Mapping[str, Any]
