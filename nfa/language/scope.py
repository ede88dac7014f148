"""The aliases of a pattern, and their visibility in each of its conditions (``docs/semantics.md``, 6.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nfa.conditions.over_events import of_current_row
from nfa.errors import PatternRefused
from nfa.language.kinds import check_events
from nfa.language.never_true import check_first_element
from nfa.language.references import NameScope, check_references, resolve
from nfa.language.words import quoted
from nfa.syntax import Atom, Conjunction, Disjunction, Expression, Item, Node, Repeat, Sequence, atoms_of, parts_of

_NONE: frozenset[str] = frozenset()


def all_atoms_of(node: Node) -> Iterator[tuple[Atom, bool]]:
    """Yield all atoms below a node in the order of the text, each with a flag that is false under NOT or UNTIL."""
    match node:
        case Atom():
            yield node, True
        case Sequence():
            for item in node.items:
                if item.negated is not None:
                    yield item.negated, False
                if item.of is not None:
                    yield from all_atoms_of(item.of)
        case Repeat():
            yield from all_atoms_of(node.of)
            if node.until is not None:
                yield node.until, False
        case _:
            for part in node.parts:
                yield from all_atoms_of(part)


def check_aliases(event: Node) -> None:
    """Refuse a pattern in which two steps have the same alias, if a match can have both steps."""
    positive = _checked_aliases(event)
    for atom, is_positive in all_atoms_of(event):
        if not is_positive and atom.alias in positive and atom.alias != atom.type:
            _refuse_twice(atom, positive)


def resolve_event(event: Node, row: str | None = None) -> Node:
    """Resolve every reference in a composite event, and check every condition. ``row`` is the alias of FOR EACH ROW."""
    scope = NameScope(own=None, known=_aliases(event) | _row(row), hidden=hidden_aliases(event), row=row)
    return _resolved(event, scope)


def scope_of_match(event: Node, row: str | None = None) -> NameScope:
    """Return the scope of WHERE and RETURN, which read the finished match. ``row`` is the alias of FOR EACH ROW."""
    known = _aliases(event) | _row(row)
    return NameScope(
        own=None,
        known=known,
        hidden=hidden_aliases(event) - known,
        bound=known,
        listed=known,
        groups=_groups(event),
        has_previous=False,
        row=row,
    )


def _after(scope: NameScope, part: Node) -> NameScope:
    aliases = _aliases(part)
    return replace(
        scope, bound=scope.bound | aliases, listed=scope.listed | aliases, groups=scope.groups | _groups(part)
    )


def _at(scope: NameScope, atom: Atom, *, is_positive: bool) -> NameScope:
    known = scope.known | {atom.alias}
    return replace(scope, own=atom.alias, known=known, hidden=scope.hidden - known, has_previous=is_positive)


def _resolved(node: Node, scope: NameScope) -> Node:
    match node:
        case Atom():
            return _resolved_atom(node, scope, is_positive=True)
        case Repeat():
            until = None if node.until is None else _resolved_atom(node.until, scope, is_positive=False)
            inner = scope if node.max == 1 else replace(scope, listed=scope.listed | _aliases(node.of))
            return replace(node, of=_resolved(node.of, inner), until=until)
        case Sequence():
            items = []
            for item in node.items:
                items.append(_resolved_item(item, scope))
                scope = scope if item.of is None else _after(scope, item.of)
            return replace(node, items=tuple(items))
        case Conjunction() | Disjunction():
            return replace(node, parts=tuple(_resolved(part, scope) for part in node.parts))


def _resolved_item(item: Item, scope: NameScope) -> Item:
    part = None if item.of is None else _resolved(item.of, scope)
    negated = None if item.negated is None else _resolved_atom(item.negated, scope, is_positive=False)
    return replace(item, of=part, negated=negated)


def _resolved_atom(atom: Atom, scope: NameScope, *, is_positive: bool) -> Atom:
    if atom.condition is None:
        return atom
    condition: Expression = resolve(atom.condition, step_scope := _at(scope, atom, is_positive=is_positive))
    check_references(condition, step_scope)
    check_events(of_current_row(condition, scope.row), atom.alias)
    if is_positive:
        check_first_element(condition)
    return replace(atom, condition=condition)


def _row(row: str | None) -> frozenset[str]:
    return _NONE if row is None else frozenset([row])


def _aliases(node: Node) -> frozenset[str]:
    return frozenset(atom.alias for atom in atoms_of(node))


def hidden_aliases(event: Node) -> frozenset[str]:
    """Return the aliases that the text gives to NOT and UNTIL steps. A step without an alias is left out."""
    return frozenset(
        atom.alias for atom, is_positive in all_atoms_of(event) if not is_positive and atom.alias != atom.type
    )


def _groups(node: Node) -> frozenset[str]:
    """Return the aliases below a repetition (groups). Other conditions see several events of such an alias."""
    if isinstance(node, Repeat) and node.max != 1:
        return _aliases(node)
    return frozenset(alias for part in parts_of(node) for alias in _groups(part))


def _checked_aliases(node: Node) -> frozenset[str]:
    if isinstance(node, Atom):
        return frozenset([node.alias])
    used_aliases: frozenset[str] = _NONE
    for part in parts_of(node):
        aliases = _checked_aliases(part)
        if not isinstance(node, Disjunction) and (repeated := used_aliases & aliases):
            _refuse_twice(next(atom for atom in atoms_of(part) if atom.alias in repeated), used_aliases)
        used_aliases |= aliases
    return used_aliases


def _refuse_twice(atom: Atom, used_aliases: frozenset[str]) -> None:
    raise PatternRefused(
        "duplicate-alias",
        f"the alias {atom.alias} is taken by another step; give this step another, "
        f"such as {quoted(atom.type) if len(atom.types) == 1 else atom.type} {_fresh(atom.alias, used_aliases)}",
        atom.position,
    )


def _fresh(alias: str, used_aliases: frozenset[str]) -> str:
    stem = "".join(character if character.isalnum() else "_" for character in alias)
    number = 2
    while f"{stem}{number}" in used_aliases:
        number += 1
    return f"{stem}{number}"
