"""Options for reading the files of several streams: ``[STREAM=]VALUE``, for one stream or for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any, get_args

import typer

from service.cli.columns import FILE_OPTIONS, merged_options
from service.cli.inputs import chosen_key
from service.cli.signatures import Options
from streams import StreamDeclaration
from streams.readers import ReaderOptions, reading_of

_KINDS: Mapping[str, Any] = {
    "key": Annotated[str, typer.Option("--key", metavar="PATH", help="Path of the correlation key, or TYPE=PATH.")],
    **{name: kind for name, (kind, _) in FILE_OPTIONS.items() if name not in ("attributes", "classifier")},
}
_NAMES = {name: kind.__metadata__[0].default for name, kind in _KINDS.items()}  # the option as typer annotates it
_SEVERAL = ("key", "column_types")


def _for_each_stream(name: str, kind: Any) -> Any:
    option = kind.__metadata__[0]
    metavar = option.metavar or "|".join(get_args(kind.__origin__))
    text = f"{option.help.removesuffix(' Repeatable.')} STREAM=…: only for this stream. Repeatable."
    return Annotated[list[str] | None, typer.Option(_NAMES[name], metavar=f"[STREAM=]{metavar}", help=text)]


STREAM_OPTIONS: Options = {name: (_for_each_stream(name, kind), None) for name, kind in _KINDS.items()}
"""The annotation and default of each option for reading one file per stream, by the parameter's name."""


def readings(
    declared: Mapping[str, StreamDeclaration], names: Collection[str], arguments: Mapping[str, Any]
) -> dict[str, ReaderOptions]:
    """Return the reader options for each stream's file.

    The declaration of the stream gives the defaults, and the options of the command take precedence.
    """
    option_values: dict[str, dict[str, Any]] = {name: {} for name in names}
    for parameter in STREAM_OPTIONS:
        option = _NAMES[parameter]
        for option_value in arguments.get(parameter) or ():
            stream, sign, value = option_value.partition("=")
            is_named = bool(sign) and stream in declared
            if is_named and stream not in option_values:
                raise typer.BadParameter(f"{option_value!r}: the stream {stream!r} has no file", param_hint=option)
            for name in [stream] if is_named else names:
                stream_values = option_values[name]
                if parameter in _SEVERAL:
                    stream_values.setdefault(parameter, []).append(value if is_named else option_value)
                elif parameter in stream_values:
                    raise typer.BadParameter(f"given twice for the stream {name!r}", param_hint=option)
                else:
                    stream_values[parameter] = value if is_named else option_value
    reader_options = {}
    for name, options in option_values.items():
        defaults = reading_of(declared[name])
        reader_options[name] = merged_options(
            replace(defaults, key=chosen_key(options.pop("key", None)) or defaults.key), options
        )
    return reader_options
