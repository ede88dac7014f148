"""Reading of patterns, constraints, tables and models from the arguments of calls."""

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
from streams.tables import TableDeclaration, Tables, ValueType, keep_named

if TYPE_CHECKING:
    from constraints import ConstraintSet  # slow to import, and rarely needed
    from workflows import WorkflowModel

PatternLike: TypeAlias = "str | Path | Mapping[str, Any] | Pattern"
"""A pattern: its text, a file of patterns, or its JSON form."""
ConstraintsLike: TypeAlias = "str | Path | Mapping[str, Any] | Sequence[str]"
"""Constraints: a document as text, a file or an object, or a list of constraints as texts."""
ModelLike: TypeAlias = "str | bytes | Path | WorkflowModel"
"""A model of a process: its text, or a file (BPMN, PNML, or a process tree as YAML)."""


def patterns_of(argument: PatternLike | Iterable[PatternLike]) -> list[Pattern]:
    """Read the patterns of an argument.

    Raises:
        PatternRefused: A pattern is invalid.
        FrameRefused: Two patterns have one name, or the argument is no pattern.
    """
    pattern_likes = [argument] if isinstance(argument, str | Path | Mapping | Pattern) else list(argument)
    patterns: dict[str, Pattern] = {}
    for pattern in (pattern for pattern_like in pattern_likes for pattern in _patterns_in(pattern_like)):
        if pattern.name in patterns:
            raise FrameRefused(f"two patterns are named {pattern.name!r}; rename one of them")
        patterns[pattern.name] = pattern
    return list(patterns.values())


def _patterns_in(pattern_like: object) -> Sequence[Pattern]:
    match pattern_like:
        case Pattern():
            return [pattern_like]
        case str():
            return parse_patterns(pattern_like)
        case Mapping():
            return [pattern_from_json(pattern_like)]
        case Path():
            text = pattern_like.read_text(encoding="utf-8")
            return [pattern_from_json(orjson.loads(text))] if pattern_like.suffix == ".json" else parse_patterns(text)
    raise FrameRefused(
        f"{type(pattern_like).__name__} is not a pattern; give its text, its JSON form as a dictionary, or a Path"
    )


def constraints_of(argument: ConstraintsLike | None, notices: list[str]) -> ConstraintSet | None:
    """Read the constraints of an argument. Notices about them are appended to ``notices``.

    Raises:
        ConstraintError: The document is refused.
    """
    if argument is None:
        return None
    from constraints import parse_constraints  # noqa: PLC0415 - most calls need none

    parsed = parse_constraints(argument.read_text(encoding="utf-8") if isinstance(argument, Path) else argument)
    notices.extend(parsed.notices)
    return parsed.constraint_set


def model_of(argument: ModelLike, mapping: Mapping[str, str] | None = None) -> tuple[WorkflowModel, str]:
    """Read the model of an argument. Return the model and its name.

    ``mapping`` has event types by names of tasks.

    Raises:
        WorkflowError: The model cannot be read.
    """
    from workflows import ReadOptions, read_model  # noqa: PLC0415 - most calls need none

    if not isinstance(argument, str | bytes | Path):
        return argument, argument.name or "model"
    content = (
        argument.read_bytes()
        if isinstance(argument, Path)
        else argument.encode()
        if isinstance(argument, str)
        else argument
    )
    model = read_model(content, ReadOptions(mapping=mapping or {}))
    return model, model.name or (argument.stem if isinstance(argument, Path) else "model")


def tables_of(argument: Mapping[str, Any] | None) -> Tables:
    """Read the reference tables of an argument, which has a frame or a file path for each name.

    The value may also be a tuple of frame or path with the key columns.
    """
    loaded = Tables()
    for name, table_argument in (argument or {}).items():
        rows, key = table_argument if isinstance(table_argument, tuple) else (table_argument, None)
        columns = (key,) if isinstance(key, str) else None if key is None else tuple(key)
        if isinstance(rows, str | Path):
            loaded = loaded.with_version(keep_named(name, Path(rows), TableDeclaration(key=columns)))
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
            loaded = loaded.with_version(keep_named(name, file, TableDeclaration(key=columns, types=types)))
    return loaded


def _write(table: pa.Table, file: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - most calls have no tables

    pq.write_table(table, file, store_schema=False)
