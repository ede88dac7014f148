"""Options of commands that read third-party files: which columns are what, what times mean, repeated events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from streams import Duplicates
from streams.readers import Columns, TimeUnit, zone_of


class Repeated(StrEnum):
    """What to do with events whose ids came before."""

    DROP = "drop"
    KEEP = "keep"


class Unit(StrEnum):
    """The unit of times that are numbers."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"
    NANOSECONDS = "ns"


IdColumn = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column of the event's id (default: generated).")
]
TypeColumn = Annotated[str | None, typer.Option("--type", metavar="COLUMN", help="Column of the event type.")]
TimeColumn = Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="Column of the time.")]
AttributeColumns = Annotated[
    str | None,
    typer.Option(
        "--attributes",
        metavar="COLUMNS",
        help="Columns to use as attributes, separated by commas (default: all others).",
    ),
]
Zone = Annotated[
    str | None,
    typer.Option("--assume-zone", metavar="ZONE", help="Time zone of times without one: UTC, +02:00, Europe/Berlin."),
]
NumbersCount = Annotated[Unit, typer.Option("--time-unit", help="Unit of times that are numbers since 1970.")]
DuplicateIds = Annotated[
    Repeated,
    typer.Option("--duplicates", help="What to do with repeated event ids: 'drop' them with a notice, or 'keep' them."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The values of these options."""

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
