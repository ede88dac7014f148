"""The columns of a table with their types, and its key. Together they are the table's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

import pyarrow as pa

from streams.nearest import did_you_mean
from streams.showing import shown
from streams.tables.errors import TableColumnUnknown, TableRefused

ValueType: TypeAlias = Literal["text", "integer", "number", "boolean", "time"]
VALUE_TYPES: Mapping[ValueType, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "time": pa.int64(),
}
"""The types of columns with their Arrow types. A time is stored in microseconds UTC, as ``time(a)`` returns it."""

MOST_COLUMNS = 200
_MOST_NAME = 200
_OTHER_SEPARATORS: Mapping[str, str] = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_KEYS = ("text", "integer")
_KIND: Mapping[str, str] = {"integer": "number", "time": "number"}  # conditions compare these types as numbers


def names_fault(names: Sequence[str]) -> str | None:
    """Return the fault of column names in words, such as too many or repeated names. Return None if they are valid."""
    if len(names) > MOST_COLUMNS:
        return f"the rows have {len(names)} columns; a table has at most {MOST_COLUMNS}"
    repeated = [name for at, name in enumerate(names) if name in names[:at]]
    return f"the column {shown(repeated[0])} is named twice" if repeated else None


class Lookup(NamedTuple):
    """A lookup in a table, as a text of a pattern or document contains it.

    Attributes:
        column: The column. None: the lookup returns only whether the row exists.
        keys: The number of keys. None: every row is read.
    """

    table: str
    column: str | None
    keys: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeclaration:
    """The declaration of a table before its rows are read.

    Attributes:
        key: The columns of the key. None: the first column.
        types: The types of some columns. Other types are inferred from the rows.
    """

    key: tuple[str, ...] | None
    types: Mapping[str, ValueType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.key is not None and (not self.key or len(set(self.key)) != len(self.key)):
            raise TableRefused("a table has a key of one or several different columns; name them", field="key")
        for name, kind in self.types.items():
            if kind not in VALUE_TYPES:
                raise TableRefused(
                    f"columns: the type {kind!r} of {name!r} is unknown; types are {', '.join(get_args(ValueType))}",
                    field="columns",
                )

    def form(self, names: Sequence[str], infer: Callable[[str], ValueType]) -> TableForm:
        """Return the form of a table with the columns ``names``. ``infer`` returns the type of an undeclared column.

        Raises ``TableRefused`` if a declared column is missing, a column cannot be a key, or ``names`` are invalid.
        """
        if fault := names_fault(names):
            raise TableRefused(fault)
        key = tuple(names[:1]) if self.key is None else self.key
        for name in (*key, *self.types):
            if name not in names:
                raise TableRefused(
                    f"the rows have no column {name!r}{_advice(name, names)}; they have {', '.join(names)}",
                    column=name,
                )
        columns: dict[str, ValueType] = {
            name: self.types.get(name) or ("text" if name in key else infer(name)) for name in names
        }
        return TableForm(key=key, columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """The form of a table: its columns in order with their types, and the columns of its key, which are among them."""

    key: tuple[str, ...]
    columns: Mapping[str, ValueType]

    def __post_init__(self) -> None:
        for name in self.columns:
            if not name.strip() or len(name) > _MOST_NAME or not name.isprintable():
                raise TableRefused(
                    f"{name[:_MOST_NAME]!r} is not a name of a column: it has 1 to {_MOST_NAME} printable characters",
                    column=name[:_MOST_NAME],
                )
        for name in self.key:
            if self.columns[name] not in _KEYS:
                raise TableRefused(
                    f"the column {name!r} has the type {self.columns[name]}; keys are text or integer", column=name
                )

    def require(self, table: str, column: str | None, keys: int | None) -> None:
        """Raise ``TableColumnUnknown`` if a lookup names an unknown column or has a wrong number of keys.

        None means no check, as in ``Lookup``. ``table`` is the name of the table.
        """
        if column is not None and column not in self.columns:
            advice = _advice(column, list(self.columns))
            raise TableColumnUnknown(
                f"the table {table!r} has no column {column!r}{advice}; it has {', '.join(self.columns)}", column=column
            )
        if keys is not None and keys != len(self.key):
            key_count = "1 key" if len(self.key) == 1 else f"{len(self.key)} keys"
            raise TableColumnUnknown(
                f"the table {table!r} is looked up by {key_count}: {', '.join(self.key)}; got {keys}"
            )

    def changed(self, later: TableForm, column: str | None, keys: int | None) -> str | None:
        """Return the fault in words if a lookup finds other rows, or values of another kind, in the form ``later``.

        Otherwise return None. ``column`` and ``keys`` are as in ``Lookup``. Whole numbers, other numbers and times are
        of the same kind.
        """
        if keys is not None and later.key != self.key:
            return (
                f"its key was {', '.join(self.key)} and is {', '.join(later.key)} now; upload the rows with the former "
                "key, or as another table"
            )
        before, after = self.columns.get(column or ""), later.columns.get(column or "")
        if before is None or after is None or _KIND.get(before, before) == _KIND.get(after, after):
            return None
        return (
            f"the type of the column {column!r} was {before} and is {after} now; declare it as {before}, and a row "
            "that has another value is named"
        )

    def to_json(self) -> dict[str, Any]:
        return {"key": list(self.key), "columns": dict(self.columns)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(key=tuple(document["key"]), columns=dict(document["columns"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """A version of a table: its name, number, form, and the digest of its rows.

    Attributes:
        version: Counts from 1 for each name and never repeats.
        rows: The number of rows.
        since_us: In a run over past events, the event time from which the version is read. If it is None, the version
            applies to events after its record in the log.
    """

    name: str
    version: int
    form: TableForm
    digest: str
    rows: int
    since_us: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            **self.form.to_json(),
            "digest": self.digest,
            "rows": self.rows,
            **({} if self.since_us is None else {"since": self.since_us}),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            name=document["name"],
            version=document["version"],
            form=TableForm.from_json(document),
            digest=document["digest"],
            rows=document["rows"],
            since_us=document.get("since"),
        )


def _advice(name: str, names: Sequence[str]) -> str:
    """Return advice about a column that is missing among ``names``: its separator, or a similar name."""
    separators = [called for sign, called in _OTHER_SEPARATORS.items() if len(names) == 1 and sign in names[0]]
    if separators:
        return f" (the rows are probably separated by {separators[0]}; separate their columns by commas)"
    return did_you_mean(name, names)
