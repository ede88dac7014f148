"""The unary parts of step conditions, evaluated over columns, once per distinct condition and batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from typing import Literal as OneOf

import numpy as np
import orjson
from numpy.typing import NDArray

from nfa.conditions.calls import called
from nfa.conditions.lookups import looked_up, lookups_of
from nfa.conditions.residuals import event_of, split_condition, without_alias
from nfa.conditions.values import Values, all_of, any_of, calculated, compared, likened, negated, of_floats
from nfa.functions.lookups import NAMES as LOOKUPS
from nfa.functions.table import FUNCTIONS
from nfa.syntax import (
    ANY_TYPE,
    OF_EVENT,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Comparison,
    Each,
    Either,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Path,
    operands_of,
)
from streams import EventBatch, column_of, inner_value, shown_texts
from streams.tables import Tables

_COALESCE = "coalesce"  # coalesce is not a column, because saved states of earlier releases contain its arguments
ALWAYS = 0  # the row of a condition that is true for every event


@dataclass(frozen=True, slots=True)
class Elements:
    """A column whose values are lists. ``path`` is the path of the attribute with these lists."""

    path: Path


Source: TypeAlias = Path | OneOf["#time", "#type", "#id", "#key"]  # an attribute's path, or another member
Leaf: TypeAlias = Source | Elements | Call  # stored values, lists, or a function of these
Columns: TypeAlias = Mapping[Leaf, Values]
Types: TypeAlias = tuple[str, ...]

_LEAVES: Mapping[str, OneOf["#time", "#type", "#id", "#key"]] = {
    "time": "#time",
    "type": "#type",
    "id": "#id",
    "key": "#key",
}


@dataclass(frozen=True, slots=True)
class PredicateTable:
    """The distinct unary conditions of steps, which ``evaluate`` computes for a batch.

    ``rows`` maps (sorted types, unary condition) to a row in the result of ``evaluate``; see ``split_condition`` for
    unary conditions. These rows count from 1. Row ``ALWAYS`` is true everywhere.
    """

    rows: Mapping[tuple[Types, Expression], int]

    @classmethod
    def of(cls, atoms: Iterable[Atom]) -> PredicateTable:
        """Collect the distinct unary conditions of the given steps, including the steps of NOT and UNTIL."""
        rows: dict[tuple[Types, Expression], int] = {}
        for atom in atoms:
            unary, _ = split_condition(atom)
            if unary is not None:
                rows.setdefault((_sorted_types(atom), unary), len(rows) + 1)
        return cls(rows)

    def row_of(self, atom: Atom) -> int:
        """Return the row of ``evaluate``'s result for a step, or ``ALWAYS`` if the step has no unary condition."""
        unary, _ = split_condition(atom)
        return ALWAYS if unary is None else self.rows[_sorted_types(atom), unary]

    def evaluate(self, batch: EventBatch, columns: BatchColumns | None = None) -> NDArray[np.bool_]:
        """Compute the truth of every condition on every row, shape (conditions + 1, rows).

        A condition is only true on rows of its types. ``columns`` reads the same batch and shares its parsed rows.
        """
        truth = np.zeros((len(self.rows) + 1, len(batch)), np.bool_)
        truth[ALWAYS] = True
        if not self.rows:
            return truth
        reader = BatchColumns(batch) if columns is None else columns
        codes = {name: code for code, name in enumerate(batch.type_names)}
        by_types: dict[Types, list[tuple[Expression, int]]] = {}
        for (types, condition), row in self.rows.items():
            by_types.setdefault(types, []).append((condition, row))
        for types, conditions in by_types.items():
            rows = _rows_of_types(batch, types, codes)
            if len(rows):
                leaves = {leaf for condition, _ in conditions for leaf in leaves_of(condition)}
                leaf_values = reader.read(rows, leaves)
                for condition, row in conditions:
                    truth[row, rows] = evaluate(condition, leaf_values, len(rows)).is_true
        return truth


