"""Options of commands that read files of strangers: which columns are what, what times mean, events that come again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from streams import Duplicates
from streams.readers import Columns, TimeUnit, zone_of


class Repeated(StrEnum):
    """What becomes of events whose ids came before."""

    DROP = "drop"
    KEEP = "keep"


class Unit(StrEnum):
    """What numbers count that say a time."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"
    NANOSECONDS = "ns"


IdColumn = Annotated[str | None, typer.Option("--id", help="Column of the event's id; made up where there is none.")]
TypeColumn = Annotated[str | None, typer.Option("--type", help="Column of the event type.")]
TimeColumn = Annotated[str | None, typer.Option("--time", help="Column of the time.")]
AttributeColumns = Annotated[
    str | None, typer.Option("--attributes", help="Columns that are attributes, joined by commas; else all others.")
]
Zone = Annotated[
    str | None, typer.Option("--assume-zone", help="Zone of times without one: UTC, +02:00, Europe/Berlin.")
]
NumbersCount = Annotated[Unit, typer.Option("--time-unit", help="What numbers count since 1970 that say a time.")]
DuplicateIds = Annotated[
    Repeated, typer.Option("--duplicates", help="Events whose id came before: 'drop', which is said, or 'keep'.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What these options say together."""

    columns: Columns
    zone: str | None
    unit: TimeUnit
    duplicates: Duplicates


def columns_of(event_id: str | None, event_type: str | None, time: str | None, attributes: str | None) -> Columns:
    """The columns that are named; empty names are refused by those who look for them."""
    names = None if attributes is None else tuple(name.strip() for name in attributes.split(",") if name.strip())
    return Columns(id=event_id, type=event_type, time=time, attributes=names)


def reading(columns: Columns, zone: str | None, unit: Unit, duplicates: Repeated = Repeated.DROP) -> Reading:
    """What the options say.

    Raises:
        DeclarationError: There is no such zone.
    """
    if zone is not None:
        zone_of(zone)
    kept: Duplicates = "keep" if duplicates is Repeated.KEEP else "drop"
    return Reading(columns=columns, zone=zone, unit=unit.value, duplicates=kept)
