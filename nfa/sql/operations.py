"""Operators and scalar functions of queries, over Arrow columns.

Each operation has Arrow arrays as operands and result, or scalars if all operands are constants. Nulls follow SQL, and
division by zero gives null. ``OPERATIONS`` and ``FUNCTIONS`` are the complete tables. ``column_of`` applies them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nfa.errors import PatternRefused
from nfa.sql.syntax import Constant, Expression, Operation
from nfa.syntax import Position


@dataclass(frozen=True, slots=True)
class Function:
    """A function of queries: its evaluation over columns, and how many operands it takes.

    If ``most`` is None, the number of operands has no upper bound.
    """

    column: Callable[..., Any]
    least: int
    most: int | None

    @property
    def arity(self) -> str:
        """The number of operands in words."""
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


def _compared(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compared(left: Any, right: Any) -> Any:
        left, right = _alike(left, right)
        try:
            return compare(left, right)
        except pa.ArrowInvalid:
            if not _has_nanoseconds(left) and not _has_nanoseconds(right):
                raise
        (wholes, rests), (other_wholes, other_rests) = map(_microseconds_of, (left, right))
        are_equal = pc.equal(wholes, other_wholes)
        return pc.if_else(are_equal, compare(rests, other_rests), compare(wholes, other_wholes))

    return compared


def _has_nanoseconds(operand: Any) -> bool:
    kind = operand.type
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns"


def _microseconds_of(operand: Any) -> tuple[Any, Any]:
    """Return times or durations as whole microseconds, rounded towards 1970 or 0, and the remaining nanoseconds."""
    if not _has_nanoseconds(operand):
        whole = operand.cast(_in_microseconds(operand.type)).cast(pa.int64())
        return whole, pc.subtract(whole, whole)
    number = operand.cast(pa.int64())
    whole = pc.divide(number, 1_000)
    return whole, pc.subtract(number, pc.multiply(whole, 1_000))


def _in_microseconds(kind: Any) -> Any:
    return pa.duration("us") if pa.types.is_duration(kind) else pa.timestamp("us", getattr(kind, "tz", None))


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two operands in types that can be compared.

    A date becomes its midnight, and a time without a zone becomes a time in UTC.
    """
    if pa.types.is_temporal(left.type) and pa.types.is_temporal(right.type):
        if pa.types.is_date(left.type) != pa.types.is_date(right.type):
            left, right = _as_timestamp(left), _as_timestamp(right)
        zones = [getattr(operand.type, "tz", None) for operand in (left, right)]
        if zones[0] and not zones[1] and pa.types.is_timestamp(right.type):
            right = right.cast(pa.timestamp(right.type.unit, zones[0]))
        elif zones[1] and not zones[0] and pa.types.is_timestamp(left.type):
            left = left.cast(pa.timestamp(left.type.unit, zones[1]))
    return left, right


def _as_timestamp(operand: Any) -> Any:
    return operand.cast(pa.timestamp("us")) if pa.types.is_date(operand.type) else operand


def _add(left: Any, right: Any) -> Any:
    return _known(pc.add_checked, _beside(left, right), _beside(right, left))


def _subtract(left: Any, right: Any) -> Any:
    return _known(pc.subtract_checked, *_alike(_beside(left, right), right))


def _multiply(left: Any, right: Any) -> Any:
    return _known(pc.multiply_checked, left, right)


