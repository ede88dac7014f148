"""Programs for conditions between steps, the event columns that the programs read, and memory to run them.

``nfa.kernels.conditions`` defines the instructions. A program is plain data. It refers to columns and texts by number,
so it is valid as long as these numbers do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.likeness import ANY_TEXT, like_tokens
from nfa.conditions.lookups import of_each_event
from nfa.conditions.predicates import BatchColumns, Leaf, evaluate, leaf_of
from nfa.conditions.residuals import event_of
from nfa.conditions.texts import DROPPED, TextPool
from nfa.conditions.values import FLOAT, TEXT, classified
from nfa.functions.table import FUNCTIONS
from nfa.kernels import conditions as kernel
from nfa.kernels import functions, likeness
from nfa.kernels.conditions import NIL, WIDTH, Stack
from nfa.syntax import (
    AGGREGATES,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Both,
    Call,
    Comparison,
    ComparisonOperator,
    Either,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Scalar,
    attributes_of,
)
from streams import EventBatch

MAX_ATOMS = 64  # per pattern, because each atom is one bit of a word

_SIGNS: Mapping[ComparisonOperator, int] = {
    "=": kernel.EQUAL,
    "!=": kernel.UNEQUAL,
    "<": kernel.LESS,
    "<=": kernel.AT_MOST,
    ">": kernel.GREATER,
    ">=": kernel.AT_LEAST,
}
_CALCULATIONS: Mapping[ArithmeticOperator, int] = {
    "+": kernel.PLUS,
    "-": kernel.MINUS,
    "*": kernel.TIMES,
    "/": kernel.OVER,
}
_AGGREGATE_CODES: Mapping[str, int] = {
    "count": kernel.COUNT,
    "sum": kernel.SUM,
    "avg": kernel.AVG,
    "min": kernel.MIN,
    "max": kernel.MAX,
    "first": kernel.FIRST,
    "last": kernel.LAST,
}


_APPLIED: Mapping[str, int] = {
    "if": kernel.CHOOSE,
    "between": kernel.BETWEEN,
    "abs": functions.ABS,
    "round": functions.ROUND,
    "floor": functions.FLOOR,
    "ceil": functions.CEIL,
    "sqrt": functions.SQRT,
    "ln": functions.LN,
    "pow": functions.POW,
    "mod": functions.MOD,
    "least": functions.LEAST,
    "greatest": functions.GREATEST,
    "distance": functions.DISTANCE,
}


class ColumnTable:
    """The columns of events that conditions read, numbered from 0 in the order of first use.

    The programs (bytecode) of conditions refer to columns by number.
    """

    def __init__(self) -> None:
        self._numbers: dict[Leaf, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(self._numbers)

    def number(self, leaf: Leaf) -> int:
        """Return the number of a column. A new column gets the next number."""
        return self._numbers.setdefault(leaf, len(self._numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionScope:
    """The scope of a condition: the events to which its names refer.

    Attributes:
        own: Alias of the current event, or None in WHERE.
        atoms: For each alias, its positive atoms as bits. A missing alias is unbound. In NOT and UNTIL, the own alias
            has no atoms.
        repetitions: For each alias, the number (below 64) of the innermost repetition that contains both the alias and
            the condition. A plain reference reads the event of the same iteration. If there is no such repetition, the
            alias is missing or has ``NIL``.
    """

    own: str | None = None
    atoms: Mapping[str, int] = field(default_factory=dict)
    repetitions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCondition:
    """The range of a condition's program in ``ConditionCompiler.code``, and the stack depth that the program needs."""

    start: int
    end: int
    depth: int


