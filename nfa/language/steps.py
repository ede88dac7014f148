"""Single steps such as ``Quote [price > 1000]``: a type with a condition that reads only the event itself."""

from __future__ import annotations

from dataclasses import replace

from nfa.conditions.residuals import with_attributes
from nfa.errors import PatternRefused
from nfa.language.parsing import parse_tree
from nfa.language.references import NameScope, check_references, resolve
from nfa.language.tree_building import build_step
from nfa.syntax import AGGREGATES, Atom, Attribute, Expression, calls_of


def parse_step(text: str) -> Atom:
    """Parse a step whose condition reads only the step's own event.

    The condition may use an alias. The result has no alias: the step is named by its type, and attributes belong to the
    current event. So texts that differ only in spaces, case of keywords and alias give equal steps.
    """
    step = build_step(parse_tree(text, "atom"))
    atom = Atom(step.types, step.type, position=step.position)
    if step.condition is None:
        return atom
    scope = NameScope(own=step.alias, known=frozenset([step.alias]), has_previous=False)
    condition = resolve(step.condition, scope)
    _check_unary(condition)
    check_references(condition, scope)
    return replace(atom, condition=_renamed(condition, atom.alias))


def _check_unary(condition: Expression) -> None:
    for call in calls_of(condition):
        if call.name in (*AGGREGATES, "prev"):
            raise PatternRefused(
                "aggregate" if call.name in AGGREGATES else "prev",
                f"{call.name} reads several events, but this condition is on a single event; compare its own "
                f"attributes",
                call.position,
            )


def _renamed(expression: Expression, alias: str) -> Expression:
    """Assign the attributes of a step's condition to the step or to the current event.

    An attribute belongs to the step if its path is empty or begins with ``alias``, otherwise to the current event.
    """

    def with_alias(attribute: Attribute) -> Attribute:
        return replace(attribute, of=None if attribute.path and attribute.path[0] != alias else alias)

    return with_attributes(expression, with_alias)
