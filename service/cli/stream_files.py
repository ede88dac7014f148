"""Options for reading the files of several streams: ``[STREAM=]VALUE``, for one stream or for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from service.cli.columns import as_asked
from service.cli.inputs import chosen_key
from streams import StreamDeclaration
from streams.readers import ReaderOptions, reading_of


def _option(name: str, metavar: str, text: str) -> tuple[Any, None]:
    option = typer.Option(name, metavar=f"[STREAM=]{metavar}", help=f"{text} Repeatable.")
    return Annotated[list[str] | None, option], None


STREAM_OPTIONS: Mapping[str, tuple[Any, Any]] = {
    "key": _option("--key", "PATH", "Path of the correlation key in the file, as TYPE=PATH by event type."),
    "id_column": _option("--id", "COLUMN[,…]", "Column of the event's id; several make one id (default: generated)."),
    "type_column": _option("--type", "COLUMN", "Column of the event type."),
    "time_column": _option("--time", "COLUMN", "Column of the time."),
    "column_types": _option("--columns", "NAME=TYPE", "CSV: type of a column: text, number or boolean."),
    "assume_zone": _option(
        "--assume-zone", "ZONE", "Time zone of times without an offset: UTC, +02:00, Europe/Berlin."
    ),
    "time_unit": _option("--time-unit", "UNIT", "Unit of times that are numbers: auto, s, ms, us or ns."),
    "time_format": _option("--time-format", "FORM", "Form of times: day-first, month-first, or as '%d.%m.%y %H:%M'."),
    "local_times": _option(
        "--local-times",
        "CHOICE",
        "How to read local times that a change of clocks repeats or skips: earlier, later, refuse.",
    ),
    "delimiter": _option("--delimiter", "CHARACTER", "CSV: separator of columns, or tab (default: detected)."),
    "encoding": _option(
        "--encoding", "NAME", "Encoding of the file (default: UTF-8, or UTF-16 with a byte order mark)."
    ),
}
"""Options of commands that read a file for each stream, by parameter: what each is, and its default."""

_SINGLE = {
    "id_column": "--id",
    "type_column": "--type",
    "time_column": "--time",
    "assume_zone": "--assume-zone",
    "time_unit": "--time-unit",
    "time_format": "--time-format",
    "local_times": "--local-times",
    "delimiter": "--delimiter",
    "encoding": "--encoding",
}
_SEVERAL = {"key": "--key", "column_types": "--columns"}


def readings(
    declared: Mapping[str, StreamDeclaration], names: Collection[str], asked: Mapping[str, Any]
) -> dict[str, ReaderOptions]:
    """The reader options for each stream's file: its declaration's mapping and the options, which take precedence."""
    own: dict[str, dict[str, Any]] = {name: {} for name in names}
    for parameter, option in {**_SINGLE, **_SEVERAL}.items():
        for option_value in asked.get(parameter) or ():
            stream, sign, value = option_value.partition("=")
            is_named = bool(sign) and stream in declared
            if is_named and stream not in own:
                raise typer.BadParameter(f"{option_value!r}: the stream {stream!r} has no file", param_hint=option)
            for name in [stream] if is_named else names:
                known = own[name]
                if parameter in _SEVERAL:
                    known.setdefault(parameter, []).append(value if is_named else option_value)
                elif parameter in known:
                    raise typer.BadParameter(f"given twice for the stream {name!r}", param_hint=option)
                else:
                    known[parameter] = value if is_named else option_value
    found = {}
    for name, options in own.items():
        usual = reading_of(declared[name])
        found[name] = as_asked(replace(usual, key=chosen_key(options.pop("key", None)) or usual.key), options)
    return found
