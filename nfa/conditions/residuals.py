"""Splits a step condition into conjuncts of the current event alone, and conjuncts that read earlier bound events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from nfa.syntax import (
    AGGREGATES,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Comparison,
    Either,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    attributes_of,
    calls_of,
    operands_of,
)


def split_condition(atom: Atom) -> tuple[Expression | None, Expression | None]:
    """Split a step's condition into its unary part and its residual, both without the step's own alias.

    A condition holds if and only if every conjunct is true, so conjuncts can be tested separately. The unary part has
    the conjuncts that read the current event only. The residual has the other conjuncts, in order. A part without
    conjuncts is None.
    """
    if atom.condition is None:
        return None, None
    conjuncts = list(conjuncts_of(without_alias(atom.condition, atom.alias)))
    unary = [conjunct for conjunct in conjuncts if is_unary(conjunct)]
    return all_of(unary), all_of([conjunct for conjunct in conjuncts if not is_unary(conjunct)])


def is_unary(expression: Expression) -> bool:
    """Check whether an expression without its own alias (see ``without_alias``) reads only the current event."""
    match expression:
        case Attribute():
            return expression.of is None
        case Call() if expression.name == "prev" or expression.name in AGGREGATES:
            return False
        case _:
            return all(is_unary(operand) for operand in operands_of(expression))


def event_of(expression: Expression) -> tuple[str | None, ...] | None:
    """Return the alias of the only event that an expression reads, as a tuple.

    The tuple is empty if the expression reads no event. The result is None if the expression may read several events.
    """
    aliases = {attribute.of for attribute in attributes_of(expression)}
    if len(aliases) > 1 or any(call.name == "prev" or call.name in AGGREGATES for call in calls_of(expression)):
        return None
    return tuple(aliases)


def without_alias(expression: Expression, alias: str | None) -> Expression:
    """Return the expression without the step's own alias, so that equal conditions of two steps are equal values."""
    return with_attributes(
        expression, lambda attribute: replace(attribute, of=None) if attribute.of == alias else attribute
    )


def with_attributes(expression: Expression, change: Callable[[Attribute], Expression]) -> Expression:
    """Replace every attribute of an expression by the result of ``change``."""
    return rewritten(expression, lambda part: change(part) if isinstance(part, Attribute) else None)


def rewritten(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Replace each outermost subexpression for which ``change`` returns a replacement."""
    rewrite = partial(rewritten, change=change)
    if (replacement := change(expression)) is not None:
        return replacement
    match expression:
        case Literal() | Attribute():
            return expression
        case Comparison() | Arithmetic():
            return replace(expression, left=rewrite(expression.left), right=rewrite(expression.right))
        case IsNull() | Not() | Negative() | Like() | InList():
            return replace(expression, operand=rewrite(expression.operand))
        case Both() | Either():
            return replace(expression, operands=tuple(map(rewrite, expression.operands)))
        case Call():
            return replace(expression, arguments=tuple(map(rewrite, expression.arguments)))


def conjuncts_of(expression: Expression) -> Iterator[Expression]:
    """Yield the conjuncts of a condition. BETWEEN is split into its two comparisons."""
    if isinstance(expression, Both):
        for operand in expression.operands:
            yield from conjuncts_of(operand)
    elif isinstance(expression, Call) and expression.name == "between":
        value, low, high = expression.arguments
        yield Comparison(">=", value, low)
        yield Comparison("<=", value, high)
    else:
        yield expression


def all_of(conjuncts: Sequence[Expression]) -> Expression | None:
    """Return the conjunction of the given conditions, or None if there are none."""
    if not conjuncts:
        return None
    return conjuncts[0] if len(conjuncts) == 1 else Both(tuple(conjuncts))
