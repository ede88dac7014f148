"""Finds names in a pattern that are declared nowhere else: event types, attributes and tables.

Such names are probably typing errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from nfa.conditions.lookups import deadline_of, lookup_of, lookups_of
from nfa.language.scope import all_atoms_of
from nfa.language.stream_checks import Notice
from nfa.syntax import Atom, Attribute, Expression, Pattern, attributes_of
from streams import did_you_mean
from streams.tables import Lookup


def unknown_types(
    pattern: Pattern,
    known: Collection[str],
    where: str,
    suggested: Collection[str] | None = None,
    *,
    has_others: bool = False,
) -> list[Notice]:
    """Return a notice for each unknown event type in a step, including negated steps, in the order of the text.

    ``known`` has all event types that can occur. ``where`` completes the message, for example ``of the events here``.
    ``suggested`` has the types that a notice may suggest, or is None for the known types. With ``has_others``, events
    of unknown types may occur, too.
    """
    choices = known if suggested is None else suggested
    condition = " unless events of other types occur" if has_others else ""
    return [
        Notice(
            "unknown-type",
            f"{name}{did_you_mean(name, choices)} is none of the event types {where}, so this "
            + ("can never match" if is_positive else "forbids nothing")
            + condition,
            atom.position,
        )
        for atom, is_positive in all_atoms_of(pattern.event)
        if not atom.is_any_type
        for name in atom.types
        if name not in known
    ]


def all_types_of(pattern: Pattern) -> frozenset[str]:
    """Return the event types that a pattern names, including those of NOT and UNTIL."""
    atoms = [atom for atom, _ in all_atoms_of(pattern.event) if not atom.is_any_type]
    return frozenset(name for atom in atoms for name in atom.types)


def attributes_by_types(pattern: Pattern) -> Iterator[tuple[Attribute, str | None, tuple[str, ...]]]:
    """Yield each attribute that a pattern reads, with the alias and the types of its step.

    A tuple without types means that the event may have any type.
    """
    steps: dict[str, Atom] = {}
    references: list[tuple[Attribute, Atom | None]] = []
    for atom, _ in all_atoms_of(pattern.event):
        steps.setdefault(atom.alias, atom)
        if atom.condition is not None:
            references += [(reference, atom) for reference in attributes_of(atom.condition)]
    for expression in (pattern.where, *(column.expression for column in pattern.returns)):
        references += [(reference, None) for reference in ([] if expression is None else attributes_of(expression))]
    for attribute, own_step in references:
        step = own_step if attribute.of is None else steps.get(attribute.of)
        is_of_row = pattern.rows is not None and attribute.of == pattern.rows.alias
        if attribute.path and not is_of_row:
            alias = None if step is None else step.alias
            yield attribute, alias, () if step is None or step.is_any_type else step.types


def columns_read(pattern: Pattern) -> frozenset[str]:
    """Return the columns that a pattern reads of the row of FOR EACH ROW."""
    row = None if pattern.rows is None else pattern.rows.alias
    return frozenset(
        attribute.path[0] for attribute in _attributes_in(pattern) if attribute.of is not None and attribute.of == row
    )


def _attributes_in(pattern: Pattern) -> Iterator[Attribute]:
    for expression in _expressions_in(pattern):
        yield from attributes_of(expression)


def _expressions_in(pattern: Pattern) -> Iterator[Expression]:
    conditions = [atom.condition for atom, _ in all_atoms_of(pattern.event)]
    window = None if pattern.within_business is None else deadline_of(pattern.within_business)
    expressions = [*conditions, pattern.where, *(column.expression for column in pattern.returns), window]
    return (expression for expression in expressions if expression is not None)


def lookups_in(pattern: Pattern) -> frozenset[Lookup]:
    """Return the lookups in reference tables that a pattern makes, including the reads of FOR EACH ROW."""
    lookups = {lookup_of(call) for expression in _expressions_in(pattern) for call in lookups_of(expression)}
    if pattern.rows is not None:
        columns: Sequence[str | None] = sorted(columns_read(pattern)) or [None]
        lookups |= {Lookup(pattern.rows.table, column, None) for column in columns}
    return frozenset(lookups)
