"""References in conditions: resolves names, and checks that a name may be used in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import NoReturn, TypeAlias

from nfa.conditions.residuals import rewritten
from nfa.errors import PatternRefused
from nfa.functions.lookups import NAMES as LOOKUPS
from nfa.functions.table import FUNCTIONS as OF_VALUES
from nfa.functions.table import word_of
from nfa.language.description import describe_expression
from nfa.language.kinds import check_kinds
from nfa.language.words import OTHER_NAMES, listed, quoted
from nfa.syntax import AGGREGATES, OF_EVENT, Attribute, Call, Each, Expression, attributes_of, operands_of
from streams import did_you_mean

FUNCTIONS = (*AGGREGATES, *OF_EVENT, "prev", *OF_VALUES)

_Within: TypeAlias = OneOf["aggregate", "prev", None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NameScope:
    """The names that a condition can use.

    Attributes:
        own: Alias of the current event, or None in WHERE and RETURN.
        known: Aliases that a name can refer to.
        hidden: Aliases of NOT and UNTIL steps elsewhere in the pattern, to which no name can refer.
        bound: Aliases of steps bound earlier in the same iteration of the surrounding repetitions.
        listed: Aliases of steps bound earlier in any iteration, for aggregates.
        groups: Aliases that may have several events, so that only aggregates may use them.
        has_previous: Whether ``prev`` is allowed, as in the brackets of a step that is not negated.
        row: Alias of the row of FOR EACH ROW, whose columns every condition can read. None without this clause.
    """

    own: str | None
    known: frozenset[str]
    hidden: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    has_previous: bool = True
    row: str | None = None


def resolve(expression: Expression, scope: NameScope) -> Expression:
    """Assign each attribute to its step. ``key`` and ``a.key`` become calls of the correlation key."""

    def change(part: Expression) -> Expression | None:
        if isinstance(part, Attribute):
            return _resolved(part, scope)
        if not isinstance(part, Call):
            return None
        takes_alias = part.name in OF_EVENT or part.name == "count"
        arguments = tuple(
            _resolved_alias(argument, scope, part.name)
            if takes_alias and isinstance(argument, Attribute) and len(argument.path) == 1
            else resolve(argument, scope)
            for argument in part.arguments
        )
        return replace(part, arguments=arguments)

    return rewritten(expression, change)


def check_references(expression: Expression, scope: NameScope) -> None:
    """Refuse references that are not visible, or have no meaning, at their place in a resolved expression."""
    _check(expression, scope, None)


def _resolved(attribute: Attribute, scope: NameScope) -> Expression:
    first, *rest = attribute.path
    if first == scope.row:
        return _of_row(attribute, first, rest)
    if first in scope.known:
        if rest[:1] == [scope.row]:
            _refuse_hidden(attribute, first, rest[0])
        if not rest:
            _refuse_bare(attribute, first)
        return _key_or(replace(attribute, path=tuple(rest), of=first), first)
    if scope.own is None or (rest and first in scope.hidden):
        _refuse_unknown(attribute, first, scope)
    return _key_or(attribute, scope.own)


def _of_row(attribute: Attribute, row: str, column: list[str]) -> Attribute:
    if len(column) != 1:
        raise PatternRefused(
            "bare-alias", f"{row} is a row; write a column of it as {quoted(row)}.name", attribute.position
        )
    return replace(attribute, path=tuple(column), of=row, ends_in_key=False)


def _refuse_hidden(attribute: Attribute, alias: str, row: str) -> NoReturn:
    raise PatternRefused(
        "bare-alias",
        f"{row} is the row of FOR EACH ROW, and hides the attribute {row} of {alias}; give the row another alias",
        attribute.position,
    )


def _key_or(attribute: Attribute, alias: str) -> Expression:
    if not attribute.ends_in_key or len(attribute.path) > 1:
        return attribute
    return Call("key", (Attribute((), alias, attribute.position),), attribute.position)


def _resolved_alias(attribute: Attribute, scope: NameScope, function: str) -> Expression:
    (name,) = attribute.path
    if name == scope.row:
        _of_row(attribute, name, [])
    if name in scope.known:
        return replace(attribute, path=(), of=name)
    if function in OF_EVENT:
        _refuse_unknown(attribute, name, scope)
    return _resolved(attribute, scope)


def _refuse_unknown(attribute: Attribute, name: str, scope: NameScope) -> NoReturn:
    if name in scope.hidden:
        advice = f"{name} names a step after NOT or UNTIL, which exists only inside its own brackets"
    else:
        advice = f"write one of {listed(sorted(map(quoted, scope.known)))}"
        advice += "" if scope.own else ", a dot and the attribute"
    raise PatternRefused("unknown-alias", f"{name} is not an alias that is known here; {advice}", attribute.position)


def _refuse_bare(attribute: Attribute, alias: str) -> None:
    raise PatternRefused(
        "bare-alias",
        f"the alias {alias} is an event, not a value; write an attribute as {quoted(alias)}.name, or use "
        f"count({quoted(alias)}), time(…), type(…), id(…) or key(…)",
        attribute.position,
    )


def _check(expression: Expression, scope: NameScope, within: _Within) -> None:
    check_kinds(expression)
    match expression:
        case Attribute():
            if not expression.path:
                _refuse_bare(expression, expression.of or "")
            _check_visible(expression, scope, within)
        case Call():
            _check_call(expression, scope, within)
        case _:
            for operand in operands_of(expression):
                _check(operand, scope, within)


def _check_visible(attribute: Attribute, scope: NameScope, within: _Within) -> None:
    alias = attribute.of
    if alias is None or alias == scope.own:
        return
    text = describe_expression(attribute)
    if alias == scope.row:
        if within:
            raise PatternRefused(
                within,
                f"{text} is a value of the row, and {within} reads events; write it outside",
                attribute.position,
            )
        return
    if within == "prev":
        raise PatternRefused(
            "prev",
            f"prev reads the step's own previous event, but {text} is of the step {alias}; write last({text})",
            attribute.position,
        )
    if alias not in (scope.listed if within else scope.bound):
        alternative = "" if alias not in scope.listed else f", or last({text}) for the iterations before"
        raise PatternRefused(
            "not-yet-bound",
            f"{text} refers to the step {alias}, which is not bound before this step; move the condition to {alias} "
            f"or to WHERE{alternative}",
            attribute.position,
        )
    if not within and alias in scope.groups:
        raise PatternRefused(
            "group-alias",
            f"{alias} is repeated and may be several events; choose one with first({text}), last({text}) or another "
            "aggregate",
            attribute.position,
        )


def _check_call(call: Call, scope: NameScope, within: _Within) -> None:
    if call.name in AGGREGATES:
        _check_aggregate(call, scope, within)
    elif call.name in OF_EVENT:
        _check_of_event(call, scope, within)
    elif call.name == "prev":
        _check_prev(call, scope, within)
    elif call.name in OF_VALUES:
        for argument in call.arguments:
            if isinstance(argument, Each):
                _check_elements(argument.inner, call, scope)
            else:
                _check(argument, scope, within)
    else:
        raise PatternRefused(
            "unknown-function",
            f"{call.name} is not a function{_suggestion(call.name)}; use one of {listed(sorted(FUNCTIONS))}",
            call.position,
        )


def _suggestion(name: str) -> str:
    return f" (did you mean {OTHER_NAMES[name]}?)" if name in OTHER_NAMES else did_you_mean(name, FUNCTIONS)


def _check_elements(expression: Expression, call: Call, scope: NameScope) -> None:
    check_kinds(expression)
    match expression:
        case Attribute() if len(expression.path) > 1 and expression.path[0] in scope.known:
            name = describe_expression(expression)
            raise PatternRefused(
                "function",
                f"names in the last argument of {word_of(call.name)} are of the elements of the list, and {name} is of "
                "a step; compare the elements with constants or with each other",
                expression.position,
            )
        case Call() if expression.name not in OF_VALUES or expression.name in LOOKUPS:
            raise PatternRefused(
                "function", f"{expression.name} reads events, not the elements of a list", expression.position
            )
        case _:
            for operand in operands_of(expression):
                _check_elements(operand.inner if isinstance(operand, Each) else operand, call, scope)


def _check_aggregate(call: Call, scope: NameScope, within: _Within) -> None:
    if within is not None:
        raise PatternRefused(
            "aggregate", f"{call.name} is inside another aggregate or prev; aggregates cannot be nested", call.position
        )
    if len(call.arguments) != 1:
        raise PatternRefused(
            "aggregate",
            f"{call.name} takes one expression, found {len(call.arguments)}; call it once per expression",
            call.position,
        )
    (argument,) = call.arguments
    if call.name == "count" and isinstance(argument, Attribute) and not argument.path:
        _check_visible(argument, scope, "aggregate")
        return
    _check(argument, scope, "aggregate")
    aliases = sorted({attribute.of or scope.own or "" for attribute in attributes_of(argument)})
    if len(aliases) != 1:
        fault = f"{listed(aliases)} are mixed" if aliases else "it names none"
        raise PatternRefused(
            "aggregate", f"{call.name} runs over the events of one step, and {fault}; name one alias", call.position
        )


def _check_of_event(call: Call, scope: NameScope, within: _Within) -> None:
    argument = call.arguments[0]
    if len(call.arguments) != 1 or not isinstance(argument, Attribute) or argument.path:
        raise PatternRefused(
            "bare-alias", f"{call.name} takes only the alias of a step, as in {call.name}(a)", call.position
        )
    _check_visible(argument, scope, within)


def _check_prev(call: Call, scope: NameScope, within: _Within) -> None:
    if not scope.has_previous or scope.own is None:
        raise PatternRefused(
            "prev",
            "prev can only be used in the brackets of a step, not in WHERE, RETURN or after NOT or UNTIL; move the "
            "condition there",
            call.position,
        )
    if within is not None:
        raise PatternRefused("prev", f"prev is inside {within}; call it outside", call.position)
    if len(call.arguments) != 1:
        raise PatternRefused("prev", "prev takes one expression; call it once per expression", call.position)
    _check(call.arguments[0], scope, "prev")
    if next(attributes_of(call.arguments[0]), None) is None:
        raise PatternRefused("prev", "prev reads an attribute of the step; name one, as in prev(v)", call.position)
