"""Finds probable misspellings in patterns: types and attributes that events, declaration and workflow do not have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa import (
    OF_EVENT,
    Attribute,
    KindsRead,
    Notice,
    Pattern,
    PatternRefused,
    all_types_of,
    attributes_by_types,
    incomparable,
    unknown_types,
)
from shards import NameRead
from streams import RETRACTED, EventBatch, StreamDeclaration, did_you_mean, inner_value, is_element, listed, nearest

if TYPE_CHECKING:
    from constraints import ConstraintSet  # slow to import, and not needed by commands without constraints
    from streams.tables import TableForm

_MOST_EXAMINED, _FIRST = 1_000, 65_536
_NO_END = "so no transaction ends with it"

OF_STREAM = "in the stream's newest events, schemas and declaration"
"""The end of messages about types that are in none of the three."""


def strangers(
    patterns: Sequence[Pattern],
    events: EventBatch,
    *,
    further_types: Collection[str] | None = (),
    beside: Collection[str] = (),
    forms: Mapping[str, TableForm] = {},
    is_example: bool = False,
) -> Iterator[tuple[Pattern, Notice]]:
    """Yield notices about types and attributes that no event has, and about comparisons of different kinds of values.

    An attribute counts as present if an event of one of the step's types has a member of this name, at any depth.

    ``further_types`` are correct types that need not occur in the events. If it is None, types are not checked.
    ``beside`` are members that the events had beside ``data`` and that were not read. ``forms`` has the tables that
    lookups read.

    With ``is_example``, the events are a small example, such as those of a test, which lacks types and attributes on
    purpose. A name is then reported only if it is similar to another name that the pattern does not use.
    """
    if not len(events):
        return
    types = types_of(events)
    attributes, kinds_read = _Attributes(events), KindsRead()
    for pattern in patterns:
        if further_types is not None:
            known, named = {*types, *further_types}, all_types_of(pattern) if is_example else frozenset[str]()
            for notice in unknown_types(pattern, known, "in these events", known - named):
                if not is_example or "did you mean" in notice.message:
                    yield pattern, notice
        for notice in _of_attributes(pattern, attributes, beside, is_example=is_example):
            yield pattern, notice
        for notice in incomparable(pattern, events, kinds_read, forms):
            yield pattern, notice


def strange_names(
    names_read: Sequence[NameRead],
    events: EventBatch,
    *,
    further_types: Collection[str] | None = (),
    beside: Collection[str] = (),
    is_example: bool = False,
) -> list[str]:
    """Return notices about the types and attributes of an operator's document that no event has, as in ``strangers``.

    ``names_read`` has the names that the operator reads of the stream of the events.
    """
    if not len(events):
        return []
    sentences, attributes = list[str](), _Attributes(events)
    if further_types is not None:
        known = {*types_of(events), *further_types}
        named = {name for read in names_read if not read.path for name in read.types} if is_example else set[str]()
        sentences += unknown_names(names_read, known, "in these events", known - named, only_similar=is_example)
    named = {read.path[0] for read in names_read if read.path} if is_example else set[str]()
    for read in names_read:
        if read.path and not attributes.have(read.path, read.types):
            suggestion = did_you_mean(".".join(read.path), attributes.names(read.types) - named)
            if suggestion or not is_example:
                sentences.append(f"{read.field}: {_missing(read.path, read.types, suggestion, beside)}")
    return list(dict.fromkeys(sentences))


def unknown_names(
    names_read: Sequence[NameRead],
    known: Collection[str],
    where: str,
    suggested: Collection[str],
    *,
    only_similar: bool = False,
) -> list[str]:
    """Return notices about unknown event types in an operator's document. The arguments are as in ``unknown_types``.

    With ``only_similar``, a type is reported only if it is similar to a suggested type.
    """
    return [
        f"{read.field}: {name}{suggestion} is none of the event types {where}"
        for read in names_read
        if not read.path
        for name in read.types
        if name not in known and ((suggestion := did_you_mean(name, suggested)) or not only_similar)
    ]


def misspelt_types(
    declaration: StreamDeclaration, constraint_set: ConstraintSet | None, further_types: Collection[str], where: str
) -> list[str]:
    """Return notices about end events of a stream, and types of its constraints, that are probably misspelt.

    A type is reported only if it is similar to another type. It is never reported if it is among ``further_types``,
    such as those of events and schemas, or is declared. A type without a similar type is not reported, because its
    events may simply not have occurred yet. ``where`` completes the message, for example ``in these events``.
    """
    ends, known = {*declaration.end_events}, {*further_types, *declaration.event_types}
    named, of_workflow = set[str](), frozenset[str]()
    if constraint_set is not None:
        ends |= constraint_set.own.end_events
        named |= _followed_types(constraint_set)
        of_workflow = frozenset(() if constraint_set.process is None else constraint_set.process.types)
    notices = []
    for name in sorted(ends - known - named):
        if suggestion := did_you_mean(name, known - ends):
            notices.append(f"the end event {name}{suggestion} is none of the event types {where}, {_NO_END}")
        elif (similar := nearest(name, named - known - ends)) is not None:
            notices.append(
                f"the end event {name} is not among the types of the constraints and the workflow, which have "
                f"{similar}; one of the two names is probably misspelt"
            )
    return notices + [
        f"the type {name}{suggestion} of the {'workflow' if name in of_workflow else 'constraints'} is none of the "
        f"event types {where}"
        for name in sorted(named - known - ends)
        if (suggestion := did_you_mean(name, known - named))
    ]


def _of_attributes(
    pattern: Pattern, attributes: _Attributes, beside: Collection[str], *, is_example: bool
) -> Iterator[Notice]:
    read: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[Attribute, str | None]] = {}
    for attribute, alias, step_types in attributes_by_types(pattern):
        read.setdefault((attribute.path, step_types), (attribute, alias))
    named = {path[0] for path, _ in read} if is_example else set[str]()
    for (path, step_types), (attribute, alias) in read.items():
        if attributes.have(path, step_types):
            if items := attributes.list_before(path, step_types):
                yield _of_list(attribute, items)
            continue
        name = ".".join(path)
        names = attributes.names(step_types)
        suggestion = did_you_mean(name, names - named)
        is_like_alias = attribute.of is None and len(path) > 1 and path[0] not in names
        no_alias = f", and {path[0]} is not an alias that is known here" if is_like_alias else ""
        is_of_event = name in OF_EVENT and alias is not None
        own = f"; the {name} of the event is {name}({alias})" if is_of_event else ""
        if suggestion or not is_example:
            message = _missing(path, step_types, suggestion + no_alias, beside) + own
            yield Notice("unknown-attribute", message, attribute.position)


def _missing(path: tuple[str, ...], types: tuple[str, ...], suggestion: str, beside: Collection[str]) -> str:
    source = f"of the type {listed(types)}" if types else "here"
    where = f"; {path[0]} is beside data, and only the members of data are attributes" if path[0] in beside else ""
    return f"no event {source} has {'.'.join(path)}{suggestion}, so it is null everywhere{where}"


def types_of(events: EventBatch) -> list[str]:
    """Return the types in events. The first events are searched first, because they usually have all types."""
    for codes in (events.type_codes[:_FIRST], events.type_codes):
        is_present = np.bincount(codes, minlength=len(events.type_names)) > 0
        if is_present.all():
            break
    return list(compress(events.type_names, is_present))


def require_declared(pattern: Pattern, declaration: StreamDeclaration) -> None:
    """Raise an error if a pattern names a type that the stream does not declare, also in NOT and UNTIL.

    A stream that declares no types may have events of any type.
    """
    if not declaration.event_types:
        return
    for notice in unknown_types(pattern, declaration.event_types, "that the stream declares"):
        raise PatternRefused(notice.code, notice.message, notice.position)


def unfollowed_types(pattern: Pattern, constraint_set: ConstraintSet, further_types: Collection[str]) -> list[str]:
    """Return warnings about types of a pattern that are probably misspelt.

    A type is probably misspelt if it is not in the workflow, or if it is similar to a known type. These are no errors,
    because events of other types than those of a workflow may occur and do not deviate. ``further_types`` are
    known types besides those of the constraints, such as types with schemas.
    """
    known_types, source, is_complete = _known_types(constraint_set, further_types)
    return [
        notice.placed
        for notice in unknown_types(pattern, known_types, source, has_others=True)
        if known_types and (is_complete or "did you mean" in notice.message)
    ]


def unfed_types(pattern: Pattern, stream: str, producers: Collection[Pattern]) -> list[Notice]:
    """Return notices about types of a pattern that none of the patterns with INTO that feed its stream makes."""
    return unknown_types(pattern, types_made(producers), f"that patterns make for {stream!r}")


def types_made(producers: Collection[Pattern]) -> list[str]:
    """Return the types of the events that patterns with INTO make. The types of their retractions are included."""
    types = [type_made(pattern) for pattern in producers]
    return list(dict.fromkeys([*types, *(name + RETRACTED for name in types)]))


def type_made(pattern: Pattern) -> str:
    """Return the type of the events that a pattern with INTO makes."""
    assert pattern.into is not None, "asked of patterns with INTO"
    return pattern.into.event_type or pattern.name


def unfollowed_names(
    names_read: Sequence[NameRead],
    declaration: StreamDeclaration,
    constraint_set: ConstraintSet,
    further_types: Collection[str],
) -> list[str]:
    """Return warnings about types of an operator's document that are probably misspelt, as in ``unfollowed_types``.

    A type that the stream does not declare is reported, too, where the stream declares types.
    """
    if declaration.event_types:
        return unknown_names(names_read, declaration.event_types, "that the stream declares", declaration.event_types)
    known_types, source, is_complete = _known_types(constraint_set, {*further_types, *declaration.end_events})
    if not known_types:
        return []
    return unknown_names(names_read, known_types, source, known_types, only_similar=not is_complete)


def _known_types(constraint_set: ConstraintSet, further_types: Collection[str]) -> tuple[set[str], str, bool]:
    """Return the types that a stream is known to have, their source in words, and whether a workflow names them all."""
    process = constraint_set.process
    automaton = None if process is None else process.automaton
    known_types = {*constrained_types(constraint_set), *further_types}
    if automaton is not None and automaton.letters:
        return known_types, "of the stream's workflow", True
    return known_types, "of the stream's constraints, workflow and schemas", False


def _followed_types(constraint_set: ConstraintSet) -> frozenset[str]:
    """Return the types that constraints name otherwise than as end events, and those of the workflow."""
    process = constraint_set.process
    names = (name for part in (*constraint_set.constraints, *constraint_set.rules) for name in part.names)
    return frozenset(map(constraint_set.type_of, names)).union(() if process is None else process.types)


def constrained_types(constraint_set: ConstraintSet) -> frozenset[str]:
    """Return the types that the constraints of a stream and its workflow name."""
    process = constraint_set.process
    automaton = None if process is None else process.automaton
    letters = () if automaton is None else automaton.letters
    return constraint_set.types | constraint_set.settings.types | constraint_set.end_events | {*letters}


def _list_in(data: Any, path: tuple[str, ...]) -> int | None:
    """Return the number of names in a path before the first list that is not followed by an index.

    For the path ``items.price``, this is 1 if ``items`` is a list. If the path reaches a value without such a list, the
    result is 0. If the path reaches no value, the result is None.
    """
    for place, name in enumerate(path):
        if isinstance(data, list) and not is_element(name):
            return place
        data = inner_value(data, name)
    return None if data is None else 0


def _of_list(attribute: Attribute, items: tuple[str, ...]) -> Notice:
    whole, owner = ".".join(items), "" if attribute.of is None else f"{attribute.of}."
    rest = ".".join(attribute.path[len(items) :])
    return Notice(
        "list-member",
        f"{whole} is a list, so {whole}.{rest} is null everywhere; write {owner}{whole}[0].{rest} for the first "
        f"element, any({owner}{whole}, {rest} > 0) or sum({owner}{whole}, {rest}) for all",
        attribute.position,
    )


def _have_member(data: pa.Array, name: str) -> bool:
    return pc.any(pc.match_substring(data, orjson.dumps(name).decode())).as_py() is True


class _Attributes:
    """The attributes of events, by event type.

    Only the first events of a type are kept. If these lack an attribute, the other events are read, too.
    """

    def __init__(self, events: EventBatch) -> None:
        self._events = events
        self._first: dict[tuple[str, ...], pa.Array] = {}
        self._found: dict[tuple[str, tuple[str, ...]], bool] = {}

    def have(self, path: tuple[str, ...], types: tuple[str, ...]) -> bool:
        """Return whether each name of a path occurs as a member in events of the given types, at any depth.

        The result is True if there are no such events.
        """
        return not len(self._of(types)) or all(self._occurs(name, types) for name in path if not is_element(name))

    def _occurs(self, name: str, types: tuple[str, ...]) -> bool:
        if (name, types) not in self._found:
            first = self._of(types)
            self._found[name, types] = _have_member(first, name) or (
                len(first) == _FIRST
                and _have_member(self._events.columns.column("data").take(self._rows(types)[_FIRST:]), name)
            )
        return self._found[name, types]

    def list_before(self, path: tuple[str, ...], types: tuple[str, ...]) -> tuple[str, ...]:
        """Return the part of a path that leads to a list, if the next name is not an index. Otherwise, return ().

        Only the first events of the types are examined.
        """
        if len(path) == 1:
            return ()
        lengths = {_list_in(orjson.loads(text), path) for text in self._of(types)[:_MOST_EXAMINED].to_pylist()} - {None}
        return path[: lengths.pop()] if len(lengths) == 1 and 0 not in lengths else ()

    def names(self, types: tuple[str, ...]) -> set[str]:
        return {name for text in self._of(types)[:_MOST_EXAMINED].to_pylist() for name in orjson.loads(text)}

    def _of(self, types: tuple[str, ...]) -> pa.Array:
        if types not in self._first:
            self._first[types] = self._events.columns.column("data").take(self._rows(types)[:_FIRST])
        return self._first[types]

    def _rows(self, types: tuple[str, ...]) -> NDArray[np.intp]:
        is_meant = np.array([not types or name in types for name in self._events.type_names], np.bool_)
        return np.flatnonzero(is_meant[self._events.type_codes])
