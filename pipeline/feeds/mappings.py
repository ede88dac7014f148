"""Mappings of foreign rows as plain JSON, to pass them through Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from streams import TimeForm, key_json
from streams.readers import Columns, ReaderOptions


def mapping_form(mapping: ReaderOptions) -> dict[str, Any]:
    """A mapping as plain JSON."""
    return {
        "key": None if mapping.key is None else key_json(mapping.key),
        "columns": asdict(mapping.columns),
        "clock": asdict(mapping.clock),
        "delimiter": mapping.delimiter,
        "encoding": mapping.encoding,
        "types": dict(mapping.types),
    }


def mapping_of(form: Mapping[str, Any]) -> ReaderOptions:
    """Read the JSON form of ``mapping_form``."""
    columns: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in form["columns"].items()
    }
    return ReaderOptions(
        key=form["key"],
        columns=Columns(**columns),
        clock=TimeForm(**form["clock"]),
        **{name: form[name] for name in ("delimiter", "encoding", "types")},
    )
