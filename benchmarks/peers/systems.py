"""The engines and their modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Source: TypeAlias = Literal["memory", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A mode of an engine.

    Attributes:
        source: For ``memory``, events are in the engine's own form before the clock starts. For ``file``, reading is
            measured, too.
        threads: The number of matching threads.
        variant: A further difference of the mode.
        is_usual: Whether the mode is also run in cases other than the main ones.
    """

    source: Source
    threads: int = 1
    variant: str = ""
    is_usual: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """An engine in one of its languages.

    Attributes:
        name: The name of the engine.
        wording: The engine in ``queries`` whose language it uses.
        peer: The peer to set up for it. None means Forestall itself.
        modes: The modes in which it can run.
        most: The maximum number of events that it can process in reasonable time, by variant.
        is_command: Whether it is a command that does all of its work at once. Its start is measured with one event.
    """

    name: str
    wording: str
    peer: str | None
    modes: tuple[Mode, ...]
    most: Mapping[str, int]
    is_command: bool = False


UNFILTERED = "unfiltered"
SHARDS = "in shards"
"""A variant for joins only: with all work of the service per event, down to the rows of derived events."""

SYSTEMS: tuple[System, ...] = (
    System(
        name="library",
        wording="forestall",
        peer=None,
        modes=(Mode(source="memory", is_usual=True), Mode(source="memory", variant=SHARDS)),
        most={SHARDS: 200_000},
    ),
    System(
        name="forestall match",
        wording="forestall",
        peer=None,
        modes=(Mode(source="file", is_usual=True),),
        most={},
        is_command=True,
    ),
    System(
        name="forestall backtest",
        wording="forestall",
        peer=None,
        modes=(Mode(source="file", threads=2),),
        most={},
        is_command=True,
    ),
    System(
        name="flink-cep",
        wording="flink-cep",
        peer="flink",
        modes=(Mode(source="file", is_usual=True), Mode(source="file", threads=2), Mode(source="memory")),
        most={},
    ),
    System(
        name="flink-sql",
        wording="flink-sql",
        peer="flink",
        modes=(Mode(source="file", is_usual=True), Mode(source="file", variant=UNFILTERED), Mode(source="memory")),
        most={UNFILTERED: 200_000},
    ),
    System(
        name="siddhi",
        wording="siddhi",
        peer="siddhi",
        modes=(Mode(source="memory", is_usual=True), Mode(source="file")),
        most={},
    ),
    System(
        name="core",
        wording="core",
        peer="core",
        modes=(Mode(source="memory", is_usual=True), Mode(source="file")),
        most={},
    ),
    System(name="bobo", wording="bobo", peer="bobo", modes=(Mode(source="memory", is_usual=True),), most={"": 10_000}),
)
