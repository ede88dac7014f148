"""Translates patterns of streams that are written as SQL, if they have the same meaning over an unbounded stream.

This holds for sequences of a fixed number of rows. At most one match begins at a row, so preference among matches does
not matter. Matches also end in the order in which they begin. All other constructs are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import accumulate
from typing import NoReturn, TypeAlias

from nfa.errors import PatternRefused
from nfa.language.limits import MAX_TEXT
from nfa.language.words import CONDITION_WORDS, STEP_WORDS, is_writable, quoted
from nfa.sql.conditions import position_of
from nfa.sql.parsing import parse_named
from nfa.sql.resolving import resolve_clause
from nfa.sql.syntax import (
    Aggregate,
    Alternation,
    At,
    Clause,
    Column,
    Concatenation,
    Constant,
    Expression,
    Labelled,
    LabelOfRow,
    MatchNumber,
    Node,
    Operation,
    Place,
    Repetition,
    Value,
)
from nfa.syntax import NOWHERE, Position

_WORDS = STEP_WORDS | CONDITION_WORDS | frozenset("TYPE TIME KEY ID".split())
_OF_EVENT = ("type", "time", "id", "key")
_SIGNS: Mapping[str, str] = {
    **{name: f" {name} " for name in ("=", "<", "<=", ">", ">=", "+", "-", "*")},
    "<>": " != ",
    "and": " AND ",
    "or": " OR ",
}
_FUNCTIONS = frozenset(["abs", "lower", "upper", "length", "coalesce"])
_MOST_STEPS = 64
_Part: TypeAlias = tuple[str, Position]
_CALLED: Mapping[type, str] = {Alternation: "| or PERMUTE", Repetition: "a quantifier without a fixed number"}


@dataclass(frozen=True, slots=True)
class Translation:
    """A pattern as text of the pattern language.

    Attributes:
        origins: For each part of the text, in order: the index at which it begins, and the position of its origin.
    """

    text: str
    origins: tuple[tuple[int, Position], ...]

    def origin(self, position: Position) -> Position:
        """Return the position in the text of SQL from which the part at a position of the translated text comes."""
        lines = self.text.split("\n")
        index = sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column - 1
        return [place for start, place in self.origins if start <= index][-1]


def translated(text: str) -> Translation:
    """Translate ``PATTERN name MATCH_RECOGNIZE (…)`` to a text of the pattern language."""
    name, parsed_clause = parse_named(text)
    clause = resolve_clause(parsed_clause, None)
    _check(clause)
    with _placed(clause.position):
        steps = tuple(_steps(clause.pattern))
        if len(steps) > _MOST_STEPS:
            _refuse(f"a pattern of {len(steps)} rows", f"at most {_MOST_STEPS} are allowed")
        parts = _Writer(clause, steps).parts(name)
        starts = list(accumulate((len(part) for part, _ in parts), initial=0))
        if starts[-1] > MAX_TEXT:
            _refuse(
                "a clause with conditions of this size",
                f"as a pattern they have {starts[-1]} characters, at most {MAX_TEXT} are allowed",
            )
        origins = zip(starts, (position for _, position in parts), strict=False)
        return Translation("".join(part for part, _ in parts), tuple(origins))


class _Unplaced(PatternRefused):
    """A refusal that is raised where the position is unknown. ``_placed`` adds the position."""


@contextmanager
def _placed(position: Position) -> Iterator[None]:
    try:
        yield
    except _Unplaced as error:
        raise PatternRefused(error.reason, error.message.partition(": ")[2], position) from None


def _refuse(construct: str, reason: str, position: Position = NOWHERE) -> NoReturn:
    kind = PatternRefused if position != NOWHERE else _Unplaced
    raise kind("stream-sql", f"{construct} has no meaning as a pattern of a stream: {reason}", position)


def _check(clause: Clause) -> None:
    """Refuse a clause that a stream cannot run: other rows, skip rules, orders or partitions.

    Pattern and expressions are checked when they are translated.
    """
    if clause.rows != "one":
        _refuse("ALL ROWS PER MATCH", "a match is one alert; write ONE ROW PER MATCH", clause.position)
    if clause.skip.rule not in ("past_last_row", "to_next_row"):
        _refuse("AFTER MATCH SKIP TO a variable", "write PAST LAST ROW or TO NEXT ROW", clause.skip.position)
    names = [sort.column for sort in clause.order]
    if names != ["time"] or clause.order[0].is_descending:
        place = clause.order[0].position if clause.order else clause.position
        _refuse("this order", "events are in the order of their time; write ORDER BY time", place)
    if not clause.partition:
        _refuse("a clause without PARTITION BY", "write PARTITION BY key, the correlation key", clause.position)


def _steps(node: Node) -> Sequence[int]:
    match node:
        case Labelled():
            return [node.label]
        case Concatenation() if node.parts:
            return [label for part in node.parts for label in _steps(part)]
        case Repetition() if node.least == node.most:
            part = _steps(node.part)
            return [*part] * node.least if len(part) * node.least <= _MOST_STEPS else [0] * (_MOST_STEPS + 1)
    name = _CALLED.get(type(node), "an anchor, an exclusion or ()")
    _refuse(name, "it needs the preferred match; write a fixed sequence of variables")


@dataclass(frozen=True)
class _Writer:
    clause: Clause
    steps: Sequence[int]

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        names, step_aliases = self.clause.variables, list[str]()
        for place, label in enumerate(self.steps):
            same = [step for step, other_label in enumerate(self.steps) if other_label == label]
            step_aliases.append(names[label] if len(same) == 1 else f"{names[label]}_{same.index(place) + 1}")
        if len(set(step_aliases)) < len(step_aliases):
            _refuse("these names of variables", "they are equal once repeated ones are numbered; rename one")
        return tuple(step_aliases)

    def parts(self, name: str) -> list[_Part]:
        """Return the text of the pattern in parts, each with the position of its origin."""
        place = self.clause.position
        parts: list[_Part] = [(f"PATTERN {self._name(name)}\nEVENT {'SEQ(' * (len(self.steps) > 1)}", place)]
        for step in range(len(self.steps)):
            parts += [(", " * (step > 0), place), *self._step(step)]
        # key is not quoted, because in quotes it would be an attribute
        keys = ", ".join(quoted(sort.column) for sort in self.clause.partition)
        parts += [(")" * (len(self.steps) > 1), place), (f"\nWHERE [{keys}]", self.clause.partition[0].position)]
        if self.clause.within is not None:
            parts.append((f"\nWITHIN {self._within()}", place))
        parts.append((f"\nSELECT STRICT{' SKIP PAST LAST' * (self.clause.skip.rule == 'past_last_row')}", place))
        end = len(self.steps) - 1
        for number, measure in enumerate(self.clause.measures):
            with _placed(measure.position):
                column = f"{self._value(measure.expression, end, None)} AS {self._name(measure.name)}"
            parts.append((f"{', ' if number else f'{chr(10)}RETURN '}{column}", measure.position))
        return parts

    def _within(self) -> str:
        match self.clause.within:
            case Constant(value=timedelta() as length) if length > timedelta():
                return f"{length // timedelta(microseconds=1)} us"
        _refuse("this WITHIN", "write a positive INTERVAL")

    def _step(self, place: int) -> list[_Part]:
        condition = dict(self.clause.definitions).get(self.steps[place])
        position = self.clause.position if condition is None else position_of(condition)
        types, type_position, remaining = "_", position, [condition] if condition is not None else []
        for conjunct in _conjuncts(condition):
            if (type_names := _types_of(conjunct)) is not None:
                types, type_position = "|".join(self._name(name) for name in type_names), position_of(conjunct)
                remaining = [candidate for candidate in _conjuncts(condition) if candidate != conjunct]
                break
        parts: list[_Part] = [(f"{types} {self._name(self.aliases[place])}", type_position)]
        with _placed(position):
            for number, conjunct in enumerate(remaining):
                value = self._value(conjunct, place, place)
                parts.append((f"{' AND ' if number else ' ['}({value})", position_of(conjunct)))
        return [*parts, ("]" * (len(parts) > 1), position)]

    def _value(self, expression: Expression, current_step: int, own_step: int | None) -> str:
        """Return an expression as text of the pattern language.

        ``own_step`` is the step whose condition has the expression, or None for a measure.
        """
        match expression:
            case Constant():
                return _constant(expression.value)
            case At():
                return self._at(expression, current_step, own_step)
            case Operation():
                return self._operation(
                    expression, [self._value(operand, current_step, own_step) for operand in expression.operands]
                )
            case Aggregate(name="count", operands=()):
                return str(len(self._places(expression.labels, current_step)))
            case Aggregate():
                _refuse(f"{expression.name}", "name the rows instead, as A.x + B.x", expression.position)
            case MatchNumber():
                _refuse("MATCH_NUMBER()", "matches of a stream are not numbered")
        raise AssertionError(expression)

    def _at(self, expression: At, current_step: int, own_step: int | None) -> str:
        step = self._target(expression.place, current_step, expression.position)

        def read(part: Expression) -> str:
            match part:
                case Constant():
                    return _constant(part.value)
                case _ if step is None and not isinstance(part, Operation):
                    return "NULL"
                case LabelOfRow() if step is not None:
                    return _constant(self.clause.variables[self.steps[step]])
                case Column() if step is not None:
                    return self._column(part.name, step, own_step)
                case Operation():
                    return self._operation(part, [read(operand) for operand in part.operands])
            raise AssertionError(part)

        return read(expression.content)

    def _places(self, labels: frozenset[int] | None, current_step: int) -> list[int]:
        return [step for step in range(current_step + 1) if labels is None or self.steps[step] in labels]

    def _target(self, place: Place, current_step: int, position: Position) -> int | None:
        """Return the step of the row at a place, or None if the match has too few rows with the labels.

        Rows outside the match and rows after the current row are refused.
        """
        candidates = self._places(place.labels, current_step)
        if not place.is_first:
            candidates.reverse()
        if place.offset >= len(candidates):
            return None
        step = candidates[place.offset] + place.physical
        if not 0 <= step <= current_step:
            _refuse(
                "a row outside the match, or after the current one", "a pattern reads its own events only", position
            )
        return step

    def _column(self, name: str, step: int, own_step: int | None) -> str:
        alias = self._name(self.aliases[step])
        if name in _OF_EVENT:
            return f"{name}({alias})"
        return self._name(name) if step == own_step else f"{alias}.{self._name(name)}"

    def _operation(self, operation: Operation, operands: Sequence[str]) -> str:
        name = operation.name
        if name in _SIGNS:
            return "(" + _SIGNS[name].join(operands) + ")"
        if name in _FUNCTIONS:
            return f"{name}({', '.join(operands)})"
        if name == "not":
            return f"(NOT {operands[0]})"
        if name == "negative":
            return f"(-{operands[0]})"
        if name == "is_null":
            return f"({operands[0]} IS NULL)"
        if name == "in" and all(isinstance(operand, Constant) for operand in operation.operands[1:]):
            return f"({operands[0]} IN ({', '.join(operands[1:])}))"
        if name == "like" and len(operands) == 2 and "\\" not in operands[1]:
            return f"({operands[0]} LIKE {operands[1]})"
        _refuse(
            name.removeprefix("cast_"),
            "the pattern language has no such operation with this meaning",
            operation.position,
        )

    def _name(self, name: str) -> str:
        if not is_writable(name):
            _refuse(f"the name {name!r}", "names of patterns have no back quotes")
        return quoted(name, _WORDS)


def _conjuncts(condition: Expression | None) -> Sequence[Expression]:
    if isinstance(condition, At) and isinstance(condition.content, Operation) and condition.content.name == "and":
        return [At(operand, condition.place) for operand in condition.content.operands]
    if isinstance(condition, Operation) and condition.name == "and":
        return [part for operand in condition.operands for part in _conjuncts(operand)]
    return [] if condition is None else [condition]


def _types_of(condition: Expression) -> Sequence[str] | None:
    match condition:
        case At(content=Operation(name="=" | "in", operands=(Column(name="type"), *values)), place=place):
            if place == Place() and all(
                isinstance(constant, Constant) and isinstance(constant.value, str) for constant in values
            ):
                return [str(constant.value) for constant in values if isinstance(constant, Constant)]
    return None


def _constant(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | float():
            return repr(value)
        case str():
            doubled = value.replace("'", "''")
            return f"'{doubled}'"
        case timedelta() if value > timedelta():
            return f"{value // timedelta(microseconds=1)} us"
    _refuse(f"the constant {value}", "dates, times and intervals below 1 us are not constants of patterns")
