"""Rewrites patterns with FOR EACH ROW as patterns that only read events.

The matcher copies an event for each table row that the event concerns. The copy has the columns of the row as
attributes under the row's alias (``nfa.lanes.row_lane``). ``over_events`` returns the pattern that reads the copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nfa.conditions.residuals import with_attributes
from nfa.syntax import (
    Atom,
    Attribute,
    Call,
    Conjunction,
    Disjunction,
    Expression,
    Item,
    Node,
    Pattern,
    Repeat,
    Sequence,
)


def over_events(pattern: Pattern) -> Pattern:
    """Return the form of a pattern that the matcher runs.

    If the pattern has FOR EACH ROW, columns of the row become attributes of events, except in RETURN.
    """
    if pattern.rows is None:
        return pattern
    row = pattern.rows.alias
    where = None if pattern.where is None else where_of_events(pattern.where, pattern.event, row)
    return replace(pattern, event=_changed(pattern.event, row), where=where)


def of_current_row(condition: Expression, row: str | None) -> Expression:
    """Rewrite the condition of a step to read columns of the row as attributes of the current event."""
    return condition if row is None else with_attributes(condition, lambda attribute: _on_event(attribute, row, None))


def where_of_events(where: Expression, event: Node, row: str | None) -> Expression:
    """Rewrite a condition on a finished match: columns of the row become attributes of a bound event."""
    if row is None:
        return where

    def change(attribute: Attribute) -> Expression:
        if attribute.of != row:
            return attribute
        columns = [_of_step(_on_event(attribute, row, alias), is_group) for alias, is_group in _sure_steps(event)]
        return columns[0] if len(columns) == 1 else Call("coalesce", tuple(columns), attribute.position)

    return with_attributes(where, change)


def _on_event(attribute: Attribute, row: str, alias: str | None) -> Attribute:
    return replace(attribute, path=(row, *attribute.path), of=alias) if attribute.of == row else attribute


def _of_step(attribute: Attribute, is_group: bool) -> Expression:
    return Call("first", (attribute,), attribute.position) if is_group else attribute


def _sure_steps(event: Node) -> list[tuple[str, bool]]:
    """Return a step that every match binds, or all steps if no step is certain, each as (alias, flag).

    The flag is true if the alias may have several events.
    """
    steps = dict(_steps(event, is_sure=True, is_group=False))
    sure = [(alias, is_group) for alias, (is_sure, is_group) in steps.items() if is_sure]
    best = min(sure, key=lambda step: step[1], default=None)
    return [(alias, is_group) for alias, (_, is_group) in steps.items()] if best is None else [best]


def _steps(node: Node, *, is_sure: bool, is_group: bool) -> Iterator[tuple[str, tuple[bool, bool]]]:
    match node:
        case Atom():
            yield node.alias, (is_sure, is_group)
        case Repeat():
            yield from _steps(node.of, is_sure=is_sure and node.min > 0, is_group=is_group or node.max != 1)
        case Disjunction():
            for part in node.parts:
                yield from _steps(part, is_sure=is_sure and len(node.parts) == 1, is_group=is_group)
        case Sequence() | Conjunction():
            for part in node.parts:
                yield from _steps(part, is_sure=is_sure, is_group=is_group)


def _changed(node: Node, row: str) -> Node:
    match node:
        case Atom():
            return _changed_atom(node, row)
        case Repeat():
            until = None if node.until is None else _changed_atom(node.until, row)
            return replace(node, of=_changed(node.of, row), until=until)
        case Sequence():
            return replace(node, items=tuple(_changed_item(item, row) for item in node.items))
        case Conjunction() | Disjunction():
            return replace(node, parts=tuple(_changed(part, row) for part in node.parts))


def _changed_item(item: Item, row: str) -> Item:
    part = None if item.of is None else _changed(item.of, row)
    return replace(item, of=part, negated=None if item.negated is None else _changed_atom(item.negated, row))


def _changed_atom(atom: Atom, row: str) -> Atom:
    return atom if atom.condition is None else replace(atom, condition=of_current_row(atom.condition, row))
