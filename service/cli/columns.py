"""Options for reading files that other programs wrote: columns, value formats, and repeated events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Annotated, Any, cast, get_args

import typer

from service.cli.signatures import Command, Options, parameters, with_parameters
from streams import ColumnType, Duplicates, LocalTimes, TimeUnit
from streams.readers import Columns, ReaderOptions, encoding_of

IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN[,…]",
        help="Column with the event id; several columns, separated by commas, are joined (default: generated).",
    ),
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
ColumnTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME=TYPE",
        help="CSV: type of a column: text, number or boolean (default: by its values). Repeatable.",
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--assume-zone", metavar="ZONE", help="Time zone of times without an offset: UTC, +02:00, Europe/Berlin."
    ),
]
NumbersCount = Annotated[
    TimeUnit, typer.Option("--time-unit", help="Unit of numeric times since 1970; auto: by magnitude.")
]
TimeFormat = Annotated[
    str | None,
    typer.Option(
        "--time-format",
        metavar="FORM",
        help="Format of times such as 03/04/2025: day-first, month-first, or a pattern such as '%d/%m/%Y'.",
    ),
]
ChangedClocks = Annotated[
    LocalTimes,
    typer.Option("--local-times", help="How to read local times that a change of clocks repeats or skips."),
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHARACTER", help="CSV: separator of columns, or 'tab' (default: detected)."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Encoding of the file (default: UTF-8, or UTF-16 with a byte order mark)."
    ),
]
Classifier = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="XES: classifier that gives the event types (default: concept:name)."),
]
DuplicateIds = Annotated[
    Duplicates,
    typer.Option("--duplicates", help="What to do with repeated event ids: 'drop' them with a notice, or 'keep' them."),
]

FILE_OPTIONS: Options = {
    "id_column": (IdColumn, None),
    "type_column": (TypeColumn, None),
    "time_column": (TimeColumn, None),
    "attributes": (AttributeColumns, None),
    "column_types": (ColumnTypes, None),
    "assume_zone": (Zone, None),
    "time_unit": (NumbersCount, "auto"),
    "time_format": (TimeFormat, None),
    "local_times": (ChangedClocks, "earlier"),
    "delimiter": (Delimiter, None),
    "encoding": (Encoding, None),
    "classifier": (Classifier, None),
}
"""The annotation and default of each option for reading one file, by the parameter's name."""
MESSAGE_OPTIONS = {
    name: FILE_OPTIONS[name]
    for name in FILE_OPTIONS
    if name not in ("column_types", "delimiter", "encoding", "classifier")
}
"""The file options that apply to JSON messages."""

_TAB = ("tab", "\\t")


def with_options(options: Options) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command. The command reads their values from its context."""

    def extended(command: Command) -> Command:
        own_parameters = signature(command, eval_str=True).parameters

        @wraps(command)
        def run(**values: Any) -> None:
            command(**{name: value for name, value in values.items() if name in own_parameters})

        return with_parameters(run, [*own_parameters.values(), *parameters(options)])

    return extended


def merged_options(options: ReaderOptions, arguments: Mapping[str, Any]) -> ReaderOptions:
    """Merge the reader options of a stream with the options of a command.

    An option that the user gave takes precedence.
    """
    clock = options.clock
    named: dict[str, Any] = {"zone": arguments.get("assume_zone"), "format": arguments.get("time_format")}
    if (unit := arguments.get("time_unit")) not in (None, "auto"):
        named["unit"] = str(unit)
    if (changed := arguments.get("local_times")) not in (None, "earlier"):
        named["local_times"] = str(changed)
    encoding = arguments.get("encoding")
    return replace(
        options,
        columns=_columns(options.columns, arguments),
        clock=replace(
            clock, **cast("dict[str, Any]", {name: value for name, value in named.items() if value is not None})
        ),
        delimiter=delimiter_of(arguments.get("delimiter")) or options.delimiter,
        encoding=options.encoding if encoding is None else encoding_of(encoding),
        classifier=arguments.get("classifier") or options.classifier,
        types={**options.types, **types_of(arguments.get("column_types"))},
        duplicates="keep" if arguments.get("duplicates") == "keep" else options.duplicates,
    )


def types_of(written: Sequence[str] | None) -> dict[str, ColumnType]:
    """Return the column types by name from options NAME=TYPE. Repeated columns are refused."""
    types: dict[str, ColumnType] = {}
    for column in written or ():
        name, _, kind = column.rpartition("=")
        if not name or kind not in get_args(ColumnType) or name in types:
            why = "names a column twice" if name in types else "is not NAME=TYPE"
            raise typer.BadParameter(f"{column!r} {why}; write for example amount=number", param_hint="--columns")
        types[name] = cast("ColumnType", kind)
    return types


def delimiter_of(written: str | None) -> str | None:
    """Return the column separator, which must be one character."""
    delimiter = "\t" if written in _TAB else written
    if delimiter is not None and len(delimiter) != 1:
        raise typer.BadParameter(f"{written!r} is not one character, such as ';', or tab", param_hint="--delimiter")
    return delimiter


def _columns(defaults: Columns, arguments: Mapping[str, Any]) -> Columns:
    ids, attributes = arguments.get("id_column"), arguments.get("attributes")
    named = {"type": arguments.get("type_column"), "time": arguments.get("time_column")}
    columns: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if ids is not None:
        parts = tuple(name.strip() for name in ids.split(","))
        columns["id"] = parts if len(parts) > 1 else parts[0]
    if attributes is not None:
        columns["attributes"] = tuple(name.strip() for name in attributes.split(",") if name.strip())
    return replace(defaults, **columns, data=None) if columns else defaults
