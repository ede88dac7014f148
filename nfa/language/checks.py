"""All checks of a pattern beyond its grammar. Text and JSON pass them in the same order."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from nfa.conditions.over_events import where_of_events
from nfa.errors import PatternRefused
from nfa.language.description import describe_expression
from nfa.language.kinds import check_events
from nfa.language.limits import MAX_STEPS
from nfa.language.placement import check_placement, check_window
from nfa.language.references import NameScope, check_references, resolve
from nfa.language.scope import all_atoms_of, check_aliases, resolve_event, scope_of_match
from nfa.language.tree_building import UnresolvedPattern
from nfa.language.words import listed, quoted
from nfa.syntax import ANY_TYPE, NOWHERE, Column, Expression, Node, Pattern, Position
from streams import name_fault


def checked(draft: UnresolvedPattern) -> Pattern:
    """Check a parsed pattern, and return it with resolved references. This is the step after ``build_drafts``.

    Whether the pattern needs an end of traces (refusal ``needs-end``) depends on the stream, and is checked in
    ``nfa.language.stream_checks``.
    """
    event, row = draft.pattern.event, None if draft.pattern.rows is None else draft.pattern.rows.alias
    _check_size(event)
    check_placement(event)
    check_window(draft.pattern)
    check_aliases(event)
    _check_row(event, row, draft.clauses.get("rows", NOWHERE))
    pattern = replace(draft.pattern, event=resolve_event(event, row))
    scope = scope_of_match(event, row)
    if pattern.where is not None:
        where = _resolved(pattern.where, scope)
        check_events(where_of_events(where, event, row), None)
        pattern = replace(pattern, where=where)
    pattern = replace(pattern, returns=_columns(pattern, scope, draft))
    _check_after(draft, scope)
    _check_into(pattern, draft.clauses.get("into", NOWHERE))
    if pattern.timeouts and not pattern.has_window:
        raise PatternRefused(
            "needs-within",
            "EMIT TIMEOUTS needs the clause WITHIN, which ends partial matches; add it, such as WITHIN 1 h",
            draft.clauses.get("timeouts", NOWHERE),
        )
    return pattern


def _check_size(event: Node) -> None:
    for atom, _ in islice(all_atoms_of(event), MAX_STEPS, None):
        raise PatternRefused(
            "too-large", f"the pattern has more than {MAX_STEPS} steps, NOT and UNTIL included; split it", atom.position
        )


def _check_row(event: Node, row: str | None, position: Position) -> None:
    if any(atom.alias == row for atom, _ in all_atoms_of(event)):
        raise PatternRefused(
            "duplicate-alias", f"the alias {row} of the row is taken by a step; give the row another one", position
        )


def _resolved(expression: Expression, scope: NameScope) -> Expression:
    resolved = resolve(expression, scope)
    check_references(resolved, scope)
    return resolved


def _columns(pattern: Pattern, scope: NameScope, draft: UnresolvedPattern) -> tuple[Column, ...]:
    columns: list[Column] = []
    for column in pattern.returns:
        expression = _resolved(column.expression, scope)
        name = column.name or describe_expression(expression)
        if name in {earlier.name for earlier in columns}:
            raise PatternRefused(
                "duplicate-alias",
                f"RETURN has two columns named {name}; give one another name with AS",
                draft.clauses.get("returns", NOWHERE),
            )
        columns.append(Column(expression, name))
    return tuple(columns)


def _check_into(pattern: Pattern, position: Position) -> None:
    into = pattern.into
    if into is None:
        return
    if fault := name_fault("stream", into.stream):
        raise PatternRefused("stream-name", f"INTO: {fault}", position)
    if into.event_type == ANY_TYPE:
        raise PatternRefused("type-name", "_ means any type; an event has one: name it", position)
    columns = [column.name for column in pattern.returns]
    if into.key is not None and into.key not in columns:
        raise PatternRefused(
            "unknown-column",
            f"KEY {quoted(into.key)} is not a column of RETURN; "
            + (f"it is one of {listed(list(map(quoted, columns)))}" if columns else "add RETURN with that column"),
            position,
        )


def _check_after(draft: UnresolvedPattern, scope: NameScope) -> None:
    alias = draft.pattern.after.alias
    if alias is not None and alias not in scope.known:
        raise PatternRefused(
            "unknown-alias",
            f"{alias} is not an alias of a step; skip to one of {listed(sorted(map(quoted, scope.known)))}",
            draft.clauses.get("select", NOWHERE),
        )