class BatchColumns:
    """Reads the columns of a batch that expressions use: attributes, and results of functions of one event.

    The JSON of a row is parsed once, on first use.
    """

    def __init__(self, batch: EventBatch) -> None:
        self._batch = batch
        self._objects: list[Any] = [None] * len(batch)
        self._is_parsed = np.zeros(len(batch), np.bool_)

    def read(self, rows: NDArray[np.intp], leaves: Collection[Leaf]) -> dict[Leaf, Values]:
        """Read columns for the given rows: from decoded columns if the batch has them, otherwise from JSON."""
        attributes = self._batch.attributes
        columns: dict[Leaf, Values] = {}
        from_json: list[Path] = []
        computed = [leaf for leaf in leaves if isinstance(leaf, Call)]
        for leaf in {*leaves, *(source for call in computed for source in sources_of(call))}:
            if isinstance(leaf, Call):
                continue
            if isinstance(leaf, Elements):
                columns[leaf] = Values.of_lists(read_paths(self._parsed(rows), leaf.path))
            elif isinstance(leaf, str):
                columns[leaf] = self._read_own(rows, leaf)
            elif leaf in attributes:
                is_whole = len(rows) == len(self._batch) and bool((rows[1:] > rows[:-1]).all())
                columns[leaf] = Values.of_arrow(
                    attributes[leaf] if is_whole else attributes[leaf].take(column_of(rows))
                )
            else:
                from_json.append(leaf)
        if from_json:
            items = self._parsed(rows)
            for path in from_json:
                columns[path] = Values.of(read_paths(items, path))
        for call in computed:
            columns[call] = evaluate_with_tables(
                call, columns, len(rows), self._batch.tables, self._batch.time_us[rows]
            )
        return columns

    def _read_own(self, rows: NDArray[np.intp], leaf: str) -> Values:
        if leaf == "#time":
            return Values.of_integers(self._batch.time_us[rows])
        if leaf == "#type":
            names = np.array([*self._batch.type_names, ""], np.object_)
            return Values.of_texts(names[self._batch.type_codes[rows]])
        texts = shown_texts(self._batch.columns.column(leaf.removeprefix("#")).take(column_of(rows)))
        return Values.of_texts(texts.to_numpy(zero_copy_only=False))

    def _parsed(self, rows: NDArray[np.intp]) -> list[Any]:
        missing = rows[~self._is_parsed[rows]]
        if len(missing):
            texts = self._batch.columns.column("data").take(column_of(missing)).to_pylist()
            for row, item in zip(missing.tolist(), attributes_of_all(texts), strict=True):
                self._objects[row] = item
            self._is_parsed[missing] = True
        return [self._objects[row] for row in rows.tolist()]


def attributes_of_all(texts: Sequence[bytes]) -> list[Any]:
    """Parse the attributes of many events; see ``attributes_of``."""
    try:
        return list(map(orjson.loads, texts))
    except orjson.JSONDecodeError:
        return [attributes_of(text) for text in texts]


