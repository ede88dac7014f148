"""How a feed reads the rows of strangers, on its way through Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from streams import key_json
from streams.readers import Columns, ReaderOptions


def mapping_form(mapping: ReaderOptions) -> dict[str, Any]:
    """What rows are read by, as plain JSON."""
    return {
        "key": None if mapping.key is None else key_json(mapping.key),
        "columns": asdict(mapping.columns),
        "zone": mapping.zone,
        "unit": mapping.unit,
    }


def mapping_of(form: Mapping[str, Any]) -> ReaderOptions:
    """What ``mapping_form`` gave."""
    columns, attributes = form["columns"], form["columns"]["attributes"]
    named = Columns(**{**columns, "attributes": None if attributes is None else tuple(attributes)})
    return ReaderOptions(key=form["key"], columns=named, zone=form["zone"], unit=form["unit"])