class ConditionCompiler:
    """Writes conditions as programs (bytecode for a kernel), one after another.

    ``columns`` numbers the columns that the conditions read. ``texts`` is the pool that numbers the texts of literals.
    These texts must remain in the pool; see ``literal_texts``.
    """

    def __init__(self, columns: ColumnTable, texts: TextPool) -> None:
        self._columns = columns
        self._texts = texts
        self._words: list[int] = []
        self._text_places: list[int] = []
        self._depth = 1
        self._code: NDArray[np.int64] | None = None  # the words as an array, built on request

    @property
    def code(self) -> NDArray[np.int64]:
        if self._code is None:
            self._code = np.array(self._words, np.int64)
        return self._code

    @property
    def depth(self) -> int:
        return self._depth

    @property
    def literal_texts(self) -> NDArray[np.int64]:
        """The numbers of the texts that the programs contain, sorted and without duplicates."""
        return np.unique(np.array([self._words[place] for place in self._text_places], np.int64))

    def renumber_texts(self, renumbering: NDArray[np.int64]) -> None:
        """Replace the numbers of texts in the programs after the pool was compacted.

        ``renumbering`` is the result of ``TextPool.compact``. Callers must fetch ``code`` again afterwards.
        """
        numbers = [int(renumbering[self._words[place]]) for place in self._text_places]
        if DROPPED in numbers:
            raise ValueError("a text that a condition holds was dropped")
        for place, number in zip(self._text_places, numbers, strict=True):
            self._words[place] = number
        self._code = None

    def compile_condition(self, expression: Expression, scope: ConditionScope) -> CompiledCondition:
        """Write the program of a condition whose names have been resolved and checked."""
        start, self._code = len(self._words), None
        depth = self._write(expression, scope)
        self._depth = max(self._depth, depth)
        return CompiledCondition(start=start, end=len(self._words), depth=depth)

    def _write(self, expression: Expression, scope: ConditionScope | _EventScope) -> int:
        """Append the instructions that compute an expression, and return the stack depth that they need."""
        match expression:
            case Literal():
                return self._write_constant(expression.value)
            case Attribute():
                return self._write_load(expression.path, expression.of, scope)
            case Comparison():
                return self._write_pair(expression, scope, kernel.COMPARE, _SIGNS[expression.operator])
            case Arithmetic():
                return self._write_pair(expression, scope, kernel.CALCULATE, _CALCULATIONS[expression.operator])
            case Both():
                return self._write_chain(expression.operands, scope, kernel.AND, kernel.JUMP_IF_FALSE)
            case Either():
                return self._write_chain(expression.operands, scope, kernel.OR, kernel.JUMP_IF_TRUE)
            case Call():
                return self._write_call(expression, scope)
            case InList() | Like() | IsNull() | Not() | Negative():
                return self._write_single(expression, scope)

    def _write_single(
        self, expression: InList | Like | IsNull | Not | Negative, scope: ConditionScope | _EventScope
    ) -> int:
        depth = self._write(expression.operand, scope)
        match expression:
            case IsNull():
                self._append(kernel.IS_NULL)
            case Not():
                self._append(kernel.NOT)
            case Negative():
                self._append(kernel.NEGATE)
            case InList():
                self._append(kernel.IN, len(expression.values))
                for literal in expression.values:
                    self._write_constant(literal.value)
                return max(depth, 2)
            case Like():
                tokens = _like_bytes(expression.pattern)
                words = [*tokens, *_links_of(tokens)]
                self._append(kernel.LIKE, len(tokens))
                self._words += [*words, *[0] * (-len(words) % WIDTH)]
        return depth

    def _write_pair(
        self, expression: Comparison | Arithmetic, scope: ConditionScope | _EventScope, operation: int, sign: int
    ) -> int:
        left = self._write(expression.left, scope)
        right = self._write(expression.right, scope)
        self._append(operation, sign)
        return max(left, 1 + right)

    def _write_chain(
        self, operands: Sequence[Expression], scope: ConditionScope | _EventScope, operation: int, jump: int
    ) -> int:
        """Append an AND, OR or coalesce of the operands, and return the stack depth that it needs.

        The program stops at the first operand that decides the value.
        """
        jumps = []
        depth = 1
        for index, operand in enumerate(operands):
            if index:
                jumps.append(self._append(jump))
            height = 0 if jump == kernel.JUMP_UNLESS_NULL else min(index, 1)
            depth = max(depth, height + self._write(operand, scope))
            if index and jump != kernel.JUMP_UNLESS_NULL:
                self._append(operation)
        for place in jumps:
            self._words[place + 1] = (len(self._words) - place) // WIDTH - 1
        return depth

    def _write_call(self, call: Call, scope: ConditionScope | _EventScope) -> int:
        if call.name == "coalesce":
            return self._write_chain(call.arguments, scope, NIL, kernel.JUMP_UNLESS_NULL)
        leaf, aliases = leaf_of(call), event_of(call)
        if leaf is not None and aliases:
            return self._write_load(leaf, aliases[0], scope)
        if leaf is not None and aliases == ():
            return self._write_newest(leaf, scope)
        if (spread := of_each_event(call)) is not call:
            return self._write(spread, scope)
        if call.name in FUNCTIONS:
            return self._write_function(call, scope)
        (argument,) = call.arguments
        if isinstance(scope, _EventScope):
            raise ValueError(f"{call.name} is inside another function of several events")
        if call.name in AGGREGATES:
            return self._write_aggregate(call.name, argument, scope)
        if call.name != "prev" or scope.own is None:
            raise ValueError(f"{call.name} has no meaning here")
        place = self._append(kernel.PREVIOUS, _signed(scope.atoms.get(scope.own, 0)))
        return self._write_body(place, 2, argument, _EventScope(scope.own, scope.own))

    def _write_function(self, call: Call, scope: ConditionScope | _EventScope) -> int:
        """Append a function call, and return the stack depth that the call needs.

        A call with only constant arguments is evaluated now, and its result is written. Calls that read one event do
        not occur here, because they are columns.
        """
        if event_of(call) == ():
            (value,) = evaluate(call, {}, 1).to_list()
            return self._write_constant(value)
        depth = max(place + self._write(argument, scope) for place, argument in enumerate(call.arguments))
        self._append(kernel.APPLY, _APPLIED[call.name], len(call.arguments))
        return depth

    def _write_aggregate(self, name: str, argument: Expression, scope: ConditionScope) -> int:
        aliases = {scope.own if attribute.of is None else attribute.of for attribute in attributes_of(argument)} or {
            scope.own
        }
        (alias, *others) = aliases
        if others or alias is None:
            raise ValueError(f"{name} runs over the events of one alias")
        atoms = _signed(scope.atoms.get(alias, 0))
        place = self._append(kernel.AGGREGATE, _AGGREGATE_CODES[name], atoms, int(alias == scope.own))
        return 1 + self._write_body(place, 4, argument, _EventScope(alias, scope.own))

    def _write_body(self, place: int, operand: int, argument: Expression, scope: _EventScope) -> int:
        start = len(self._words)
        depth = self._write(argument, scope)
        self._words[place + operand] = (len(self._words) - start) // WIDTH
        return depth

    def _write_load(self, leaf: Leaf, alias: str | None, scope: ConditionScope | _EventScope) -> int:
        is_own = alias is None or alias == scope.own
        if leaf == ():
            return self._write_constant(True)  # count(alias) counts events, so each event is true
        number = self._columns.number(leaf)
        if isinstance(scope, _EventScope):
            if (scope.own if alias is None else alias) != scope.alias:
                raise ValueError(f"{alias} is in a function of {scope.alias}")
            self._append(kernel.OWN, number)
        elif is_own:
            self._append(kernel.OWN, number)
        else:
            assert alias is not None
            atoms, repetition = scope.atoms.get(alias, 0), scope.repetitions.get(alias, NIL)
            self._append(kernel.ALIAS, number, _signed(atoms), repetition)
        return 1

    def _write_newest(self, leaf: Leaf, scope: ConditionScope | _EventScope) -> int:
        """Append an instruction that reads a column of an event, and return the necessary stack depth.

        In WHERE, the event is the newest event of the match. Elsewhere, it is the current event.
        """
        if isinstance(scope, _EventScope) or scope.own is not None:
            self._append(kernel.OWN, self._columns.number(leaf))
        else:
            atoms = reduce(or_, scope.atoms.values(), 0)
            self._append(kernel.ALIAS, self._columns.number(leaf), _signed(atoms), NIL)
        return 1

    def _write_constant(self, value: Scalar) -> int:
        kind, normal = classified(value)
        if kind == TEXT:
            self._text_places.append(len(self._words) + 2)
            word = self._texts.intern(normal)
        elif kind == FLOAT:
            word = int(np.array([normal], np.float64).view(np.int64)[0])
        else:
            word = normal or 0
        self._append(kernel.CONSTANT, kind, word)
        return 1

    def _append(self, operation: int, *operands: int) -> int:
        """Append an instruction, and return the index of its first word."""
        place = len(self._words)
        self._words += [operation, *operands, *[0] * (WIDTH - 1 - len(operands))]
        return place


