"""The worked examples of ``docs/semantics.md`` as values: pattern, trace and expected result.

A line is ``name | pattern after EVENT | trace | matches``, with options after a last bar. ``B3`` is an event of type B
at 3 s and its own id, ``B2'`` another at the same time, ``A1:5`` has the attribute ``v`` = 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from streams import Event

Ids: TypeAlias = Mapping[str, tuple[str, ...]]

_SECOND_US = 1_000_000
_EVENT = re.compile(r"([A-Za-z_]+)(\d+)('*)(?::(\S+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One worked example: its matches are in the order of a result file, its timeouts in the order of time, with ids by
    alias.

    ``refused`` is the code of a refusal; empty without one.
    """

    name: str
    text: str
    events: tuple[Event, ...]
    matches: tuple[Ids, ...]
    timeouts: tuple[Ids, ...]
    refused: str
    ties: Literal["log", "simultaneous"]
    is_open: bool


def examples_in(text: str) -> Iterator[Example]:
    """The examples of a text, one per line."""
    for line in text.splitlines():
        if line.strip():
            yield _example(line)


def _example(line: str) -> Example:
    name, pattern, trace, expected, *options = (part.strip() for part in line.split(" | "))
    refused = expected.removeprefix("REFUSED ") if expected.startswith("REFUSED ") else ""
    found = [] if refused else [part.strip() for part in expected.split(";") if part.strip() != "-"]
    return Example(
        name=name,
        text=f"PATTERN {name} EVENT {pattern}",
        events=tuple(_event(word) for word in trace.split()),
        matches=tuple(_ids(part) for part in found if not part.startswith("timeout ")),
        timeouts=tuple(_ids(part.removeprefix("timeout ")) for part in found if part.startswith("timeout ")),
        refused=refused,
        ties="log" if "ties=log" in options else "simultaneous",
        is_open="at_end=open" in options,
    )


def _event(word: str) -> Event:
    parts = _EVENT.fullmatch(word)
    assert parts is not None, f"no event: {word}"
    event_type, second, mark, value = parts.groups()
    data = {} if value is None else {"v": value.strip('"') if value.startswith('"') else int(value)}
    return Event(
        id=f"{event_type}{second}{mark}", type=event_type, time_us=int(second) * _SECOND_US, key="k", data=data
    )


def _ids(text: str) -> Ids:
    pairs = (word.split("=") for word in text.split())
    return {alias: tuple(ids.split(",")) for alias, ids in pairs}
