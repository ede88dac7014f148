"""Reports of registration: stored records, with sentences on their meaning and on probable mistakes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from constraints import ConstraintSet, QueryCheck, check_set
from nfa import MAX_REASONED, Pattern, PatternRefused, all_types_of, is_coarse, parse_pattern, unknown_types
from service.registering.inspection import is_explained
from service.registering.on_stream import OnStream, StreamRules
from service.registering.strangers import OF_STREAM, misspelt_types
from shards import RoutedPattern
from streams import StreamDeclaration, did_you_mean, key_text

if TYPE_CHECKING:
    from service.stores import RegisteredConstraints, RegisteredPattern  # imports Redis, which local runs do not need


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternReport:
    """A registered pattern, with warnings about probable mistakes. ``is_new``: whether the call changed the pattern."""

    pattern: RegisteredPattern
    is_new: bool
    parsed: Pattern
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintReport:
    """A registered constraint set with warnings, for example about patterns that can no longer match.

    ``is_new`` is True if the call changed the set.
    """

    record: RegisteredConstraints
    is_new: bool
    constraint_set: ConstraintSet
    warnings: tuple[str, ...]


def joined_with(constraint_set: ConstraintSet, declaration: StreamDeclaration) -> ConstraintSet:
    """Return the constraint set of a document, with the end events of the stream added.

    If unknown types are deviations, the types of the stream are added, too.
    """
    settings = constraint_set.settings
    if settings.unknown_types == "deviate":
        settings = replace(settings, types=settings.types | frozenset(declaration.event_types))
    end_events = constraint_set.end_events | frozenset(declaration.end_events)
    return replace(constraint_set, end_events=end_events, settings=settings)


def mismatches(constraint_set: ConstraintSet, declaration: StreamDeclaration) -> list[str]:
    """Return contradictions between a constraint document and the declaration of its stream, in words."""
    contradictions = undeclared_ends("this document", constraint_set, declaration)
    if declaration.event_types and (undeclared := sorted(constraint_set.types - set(declaration.event_types))):
        contradictions.append(f"{', '.join(undeclared)}: not among the event types that the stream declares")
    return contradictions


def undeclared_ends(source: str, constraint_set: ConstraintSet, declaration: StreamDeclaration) -> list[str]:
    """Return a notice about end events that end no trace, because the stream does not declare them.

    ``source`` is the origin of the end events, as named in the notice.
    """
    undeclared = sorted((constraint_set.end_events - constraint_set.trace_ends).difference(declaration.end_events))
    if not undeclared:
        return []
    notice = (
        f"{', '.join(undeclared)}: end events of {source} that the stream does not declare; its transactions stay open "
        "after them, and later events deviate (after_end). Declare end_events or an idle_timeout for the stream, "
        "or, where keys are used again, set reopen: new_transaction in the settings of the constraints"
    )
    return [notice]


def constraint_warnings(
    rules: StreamRules,
    patterns: Sequence[RegisteredPattern],
    known_types: Collection[str],
    dropped_types: frozenset[str] = frozenset(),
) -> tuple[str, ...]:
    """Return warnings about a constraint set, and about registered patterns that can never match under the set.

    There are also warnings about patterns that would wait forever for the end of a trace, and about types that are
    probably misspelt. ``known_types`` are those of the stream's schemas and newest events. ``dropped_types`` are those
    that the workflow had in its version before.
    """
    warnings, endless = [warning.text for warning in check_set(rules.constraint_set)], []
    for pattern in patterns:
        on_stream = rules.on_stream(parse_pattern(pattern.text), is_guarded=pattern.is_guarded)
        if pattern.is_guarded and not on_stream.routed.route and not on_stream.check.is_satisfiable:
            reasons = "; ".join(dict.fromkeys(term.text for term in on_stream.check.dead))
            warnings.append(f"the pattern {pattern.name} stays registered and can no longer match: {reasons}")
        else:
            of_pattern = all_types_of(on_stream.pattern)
            where = "of the current version of the stream's workflow"
            dropped = unknown_types(on_stream.pattern, of_pattern - dropped_types, where, (), has_others=True)
            warnings += [f"the pattern {pattern.name} stays registered; {notice.placed}" for notice in dropped]
        try:
            on_stream.ends.check(on_stream.pattern)
        except PatternRefused as refusal:
            endless.append(f"the pattern {pattern.name} stays registered and waits for ever: {refusal.message}")
    misspelt = misspelt_types(rules.declaration, rules.constraint_set, known_types, OF_STREAM)
    return (*warnings, *endless, *misspelt)


_LAST_ITERATIONS = (
    f"it has more than {MAX_REASONED} steps, repetitions written out, so constraints know the last iteration of each "
    "repetition only: a partial match that can no longer complete may end later than it could"
)


def pattern_warnings(on_stream: OnStream, check: QueryCheck) -> tuple[str, ...]:
    """Return warnings about alternatives of a pattern that can never match, and about probable mistakes, in words."""
    pattern, routed, declaration = on_stream.pattern, on_stream.routed, on_stream.rules.declaration
    finer = ", ".join(routed.finer)
    return (
        *_impossible(check),
        *_undeclared_types(pattern, declaration),
        *(
            []
            if is_explained(on_stream.query)
            else ["it has too many steps or alternatives to list its failing conditions"]
        ),
        *([_LAST_ITERATIONS] if is_coarse(pattern.event) else []),
        *(notice.placed for notice in on_stream.ends.warnings_of(pattern)),
        *([f"traces are finer by {finer}, so constraints do not end its partial matches early"] if finer else []),
        *([_routed(routed.route, declaration)] if routed.route else []),
        *_mistaken_names(routed),
    )


def _impossible(check: QueryCheck) -> list[str]:
    reasons = list(dict.fromkeys(term.text for term in check.dead))
    if not check.is_satisfiable:
        return [f"the pattern can never match: {'; '.join(reasons)}"]
    return [f"one alternative of the pattern can never match: {reason}" for reason in reasons]


def resolving_nothing(
    suppression: Mapping[str, Any], by_name: Mapping[str, Mapping[str, Any]], consequence: str
) -> tuple[str, ...]:
    """Return a warning if the member ``resolves`` of a pattern can close no incidents.

    The pattern that it names may open none, or group them by another number of attributes. ``by_name`` has the
    suppression of each pattern, and ``consequence`` completes the warning.
    """
    name, by = suppression.get("resolves"), suppression["by"]
    if name is None:
        return ()
    groups = {other: opens["by"] for other, opens in by_name.items() if "incident" in opens}
    if name not in groups:
        return (f"resolves: no pattern {name!r}{did_you_mean(name, groups)} with 'incident' {consequence}",)
    if len(groups[name]) == len(by):
        return ()
    grouped, attributes = ", ".join(groups[name]) or "one group", ", ".join(by) or "none"
    return (f"resolves: the incidents of {name!r} are by {grouped}, so {attributes} here closes none",)


def _routed(route: str, declaration: StreamDeclaration) -> str:
    return (
        f"it is matched by the further key {route} ({key_text(declaration.keys[route])}), whose traces have no end "
        "and no constraints"
    )


def _mistaken_names(on_stream: RoutedPattern) -> list[str]:
    """Return warnings about names in ``WHERE [..]`` that mean attributes, although further keys have the same names."""
    declaration = on_stream.declaration
    further_keys = [(name, declaration.keys[name]) for name in on_stream.finer if name in declaration.keys]
    return [
        f"{name} in WHERE [..] is the attribute of that name; the further key {name} is "
        + (key_text(key) if isinstance(key, Mapping) else f"written {key.removeprefix('data.')} there")
        for name, key in further_keys
        if declaration.attribute_of(name) != (name,)
    ]


def _undeclared_types(pattern: Pattern, declaration: StreamDeclaration) -> list[str]:
    """Return warnings about types of a pattern that the stream does not declare.

    A new pattern of this kind is refused, but earlier releases accepted such patterns.
    """
    if not declaration.event_types:
        return []
    return [notice.placed for notice in unknown_types(pattern, declaration.event_types, "that the stream declares")]
