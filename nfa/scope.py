"""Which names a pattern may use where: unique aliases, and conditions that read their own event only."""

from __future__ import annotations

from collections.abc import Iterator

from nfa.errors import PatternRefused
from nfa.syntax import (
    Atom,
    Attribute,
    Both,
    Comparison,
    Disjunction,
    Either,
    Expression,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Pattern,
)


def atoms_of(node: Node) -> Iterator[Atom]:
    """All atoms below a node, in the order of the text."""
    if isinstance(node, Atom):
        yield node
    else:
        for part in node.parts:
            yield from atoms_of(part)


def attributes_of(expression: Expression) -> Iterator[Attribute]:
    """All attributes that an expression reads, in the order of the text."""
    match expression:
        case Attribute():
            yield expression
        case Literal():
            return
        case Comparison():
            yield from attributes_of(expression.left)
            yield from attributes_of(expression.right)
        case IsNull() | Not() | InList():
            yield from attributes_of(expression.operand)
        case Both() | Either():
            for operand in expression.operands:
                yield from attributes_of(operand)


def check_scope(pattern: Pattern) -> None:
    """Refuse names that are taken twice or that a condition cannot see.

    Raises:
        PatternRefused: ``duplicate-alias``: one alias for two steps that can both occur in a match.
            ``not-yet-bound``: a condition refers to another step.
    """
    _check_aliases(pattern.event)
    aliases = {atom.alias for atom in atoms_of(pattern.event)}
    for atom in atoms_of(pattern.event):
        for attribute in attributes_of(atom.condition) if atom.condition else ():
            owner = attribute.path[0]
            if len(attribute.path) > 1 and owner in aliases and owner != atom.alias:
                raise PatternRefused(
                    "not-yet-bound",
                    f"{'.'.join(attribute.path)} refers to the step {owner}; the condition of {atom.alias} "
                    "can read attributes of its own event only",
                    attribute.position,
                )


def own_path(attribute: Attribute, alias: str) -> tuple[str, ...]:
    """Path within the event's data: ``q.price`` in the brackets of the step ``q`` is its attribute ``price``."""
    path = attribute.path
    return path[1:] if len(path) > 1 and path[0] == alias else path


def _check_aliases(node: Node) -> set[str]:
    if isinstance(node, Atom):
        return {node.alias}
    taken: set[str] = set()
    for part in node.parts:
        aliases = _check_aliases(part)
        if not isinstance(node, Disjunction) and (twice := taken & aliases):
            second = next(atom for atom in atoms_of(part) if atom.alias in twice)
            raise PatternRefused(
                "duplicate-alias",
                f"the alias {second.alias} is taken by an earlier step; give this step another, "
                f"such as {second.type} {_fresh(second.alias, taken)}",
                second.position,
            )
        taken |= aliases
    return taken


def _fresh(alias: str, taken: set[str]) -> str:
    stem = "".join(character if character.isalnum() else "_" for character in alias)
    number = 2
    while f"{stem}{number}" in taken:
        number += 1
    return f"{stem}{number}"