def _known(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Arrow also computes with the values that are stored under null times and intervals, and these may overflow."""
    try:
        return function(left, right)
    except pa.ArrowInvalid:
        is_known = pc.and_(pc.is_valid(left), pc.is_valid(right))
        if pc.all(is_known).as_py():
            raise
        operands = (pc.if_else(is_known, operand, pa.scalar(0, operand.type)) for operand in (left, right))
        result = function(*operands)
        return pc.if_else(is_known, result, pa.scalar(None, result.type))


def _beside(operand: Any, other: Any) -> Any:
    return _as_timestamp(operand) if pa.types.is_duration(other.type) else operand


def _divide(left: Any, right: Any) -> Any:
    if pa.types.is_duration(left.type) and not _has_nanoseconds(left):
        left = left.cast(pa.duration("us"))
    return pc.divide_checked(left, _nonzero(right))


def _nonzero(operand: Any) -> Any:
    if pa.types.is_null(operand.type):
        return operand
    return pc.if_else(pc.equal(operand, pa.scalar(0, operand.type)), pa.scalar(None, operand.type), operand)


def _remainder(left: Any, right: Any) -> Any:
    if pa.types.is_signed_integer(right.type):  # the quotient by -1 may be too large, the remainder is 0 as by 1
        right = pc.if_else(pc.equal(right, pa.scalar(-1, right.type)), pa.scalar(1, right.type), right)
    quotient = pc.divide_checked(left, _nonzero(right))
    if pa.types.is_floating(quotient.type):
        quotient = pc.trunc(quotient)
    return pc.subtract_checked(left, pc.multiply_checked(quotient, right))


def _joined(*operands: Any) -> Any:
    return pc.binary_join_element_wise(*(_as_text(operand) for operand in operands), "", null_handling="emit_null")


def _joined_non_null(*operands: Any) -> Any:
    return pc.binary_join_element_wise(*(_as_text(operand) for operand in operands), "", null_handling="skip")


def _as_text(operand: Any) -> Any:
    return operand if pa.types.is_string(operand.type) else operand.cast(pa.string())


def _is_distinct(left: Any, right: Any) -> Any:
    are_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.if_else(are_null, False, pc.coalesce(_compared(pc.not_equal)(left, right), True))


def _in(value: Any, *others: Any) -> Any:
    return reduce(pc.or_kleene, (_compared(pc.equal)(value, other) for other in others))


def _case(*operands: Any) -> Any:
    """Return the value of CASE. The operands are conditions and values in turn.

    If the number of operands is odd, the last one is the value of ELSE.
    """
    result = operands[-1] if len(operands) % 2 else pa.scalar(None)
    for place in range(len(operands) // 2 * 2 - 2, -1, -2):
        result = pc.if_else(pc.coalesce(operands[place], False), operands[place + 1], result)
    return result


def _with_constants(column: Callable[..., Any], kind: type[int | str]) -> Callable[..., Any]:
    """Return a function of a column and constants. Its result is null if a constant is null."""

    def values(operand: Any, *constants: Any) -> Any:
        if not all(constant.is_valid for constant in constants):
            return column(pc.if_else(pa.scalar(None, pa.bool_()), operand, operand), kind())
        return column(operand, *(constant.as_py() for constant in constants))

    return values


def _like(text: Any, pattern: str, escape: str | None = None) -> Any:
    return pc.match_substring_regex(text, regex_of(pattern, escape))


def regex_of(pattern: str, escape: str | None) -> str:
    """Return the regular expression of a LIKE pattern."""
    parts, is_escaped = [], False
    for sign in pattern:
        if is_escaped or sign not in ("%", "_", escape):
            parts.append(re.escape(sign))
            is_escaped = False
        elif sign == escape:
            is_escaped = True
        else:
            parts.append(".*" if sign == "%" else ".")
    return f"(?s)^(?:{''.join(parts)})\\z"


def _nullif(left: Any, right: Any) -> Any:
    equal = pc.coalesce(_compared(pc.equal)(left, right), False)
    return pc.if_else(equal, pa.scalar(None, left.type), left)


def _substr(text: Any, first: int, length: int | None = None) -> Any:
    begin = first - 1 if first > 0 else first
    if first == 0 or (length is not None and length <= 0):
        return pc.if_else(pc.is_null(text), text, "")
    end = None if length is None else begin + length
    return pc.utf8_slice_codeunits(text, begin, end if first > 0 or (end is not None and end < 0) else None)


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*operands, skip_nulls=False)


def _whole(operand: Any) -> Any:
    if pa.types.is_floating(operand.type):
        operand = pc.round(operand, round_mode="half_towards_infinity")
        try:
            return operand.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"overflow: {error}") from error
    return operand.cast(pa.int64())


def _cut(operand: Any, length: int | None = None) -> Any:
    text = operand if pa.types.is_string(operand.type) else operand.cast(pa.string())
    return text if length is None else pc.utf8_slice_codeunits(text, 0, length)


def _rounded(operand: Any, digits: int = 0) -> Any:
    return pc.round(operand, digits, round_mode="half_towards_infinity")


def _duration_in(unit_us: int) -> Callable[[Any], Any]:
    def number(operand: Any) -> Any:
        durations = operand.cast(pa.duration("us"), safe=not _has_nanoseconds(operand))
        return pc.divide(durations.cast(pa.int64()), unit_us)

    return number


def _timestamp(operand: Any) -> Any:
    """Nanoseconds are rounded down to whole microseconds."""
    if pa.types.is_duration(operand.type) or not _has_nanoseconds(operand):
        return operand.cast(pa.timestamp("us"))
    whole, rest = _microseconds_of(operand)
    return pc.if_else(pc.less(rest, 0), pc.subtract(whole, 1), whole).cast(pa.timestamp("us"))


def _fixed(column: Callable[..., Any], number: int) -> Function:
    return Function(column, number, number)


_COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

OPERATIONS: Mapping[str, Function] = {
    **{name: _fixed(_compared(compare), 2) for name, compare in _COMPARISONS.items()},
    "and": Function(lambda *all_of: reduce(pc.and_kleene, all_of), 2, None),
    "or": Function(lambda *any_of: reduce(pc.or_kleene, any_of), 2, None),
    "not": _fixed(pc.invert, 1),
    "is_null": _fixed(pc.is_null, 1),
    "is_distinct": _fixed(_is_distinct, 2),
    "+": _fixed(_add, 2),
    "-": _fixed(_subtract, 2),
    "*": _fixed(_multiply, 2),
    "/": _fixed(_divide, 2),
    "%": _fixed(_remainder, 2),
    "negative": _fixed(pc.negate_checked, 1),
    "||": _fixed(_joined, 2),
    "in": Function(_in, 2, None),
    "like": Function(_with_constants(_like, str), 2, 3),
    "case": Function(_case, 2, None),
    "cast_bigint": _fixed(_whole, 1),
    "cast_double": _fixed(lambda operand: operand.cast(pa.float64()), 1),
    "cast_varchar": Function(_with_constants(_cut, int), 1, 2),
    "cast_boolean": _fixed(lambda operand: operand.cast(pa.bool_()), 1),
    "cast_timestamp": _fixed(_timestamp, 1),
    "cast_date": _fixed(lambda operand: operand.cast(pa.date32()), 1),
}
"""The operators and special forms of the grammar by name; queries cannot write these names as calls."""

FUNCTIONS: Mapping[str, Function] = {
    "abs": _fixed(pc.abs_checked, 1),
    "sign": _fixed(pc.sign, 1),
    "ceil": _fixed(pc.ceil, 1),
    "floor": _fixed(pc.floor, 1),
    "round": Function(_with_constants(_rounded, int), 1, 2),
    "sqrt": _fixed(pc.sqrt, 1),
    "ln": _fixed(pc.ln, 1),
    "exp": _fixed(pc.exp, 1),
    "power": _fixed(lambda base, exponent: pc.power(base.cast(pa.float64()), exponent.cast(pa.float64())), 2),
    "mod": _fixed(_remainder, 2),
    "greatest": Function(_extreme(pc.max_element_wise), 1, None),
    "least": Function(_extreme(pc.min_element_wise), 1, None),
    "coalesce": Function(pc.coalesce, 1, None),
    "nullif": _fixed(_nullif, 2),
    "if": Function(_case, 2, 3),
    "lower": _fixed(pc.utf8_lower, 1),
    "upper": _fixed(pc.utf8_upper, 1),
    "length": _fixed(pc.utf8_length, 1),
    "trim": _fixed(pc.utf8_trim_whitespace, 1),
    "substr": Function(_with_constants(_substr, int), 2, 3),
    "concat": Function(_joined_non_null, 1, None),
    "starts_with": _fixed(_with_constants(pc.starts_with, str), 2),
    "year": _fixed(pc.year, 1),
    "month": _fixed(pc.month, 1),
    "day": _fixed(pc.day, 1),
    "hour": _fixed(pc.hour, 1),
    "minute": _fixed(pc.minute, 1),
    "second": _fixed(pc.second, 1),
    "to_seconds": _fixed(_duration_in(1_000_000), 1),
    "to_milliseconds": _fixed(_duration_in(1_000), 1),
}
"""The functions by name in queries."""

OTHER_NAMES: Mapping[str, str] = {
    "substring": "substr",
    "pow": "power",
    "ceiling": "ceil",
    "char_length": "length",
    "iff": "if",
    "nvl": "coalesce",
    "ifnull": "coalesce",
}
"""The names of functions in other dialects."""

NEEDS_CONSTANTS: Mapping[str, int | None] = {"starts_with": None, "substr": 2**31 - 1, "round": 15}
"""The functions whose operands after the first are constants: texts (None), or whole numbers of at most this size."""


_OF_NULLS = (
    None,
    pa.bool_(),
    pa.int64(),
    pa.string(),
    pa.timestamp("us"),
)  # types that are tried in turn for a column of nulls

Reader = Callable[[Expression], Any]
"""A function that returns the column or scalar of an expression that is neither an operation nor a constant."""


def column_of(expression: Expression, read: Reader, size: int) -> Any:
    """Return the value of an expression on each of ``size`` rows as an Arrow array.

    Operands of a wrong type are refused.
    """
    values = value_of(expression, read)
    if isinstance(values, pa.Scalar):
        return pa.nulls(size, values.type) if not values.is_valid else pa.repeat(values, size)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def value_of(expression: Expression, read: Reader) -> Any:
    """Return the value of an expression as ``column_of`` does, except that a constant is returned as a scalar."""
    match expression:
        case Constant():
            return pa.scalar(expression.value)
        case Operation():
            operands = [value_of(operand, read) for operand in expression.operands]
            return applied(expression.name, operands, expression.position)
        case _:
            return read(expression)


def applied(name: str, operands: list[Any], position: Position) -> Any:
    """Return the result of an operation on Arrow arrays or scalars.

    A column of only nulls has no type in Arrow. It gets a type that fits the operation. Nanoseconds become microseconds
    if a value does not fit into nanoseconds and none is rounded.
    """
    column = (OPERATIONS.get(name) or FUNCTIONS[name]).column
    has_nulls = any(pa.types.is_null(operand.type) for operand in operands)
    has_nanoseconds = any(map(_has_nanoseconds, operands))
    errors: list[pa.ArrowException] = []
    for kind in (*(_OF_NULLS if has_nulls else _OF_NULLS[:1]), *(["us"] if has_nanoseconds else [])):
        try:
            return without_nan(column(*(_converted(operand, kind) for operand in operands)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            errors.append(error)
    kinds = " and ".join(str(operand.type) for operand in operands)
    is_large = "overflow" in str(errors[0]) or (has_nanoseconds and "out of bounds" in str(errors[0]))
    problem = "its result is too large" if is_large else f"it does not take {kinds}"
    if is_large and has_nanoseconds:
        problem = (
            "beside nanoseconds, times are from the end of 1677 to the start of 2262 and intervals up to 292 years; "
            "CAST(… AS timestamp) rounds a time to microseconds, to_milliseconds(…) makes a number of an interval"
        )
    word = name.removeprefix("cast_")
    reason = "overflow" if is_large else "type"
    raise PatternRefused(reason, f"{word} fails: {problem} ({_first_line(errors[0])})", position) from errors[0]


def _converted(operand: Any, kind: Any) -> Any:
    """Convert nanoseconds to microseconds if ``kind`` is "us". Otherwise, nulls without a type become ``kind``."""
    if kind != "us":
        return plain(operand, kind)
    return operand.cast(_in_microseconds(operand.type)) if _has_nanoseconds(operand) else plain(operand)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def without_nan(values: Any) -> Any:
    """Return a column or scalar with null in place of NaN."""
    if not pa.types.is_floating(values.type):
        return values
    is_nan = pc.is_nan(values)
    return pc.if_else(is_nan, pa.scalar(None, values.type), values) if pc.any(is_nan).as_py() else values


def plain(operand: Any, of_nulls: Any = None) -> Any:
    """Convert a column to a type that all functions accept.

    Dictionaries, large texts and text views become plain texts. Nulls without a type become ``of_nulls``, if given.
    """
    kind = operand.type
    if pa.types.is_null(kind) and of_nulls is not None:
        return operand.cast(of_nulls)
    if pa.types.is_dictionary(kind):
        return operand.cast(kind.value_type)
    if pa.types.is_large_string(kind) or (hasattr(pa.types, "is_string_view") and pa.types.is_string_view(kind)):
        return operand.cast(pa.string())
    return operand