def attributes_of(text: bytes) -> Any:
    """Parse the attributes of an event.

    Damaged JSON gives an empty object, so that one event cannot make a batch fail.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}


def read_paths(items: Sequence[Any], path: Path) -> list[Any]:
    """Return the value at a path of each item; see ``read_path``."""
    if len(path) == 1 and set(map(type, items)) == {dict}:
        (name,) = path
        return [item.get(name) for item in items]
    return [read_path(item, path) for item in items]


def read_path(item: Any, path: Path) -> Any:
    """Return the value at a path within nested objects and lists, or None if the path does not exist."""
    for name in path:
        item = item.get(name) if isinstance(item, dict) else inner_value(item, name)
    return item


def source_of(expression: Expression) -> Source | None:
    """Return the stored column that an expression reads, or None.

    An attribute has a column, and so has a call in ``OF_EVENT``, such as ``time``. Other expressions have none.
    """
    match expression:
        case Attribute():
            return expression.path
        case Call() if expression.name in OF_EVENT:
            return _LEAVES[expression.name]
        case _:
            return None


def sources_of(expression: Expression) -> Iterator[Source | Elements]:
    """Yield all stored columns that an expression reads. A column may occur several times."""
    source = source_of(expression)
    if source is not None:
        yield source
    elif isinstance(expression, Call) and isinstance(expression.arguments[-1], Each):
        yield elements_of(expression)
    else:
        for operand in operands_of(expression):
            yield from sources_of(operand)


def leaf_of(expression: Expression) -> Leaf | None:
    """Return the column that has the values of an expression, or None if there is no such column.

    A column has stored values, or the results of a function of one event.
    """
    source = source_of(expression)
    if (
        source is None
        and isinstance(expression, Call)
        and expression.name in FUNCTIONS
        and expression.name != _COALESCE
    ):
        aliases = event_of(expression)
        if aliases:
            return cast(Call, without_alias(expression, aliases[0]))
        return expression if aliases == () and reads_tables(expression) else None
    return source


def reads_tables(expression: Expression) -> bool:
    """Check whether an expression has a lookup, so that its value depends on reference tables."""
    return next(lookups_of(expression), None) is not None


def leaves_of(expression: Expression) -> Iterator[Leaf]:
    """Yield all columns that an expression reads. A column may occur several times."""
    leaf = leaf_of(expression)
    if leaf is not None:
        yield leaf
    else:
        for operand in operands_of(expression):
            yield from leaves_of(operand)


def evaluate(expression: Expression, columns: Columns, size: int) -> Values:
    """Evaluate an expression on ``size`` rows. The expression must read the current event only, without aliases."""
    match expression:
        case Literal():
            return Values.of_constant(expression.value, size)
        case Attribute():
            return columns[expression.path]
        case Comparison():
            left, right = evaluate(expression.left, columns, size), evaluate(expression.right, columns, size)
            return compared(expression.operator, left, right)
        case Arithmetic():
            left, right = evaluate(expression.left, columns, size), evaluate(expression.right, columns, size)
            return calculated(expression.operator, left, right)
        case InList():
            operand = evaluate(expression.operand, columns, size)
            values = [Values.of_constant(value.value, size) for value in expression.values]
            return any_of([compared("=", operand, value) for value in values], size)
        case Both():
            return all_of([evaluate(operand, columns, size) for operand in expression.operands], size)
        case Either():
            return any_of([evaluate(operand, columns, size) for operand in expression.operands], size)
        case Call():
            return _called(expression, columns, size)
        case IsNull() | Not() | Negative() | Like():
            return _changed(expression, evaluate(expression.operand, columns, size))


def evaluate_with_tables(
    expression: Expression,
    columns: dict[Leaf, Values],
    size: int,
    tables: Tables | None,
    times_us: NDArray[np.int64] | None = None,
) -> Values:
    """Evaluate an expression as ``evaluate`` does. Lookups read ``tables`` as they were at ``times_us``.

    The values of the lookups are added to ``columns``.
    """
    for lookup in lookups_of(expression):
        columns[lookup] = looked_up(lookup, tables, lambda key: evaluate(key, columns, size), size, times_us)
    return evaluate(expression, columns, size)


def _changed(expression: IsNull | Not | Negative | Like, operand: Values) -> Values:
    match expression:
        case IsNull():
            return Values.of_truth(operand.is_null, np.zeros(len(operand), np.bool_))
        case Not():
            return Values.of_truth(operand.is_false, ~(operand.is_true | operand.is_false))
        case Negative():
            return negated(operand)
        case Like():
            return likened(operand, expression.pattern)


def _called(call: Call, columns: Columns, size: int) -> Values:
    source = source_of(call)
    if source is not None:
        return columns[source]
    if call.name not in FUNCTIONS:
        raise ValueError(f"{call.name} reads more than the current event")
    if call in columns:
        return columns[call]
    if call.name in LOOKUPS:  # the caller has no tables
        return Values.of_constant(None, size)
    if isinstance(call.arguments[-1], Each):
        lists = columns.get(elements_of(call))
        return over_lists(call, [None] * size if lists is None else lists.texts.tolist())
    arguments = [
        argument.value if isinstance(argument, Literal) else evaluate(argument, columns, size)
        for argument in call.arguments
    ]
    return called(FUNCTIONS[call.name], arguments, size)


def elements_of(call: Call) -> Elements:
    """Return the column of lists that a function of lists, such as ``any``, reads."""
    return Elements(cast(Attribute, call.arguments[0]).path)


def over_lists(call: Call, lists: Sequence[Any]) -> Values:
    """Return the value of a function of lists, such as ``any``, for each entry of ``lists``.

    The value is null if the entry is not a list. The function reads members of the list's elements. An element that is
    not an object counts as ``{"value": element}``.
    """
    each = cast(Each, call.arguments[-1]).inner
    is_list = np.array([isinstance(entry, list) for entry in lists], np.bool_)
    elements = [
        item if isinstance(item, dict) else {"value": item}
        for entry in lists
        if isinstance(entry, list)
        for item in entry
    ]
    owners = np.repeat(np.arange(len(lists)), [len(entry) if isinstance(entry, list) else 0 for entry in lists])
    columns: dict[Leaf, Values] = {}
    for source in sources_of(each):
        if isinstance(source, Elements):
            columns[source] = Values.of_lists(read_paths(elements, source.path))
        elif not isinstance(source, str):
            columns[source] = Values.of(read_paths(elements, source))
    values = evaluate(each, columns, len(elements))

    def number_of(rows: NDArray[np.bool_]) -> NDArray[np.intp]:
        return np.bincount(owners[rows], minlength=len(lists))

    if call.name == "any":
        is_true, is_unknown = number_of(values.is_true) > 0, number_of(~values.is_true & ~values.is_false) > 0
        return Values.of_truth(is_true, ~is_list | (~is_true & is_unknown))
    with np.errstate(all="ignore"):
        totals = np.bincount(owners, values.floats, minlength=len(lists)).astype(np.float64)
    return of_floats(totals, (number_of(values.is_number) > 0) & (number_of(~values.is_number & ~values.is_null) == 0))


def _sorted_types(atom: Atom) -> Types:
    return tuple(sorted(set(atom.types)))


def _rows_of_types(batch: EventBatch, types: Types, codes: Mapping[str, int]) -> NDArray[np.intp]:
    if types == (ANY_TYPE,):
        return np.arange(len(batch), dtype=np.intp)
    wanted_codes = [codes[name] for name in types if name in codes]
    type_codes = batch.type_codes
    if len(wanted_codes) == 1:
        return np.flatnonzero(type_codes == wanted_codes[0])
    return np.flatnonzero(np.isin(type_codes, wanted_codes))