def new_stack(depth: int, nodes: int) -> Stack:
    """Allocate the memory in which kernels run the programs of conditions.

    ``depth`` is the largest stack depth of the programs. ``nodes`` is at least the length of the longest chain of
    bound events. The field ``values`` has one more entry, in which kernels count the values that conditions read.
    """
    values = np.zeros(depth + 1, np.int64)
    return Stack(
        kinds=np.zeros(depth, np.uint8),
        values=values,
        floats=values.view(np.float64),
        chain=np.zeros(nodes, np.int32),
    )


def event_columns(
    batch: EventBatch,
    rows: NDArray[np.intp],
    columns: ColumnTable,
    texts: TextPool,
    reader: BatchColumns | None = None,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read the columns that the programs of conditions need, for the given events.

    The result has kinds (uint8) and values (int64), both of shape (rows, columns). Texts are interned in ``texts``.
    ``reader`` reads the same batch, so rows that it has parsed are not parsed again.
    """
    kinds = np.zeros((len(rows), len(columns)), np.uint8)
    values = np.zeros((len(rows), len(columns)), np.int64)
    leaf_values = (BatchColumns(batch) if reader is None else reader).read(rows, columns.leaves)
    for number, leaf in enumerate(columns.leaves):
        column = leaf_values[leaf]
        kinds[:, number] = column.kinds
        is_float, is_text = column.kinds == FLOAT, column.kinds == TEXT
        values[:, number] = np.where(is_float, column.floats.view(np.int64), column.integers)
        if is_text.any():
            values[is_text, number] = texts.intern_all(column.texts[is_text])
    return kinds, values


@dataclass(frozen=True, slots=True)
class _EventScope:
    """The scope inside an aggregate or ``prev``, where every name refers to the event for which the program runs."""

    alias: str
    own: str | None


def _like_bytes(pattern: str) -> list[int]:
    tokens: list[int] = []
    for character, is_wild in like_tokens(pattern):
        if is_wild:
            tokens.append(likeness.ANY_TEXT if character == ANY_TEXT else likeness.ANY_CHARACTER)
        else:
            tokens += character.encode("utf-8", "surrogatepass")
    return tokens


def _links_of(tokens: Sequence[int]) -> list[int]:
    """Return, for each token of a LIKE and for its end, the token at which matching continues after a mismatch.

    The tokens between two ``%`` are a segment. Within a segment, the result is the failure function of D. Knuth, J.
    Morris and V. Pratt (1977). The first token of a segment has ``NIL``: the search advances by a byte in the text.
    ``AGAIN`` marks a segment with ``_``, which is tried again one character later.
    """
    links: list[int] = []
    borders = [*(place for place, token in enumerate(tokens) if token == likeness.ANY_TEXT), len(tokens)]
    first = 0
    for border in borders:
        segment = tokens[first:border]
        if likeness.ANY_CHARACTER in segment:
            links += [likeness.AGAIN] * (border - first + 1)
        else:
            links += [NIL if size == 0 else first + length for size, length in enumerate(_borders_of(segment))]
        first = border + 1
    return links


def _borders_of(segment: Sequence[int]) -> list[int]:
    """Return, for each prefix of the tokens, the length of its longest proper prefix that is also its suffix."""
    lengths = [0] * (len(segment) + 1)
    size = 0
    for place in range(1, len(segment)):
        while size and segment[place] != segment[size]:
            size = lengths[size]
        size += int(segment[place] == segment[size])
        lengths[place + 1] = size
    return lengths


def _signed(atoms: int) -> int:
    if atoms >> MAX_ATOMS:
        raise ValueError(f"a pattern has at most {MAX_ATOMS} steps here")
    return atoms - (1 << MAX_ATOMS) if atoms >> (MAX_ATOMS - 1) else atoms
