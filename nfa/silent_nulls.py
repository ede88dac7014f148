"""Warnings about names that are probably meant as something else, and about comparisons that are always null."""

from __future__ import annotations

from collections.abc import Iterator

from nfa.functions.table import FUNCTIONS, word_of
from nfa.language.description import describe_expression
from nfa.language.kinds import null_comparisons
from nfa.language.scope import all_atoms_of
from nfa.language.strangers import all_types_of
from nfa.language.stream_checks import Notice
from nfa.language.words import quoted
from nfa.syntax import (
    Attribute,
    Call,
    Comparison,
    Each,
    Expression,
    Pattern,
    atoms_of,
    attributes_of,
    calls_of,
    subexpressions,
)
from streams import nearest

_TIME, _TYPE = ("time",), ("type",)
_SHORT = 2  # letters of names that are similar to many others


def null_notices(pattern: Pattern) -> Iterator[Notice]:
    """Yield a warning for each name that probably means something else, and for each comparison that is always null."""
    yield from _unknown_aliases(pattern)
    steps = [(atom.condition, atom.alias) for atom, _ in all_atoms_of(pattern.event)]
    others = [(clause, "a") for clause in (pattern.where, *(column.expression for column in pattern.returns))]
    for expression, alias in (*steps, *others):
        if expression is not None:
            for call in calls_of(expression):
                yield from _of_call(call, alias)
            for part in subexpressions(expression):
                yield from _of_comparison(part, alias)
            for sentence, position in null_comparisons(expression):
                yield Notice("incomparable", sentence, position)


def _unknown_aliases(pattern: Pattern) -> Iterator[Notice]:
    """Yield a warning for each name before a dot in brackets that is probably meant as an alias, but is none.

    The condition is valid, because a name that is no alias is an attribute, such as ``customer`` in ``customer.name``.
    So only a single letter, an event type of the pattern, and a name that is similar to an alias are reported.
    """
    aliases = {atom.alias for atom in atoms_of(pattern.event)}
    types, long_aliases = all_types_of(pattern), {alias for alias in aliases if len(alias) > _SHORT}
    for condition in (atom.condition for atom, _ in all_atoms_of(pattern.event) if atom.condition is not None):
        for attribute in attributes_of(condition):
            name, *rest = attribute.path or ("",)
            is_similar = len(name) > _SHORT and nearest(name, long_aliases) is not None
            if attribute.of is None and rest and (len(name) == 1 or name in types or is_similar):
                yield Notice(
                    "no-alias",
                    f"{name} is not an alias that is known here, so {'.'.join(attribute.path)} is an attribute of the "
                    f"event; aliases of steps are {', '.join(sorted(map(quoted, aliases)))}",
                    attribute.position,
                )


def _of_call(call: Call, alias: str) -> Iterator[Notice]:
    last = call.arguments[-1] if call.arguments else None
    if isinstance(last, Each) and isinstance(call.arguments[0], Attribute):
        yield from _of_elements(call, call.arguments[0], last.inner)
    parameters = FUNCTIONS[call.name].parameters_of(len(call.arguments)) if call.name in FUNCTIONS else None
    for parameter, argument in zip(parameters or (), call.arguments, strict=False):
        if parameter.kind == "time" and isinstance(argument, Attribute) and argument.path == _TIME:
            owner = argument.of or alias
            yield Notice(
                "own-member",
                f"{describe_expression(argument)} is an attribute of the data; the time of the event is time({owner})",
                argument.position,
            )


def _of_elements(call: Call, items: Attribute, inner: Expression) -> Iterator[Notice]:
    """Yield a warning for each name in ``inner`` that repeats the path of the list.

    ``inner`` is the expression over the elements of the list ``items``. Its names are members of an element, so
    repeating the path is probably a mistake.
    """
    for attribute in attributes_of(inner):
        if len(attribute.path) > len(items.path) and attribute.path[: len(items.path)] == items.path:
            name, path = ".".join(attribute.path[len(items.path) :]), ".".join(items.path)
            yield Notice(
                "element-path",
                f"names in the last argument of {word_of(call.name)} are of the elements of {path}, which have no "
                f"{'.'.join(attribute.path)}; write {name}",
                attribute.position,
            )


def _of_comparison(expression: Expression, alias: str) -> Iterator[Notice]:
    if isinstance(expression, Comparison):
        for side, other in ((expression.left, expression.right), (expression.right, expression.left)):
            if isinstance(side, Attribute) and isinstance(other, Attribute) and _is_word(other, side):
                yield _of_word(side, other, alias)


def _is_word(name: Attribute, other: Attribute) -> bool:
    """Check whether a name was probably meant as a text, and the quotes were forgotten.

    The name has a capital letter first, and ``other`` has not.
    """
    return (
        len(name.path) == 1 and name.of == other.of and name.path[0][:1].isupper() and not other.path[-1][:1].isupper()
    )


def _of_word(side: Attribute, word: Attribute, alias: str) -> Notice:
    text = f"{describe_expression(word)} is an attribute, and a text is in single quotes: '{word.path[0]}'"
    if side.path == _TYPE:
        owner = side.of or alias
        text += f"; type is an attribute of the data, the type of the event is type({owner})"
    return Notice("bare-text", text, word.position)
