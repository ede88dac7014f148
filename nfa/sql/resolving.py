"""Resolves names and calls: each name becomes a column or a row of the match, and each call gets its meaning.

If all operands of an operation read the same row, the whole operation is evaluated at this row. For example,
``lower(LAST(A.x))`` becomes ``LAST(lower(A.x))``. The meaning is the same, because all columns of a missing row are
null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from nfa.errors import PatternRefused
from nfa.sql.operations import FUNCTIONS, NEEDS_CONSTANTS, OTHER_NAMES
from nfa.sql.syntax import (
    Aggregate,
    At,
    Call,
    Clause,
    Column,
    Constant,
    Expression,
    LabelOfRow,
    MatchNumber,
    Name,
    Operation,
    Place,
    Sort,
    Value,
    walk,
)
from nfa.syntax import Position

AGGREGATES = frozenset("count sum avg min max array_agg max_by min_by arbitrary".split())
_MOST_OPERANDS = {"max_by": 2, "min_by": 2}
_OTHER_AGGREGATES = {"any_value": "arbitrary", "mean": "avg"}
_LOGICAL = ("first", "last")
_PHYSICAL = ("prev", "next")
_MAX_OFFSET = 2**31 - 1
_NO_COLUMNS: Mapping[str, Expression] = MappingProxyType({})


@dataclass(frozen=True)
class Columns:
    """The columns of a table by name. Queries may write names in upper or lower case, unless that is ambiguous.

    If ``names`` is None, every name is accepted as a column.
    """

    names: Sequence[str] | None

    def has(self, name: str) -> bool:
        """Return whether ``find`` knows a name, or refuses it because it may be several columns."""
        return self.names is None or any(column.lower() == name.lower() for column in self.names)

    def find(self, name: str, position: Position) -> str:
        """Return the name of a column as the table spells it."""
        if self.names is None or name in self.names:
            return name
        candidates = list(dict.fromkeys(column for column in self.names if column.lower() == name.lower()))
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise PatternRefused("column", f"{name} may be {' or '.join(candidates)}; write the exact name", position)
        raise PatternRefused("column", f"there is no column {name}; the columns are {', '.join(self.names)}", position)


def resolve_clause(clause: Clause, names: Sequence[str] | None) -> Clause:
    """Replace the names and calls in a clause by their meanings, for a table with the columns ``names``.

    If ``names`` is None, every name is accepted as a column.
    """
    columns = Columns(names)
    unions = {name: frozenset([label]) for label, name in enumerate(clause.variables)} | dict(clause.subsets)
    scope = _Scope(columns, unions, is_measure=True)
    definitions = tuple(
        (label, _Scope(columns, unions, is_measure=False, own=label).resolve(condition))
        for label, condition in clause.definitions
    )
    return replace(
        clause,
        partition=tuple(_sort(sort, columns) for sort in clause.partition),
        order=tuple(_sort(sort, columns) for sort in clause.order),
        measures=tuple(replace(measure, expression=scope.resolve(measure.expression)) for measure in clause.measures),
        definitions=definitions,
    )


def resolve_output(
    expression: Expression, columns: Columns, alias: str | None, selected: Mapping[str, Expression] = _NO_COLUMNS
) -> Expression:
    """Resolve an expression outside the clause, such as in SELECT.

    The expression reads columns of the clause's result. ``selected`` has the resolved columns of SELECT by name, for
    ORDER BY. There, a name without an alias before it reads a column of ``selected`` before a column of the clause.
    """
    outputs = Columns(tuple(selected))

    def of_name(name: Name) -> Expression:
        if name.variable is None and outputs.has(name.column):
            return selected[outputs.find(name.column, name.position)]
        if name.variable is not None and (alias is None or name.variable != alias.upper()):
            raise PatternRefused(
                "alias", f"{name.variable.lower()} is not the alias of the MATCH_RECOGNIZE clause", name.position
            )
        return Column(columns.find(name.column, name.position))

    match expression:
        case Name():
            return of_name(expression)
        case Call() if expression.name in AGGREGATES or expression.of_rows:
            raise PatternRefused(
                "aggregate",
                f"{expression.name} outside MEASURES is not supported; aggregate the result",
                expression.position,
            )
        case Call() | Operation():
            operands = tuple(resolve_output(operand, columns, alias, selected) for operand in expression.operands)
            return _function(expression, operands) if isinstance(expression, Call) else _operation(expression, operands)
        case _:
            return expression


def _sort(sort: Sort, columns: Columns) -> Sort:
    return replace(sort, column=columns.find(sort.column, sort.position))


@dataclass(frozen=True)
class _Scope:
    """The names that an expression of DEFINE or MEASURES can use.

    ``own`` is the label of the DEFINE condition, or None in MEASURES.
    """

    columns: Columns
    unions: Mapping[str, frozenset[int]]
    is_measure: bool
    own: int | None = None

    def resolve(self, expression: Expression) -> Expression:
        match expression:
            case Name():
                labels = self._labels(expression.variable, expression.position)
                column = Column(self.columns.find(expression.column, expression.position))
                return At(column, self._place(labels), expression.position)
            case Operation():
                operands = tuple(map(self.resolve, expression.operands))
                return _at_one_place(_operation(expression, operands))
            case Call():
                return self._call(expression)
            case _:
                return expression

    def _call(self, call: Call) -> Expression:
        name = _OTHER_AGGREGATES.get(call.name, call.name)
        if call.of_rows and name != "count":
            raise PatternRefused("aggregate", f"{name}(*) has no meaning; only count(*) has", call.position)
        if call.semantics and name not in (*_LOGICAL, *AGGREGATES, "classifier"):
            raise PatternRefused(
                "semantics",
                f"{call.semantics.upper()} belongs to FIRST, LAST and aggregates, not to {name}",
                call.position,
            )
        if call.semantics == "final" and not self.is_measure:
            raise PatternRefused("semantics", "FINAL has a meaning in MEASURES only", call.position)
        if name in _LOGICAL or name in _PHYSICAL:
            return self._navigation(call)
        if name == "match_number":
            _require_operands(call, 0, 0)
            return MatchNumber()
        if name == "classifier":
            return self._classifier(call)
        if name in AGGREGATES:
            return self._aggregate(call, name)
        return _at_one_place(_function(call, tuple(map(self.resolve, call.operands))))

    def _classifier(self, call: Call) -> At:
        labels = self._classified(call)
        return At(LabelOfRow(), self._place(labels, is_final=call.semantics == "final"), call.position)

    def _classified(self, call: Call) -> frozenset[int] | None:
        _require_operands(call, 0, 1)
        if not call.operands:
            return None
        (operand,) = call.operands
        if not isinstance(operand, Name) or operand.variable is not None:
            raise PatternRefused("classifier", "CLASSIFIER takes a variable or nothing", call.position)
        return self._labels(
            operand.column.upper() if operand.column.upper() in self.unions else operand.column, call.position
        )

    def _navigation(self, call: Call) -> At:
        _require_operands(call, 1, 2)
        offset = _offset(call)
        if call.name in _PHYSICAL:
            (inner, *_), physical = call.operands, -offset if call.name == "prev" else offset
            if isinstance(inner, Call) and inner.name in _LOGICAL:
                target = self._logical(inner)
            else:
                target = self._content(inner, call)
            return At(target.content, self._simplified(replace(target.place, physical=physical)), call.position)
        return self._logical(call)

    def _logical(self, call: Call) -> At:
        _require_operands(call, 1, 2)
        target = self._content(call.operands[0], call)
        place = replace(
            target.place, is_first=call.name == "first", offset=_offset(call), is_final=call.semantics == "final"
        )
        return At(target.content, self._simplified(place), call.position)

    def _content(self, expression: Expression, call: Call) -> At:
        """Resolve the argument of a call. The argument is read at the last row with one of its labels.

        Calls that may not be nested in ``call`` are refused.
        """
        for part in walk(expression):
            if isinstance(part, Call) and (part.name in (*_LOGICAL, *_PHYSICAL, *AGGREGATES, "match_number")):
                raise PatternRefused(
                    "nesting",
                    f"{part.name} cannot be inside {call.name} here; only PREV and NEXT take a FIRST or LAST",
                    part.position,
                )
        labels, content = self._of_one_variable(expression, call)
        return At(content, Place(labels), call.position)

    def _of_one_variable(self, expression: Expression, call: Call) -> tuple[frozenset[int] | None, Expression]:
        """Return the labels that all names in the expression must share, and the resolved expression."""
        label_sets: list[frozenset[int] | None] = []

        def plain(part: Expression) -> Expression:
            match part:
                case Name():
                    label_sets.append(self._labels(part.variable, part.position))
                    return Column(self.columns.find(part.column, part.position))
                case Call() if part.name == "classifier":
                    label_sets.append(self._classified(part))
                    return LabelOfRow()
                case Call() if part.name == "match_number":
                    return MatchNumber()
                case Call():
                    return _function(part, tuple(map(plain, part.operands)))
                case Operation():
                    return _operation(part, tuple(map(plain, part.operands)))
                case _:
                    return part

        content = plain(expression)
        if len(set(label_sets)) > 1:
            raise PatternRefused("variables", f"all columns inside {call.name} belong to one variable", call.position)
        if not label_sets and call.name not in AGGREGATES:
            raise PatternRefused("no-column", f"{call.name} reads a column or CLASSIFIER", call.position)
        return (label_sets[0] if label_sets else None), content

    def _aggregate(self, call: Call, name: str) -> Aggregate:
        if not call.of_rows and not (name == "count" and not call.operands):
            number = _MOST_OPERANDS.get(name, 1)
            _require_operands(call, number, number)
        for part in (inner for operand in call.operands for inner in walk(operand)):
            if isinstance(part, Call) and part.name in (*_LOGICAL, *_PHYSICAL, *AGGREGATES):
                raise PatternRefused("nesting", f"{part.name} cannot be inside {name}", part.position)
        labels = self._labels(call.rows_of, call.position)
        operands: tuple[Expression, ...] = ()
        if call.operands:
            # resolved as one expression, so all operands must have the same variable
            labels, operation = self._of_one_variable(Operation("operands", call.operands, call.position), call)
            assert isinstance(operation, Operation)
            operands = operation.operands
        return Aggregate(name, operands, labels, call.semantics == "final", call.is_distinct, call.position)

    def _labels(self, variable: str | None, position: Position) -> frozenset[int] | None:
        if variable is None:
            return None
        if variable not in self.unions:
            raise PatternRefused(
                "unknown-variable", f"there is no variable {variable}; there are {', '.join(self.unions)}", position
            )
        return self.unions[variable]

    def _place(self, labels: frozenset[int] | None, *, is_final: bool = False) -> Place:
        return self._simplified(Place(labels, is_final=is_final))

    def _simplified(self, place: Place) -> Place:
        """Remove the labels from a place that is the current row.

        With its own label, a condition reads the last row with this label, which is the current row.
        """
        is_own = self.own is not None and place.labels is not None and self.own in place.labels
        if is_own and not place.is_first and place.offset == 0:
            return replace(place, labels=None)
        return place


def _offset(call: Call) -> int:
    if len(call.operands) < 2:
        return 1 if call.name in _PHYSICAL else 0
    operand = call.operands[1]
    if not isinstance(operand, Constant) or type(operand.value) is not int or not 0 <= operand.value <= _MAX_OFFSET:
        raise PatternRefused("offset", f"the offset of {call.name} is a whole number from 0 on", call.position)
    return operand.value


def _require_operands(call: Call, least: int, most: int) -> None:
    if not least <= len(call.operands) <= most:
        number = str(least) if least == most else f"{least} to {most}"
        raise PatternRefused(
            "function", f"{call.name} takes {number} operands, not {len(call.operands)}", call.position
        )


def _function(call: Call, operands: tuple[Expression, ...]) -> Operation:
    name = OTHER_NAMES.get(call.name, call.name)
    function = FUNCTIONS.get(name)
    if function is None:
        names = ", ".join(sorted(FUNCTIONS))
        raise PatternRefused("unknown-function", f"there is no function {call.name}; there are {names}", call.position)
    if call.is_distinct:
        raise PatternRefused("function", f"DISTINCT belongs to aggregates, not to {name}", call.position)
    if len(operands) < function.least or (function.most is not None and len(operands) > function.most):
        raise PatternRefused("function", f"{name} takes {function.arity} operands, not {len(operands)}", call.position)
    return _operation(Operation(name, operands, call.position), operands)


def _operation(operation: Operation, operands: tuple[Expression, ...]) -> Operation:
    if operation.name in NEEDS_CONSTANTS:
        most = NEEDS_CONSTANTS[operation.name]
        for place, operand in enumerate(operands[1:], 2):
            if not isinstance(operand, Constant):
                raise PatternRefused(
                    "constant", f"{operation.name} takes constants from operand 2 on", operation.position
                )
            if not _fits(operand.value, most):
                what = "a text" if most is None else f"a whole number from -{most} to {most},"
                raise PatternRefused(
                    "constant", f"operand {place} of {operation.name} must be {what} or NULL", operation.position
                )
    return replace(operation, operands=operands)


def _fits(value: Value, most: int | None) -> bool:
    return value is None or (isinstance(value, str) if most is None else type(value) is int and abs(value) <= most)


def _at_one_place(operation: Operation) -> Expression:
    """Return an operation as one expression at a row, if all its operands are read at this row.

    Otherwise, return the operation unchanged.
    """
    operands = [operand for operand in operation.operands if not isinstance(operand, Constant)]
    places = {operand.place if isinstance(operand, At) else None for operand in operands}
    are_labels = {LabelOfRow() in walk(operand) for operand in operands}
    if len(places) != 1 or None in places or len(are_labels) != 1:
        return operation
    (place,) = places
    assert place is not None
    contents = tuple(operand.content if isinstance(operand, At) else operand for operand in operation.operands)
    return At(replace(operation, operands=contents), place, operation.position)
