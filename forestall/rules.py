"""Reads patterns, constraints, tables and models from the arguments of calls."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
import pyarrow as pa

from forestall.errors import FrameRefused
from forestall.frames import read_frame
from nfa import Pattern, parse_patterns, pattern_from_json
from streams.tables import Tables, TableWish, ValueType, keep_named

if TYPE_CHECKING:
    from constraints import ConstraintSet  # slow to import, and rarely needed
    from workflows import WorkflowModel

PatternLike: TypeAlias = "str | Path | Mapping[str, Any] | Pattern"
"""A pattern: its text, a file of patterns, or its JSON form."""
ConstraintsLike: TypeAlias = "str | Path | Mapping[str, Any] | Sequence[str]"
"""Constraints: a document as text, a file or an object, or a list of constraints as texts."""
ModelLike: TypeAlias = "str | bytes | Path | WorkflowModel"
"""A model of a process: its text, or a file (BPMN, PNML, or a process tree as YAML)."""


def patterns_of(given: PatternLike | Iterable[PatternLike]) -> list[Pattern]:
    """Read the patterns of an argument.

    Raises:
        PatternRefused: A pattern has no meaning.
        FrameRefused: Two patterns have one name, or the argument is no pattern.
    """
    several = [given] if isinstance(given, str | Path | Mapping | Pattern) else list(given)
    found: dict[str, Pattern] = {}
    for pattern in (pattern for one in several for pattern in _patterns_in(one)):
        if pattern.name in found:
            raise FrameRefused(f"two patterns are named {pattern.name!r}; rename one of them")
        found[pattern.name] = pattern
    return list(found.values())


def _patterns_in(given: object) -> Sequence[Pattern]:
    match given:
        case Pattern():
            return [given]
        case str():
            return parse_patterns(given)
        case Mapping():
            return [pattern_from_json(given)]
        case Path():
            text = given.read_text(encoding="utf-8")
            return [pattern_from_json(orjson.loads(text))] if given.suffix == ".json" else parse_patterns(text)
    raise FrameRefused(
        f"{type(given).__name__} is not a pattern; give its text, its JSON form as a dictionary, or a Path"
    )


def constraints_of(given: ConstraintsLike | None, notices: list[str]) -> ConstraintSet | None:
    """Read the constraints of an argument, and append notices about them.

    Raises:
        ConstraintError: The document is refused.
    """
    if given is None:
        return None
    from constraints import parse_constraints  # noqa: PLC0415 - most calls need none

    parsed = parse_constraints(given.read_text(encoding="utf-8") if isinstance(given, Path) else given)
    notices.extend(parsed.notices)
    return parsed.constraint_set


def model_of(given: ModelLike, mapping: Mapping[str, str] | None = None) -> tuple[WorkflowModel, str]:
    """Read the model of an argument; returns the model and its name.

    Args:
        given: The model, as text, file or value.
        mapping: Event types by the names of tasks.

    Raises:
        WorkflowError: The model cannot be read.
    """
    from workflows import ReadOptions, read_model  # noqa: PLC0415 - most calls need none

    if not isinstance(given, str | bytes | Path):
        return given, given.name or "model"
    content = given.read_bytes() if isinstance(given, Path) else given.encode() if isinstance(given, str) else given
    model = read_model(content, ReadOptions(mapping=mapping or {}))
    return model, model.name or (given.stem if isinstance(given, Path) else "model")


def tables_of(given: Mapping[str, Any] | None) -> Tables:
    """Read the tables of an argument: frames or file paths by name, each optionally with its key columns.

    Raises:
        ForestallError: A table is refused.
    """
    found = Tables()
    for name, one in (given or {}).items():
        rows, key = one if isinstance(one, tuple) else (one, None)
        columns = (key,) if isinstance(key, str) else None if key is None else tuple(key)
        if isinstance(rows, str | Path):
            found = found.with_version(keep_named(name, Path(rows), TableWish(key=columns)))
            continue
        table = read_frame(rows).table
        types: dict[str, ValueType] = {
            column: "integer"
            for column in columns or table.schema.names[:1]
            if column in table.schema.names and pa.types.is_integer(table.schema.field(column).type)
        }
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.parquet"
            _write(table, file)
            found = found.with_version(keep_named(name, file, TableWish(key=columns, types=types)))
    return found


def _write(table: pa.Table, file: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - most calls have no tables

    pq.write_table(table, file, store_schema=False)
