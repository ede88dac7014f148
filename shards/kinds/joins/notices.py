"""Notices about members of a join that are valid but have no effect. Such a member is probably a mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from joins import Column, JoinBody, JoinInput
from shards.kinds.joins.conditions import condition_of
from shards.kinds.joins.sources import source_of
from shards.names_read import NameRead
from streams import StreamDeclaration

_OF_EVENT = ("id", "type", "time")


def notices_of(
    body: JoinBody,
    document: Mapping[str, Any],
    declared: Callable[[str], StreamDeclaration],
    has_constraints: Callable[[str], bool],
) -> Iterator[str]:
    """Yield a sentence for each member of a join that has no effect, or probably not the intended one.

    ``declared`` returns the declaration of the stream with a name. ``has_constraints`` returns whether a stream follows
    a workflow or has constraints.
    """
    for number, join_input in enumerate(body.inputs):
        source, path = source_of(join_input.stream, join_input.key, declared(join_input.stream))
        if path is not None:
            yield from _of_rekeyed(join_input, path)
        if "workflow" in join_input.closings and not has_constraints(join_input.stream):
            yield (
                f"closed_by: workflow of the input {join_input.alias!r} finishes keys with the end of transactions "
                f"only: the stream {join_input.stream!r} follows no workflow and has no constraints"
            )
        if "retractions" in document["inputs"][number]:
            yield from _of_retractions(
                join_input, declared(join_input.stream), is_keyed=path is not None or bool(source.key)
            )
    condition = condition_of(body)
    yield from (f"where: {sentence}" for sentence in (() if condition is None else condition.null_comparisons))
    for field, column in _columns_read(body):
        if len(column.path) == 1 and column.path[0] in _OF_EVENT:
            (name,) = column.path
            yield (
                f"{field}: {column.alias}.{name} reads the attribute {name!r} of the event's data; the {name} of the "
                f"event is {name}({column.alias})"
            )
        if "" in column.path and field != "where":
            yield f"{field}: the path {'.'.join(column.path)!r} has an empty name; no attribute has one"


def names_read(body: JoinBody) -> Iterator[NameRead]:
    """Yield the event types of a join's inputs, and the attributes that ``where`` and ``return`` read."""
    inputs = {join_input.alias: join_input for join_input in body.inputs}
    for alias, join_input in inputs.items():
        if types := (*join_input.types, *sorted(join_input.closing_types.difference(join_input.types))):
            yield NameRead(f"the input {alias!r}", join_input.stream, types)
    for field, column in _columns_read(body):
        if column.path:
            join_input = inputs[column.alias]
            yield NameRead(field, join_input.stream, join_input.types, column.path)


def _columns_read(body: JoinBody) -> Iterator[tuple[str, Column]]:
    condition = condition_of(body)
    yield from (("where", column) for column in (() if condition is None else condition.reads))
    for member in body.members:
        yield from ((f"return, {member.name}", body.columns[place]) for place in member.places)


def _of_rekeyed(join_input: JoinInput, path: list[str]) -> Iterator[str]:
    if "" in path:
        yield (
            f"key of the input {join_input.alias!r}: the path {join_input.key!r} has an empty name, so no event has "
            "a key"
        )
    if "end" in join_input.closings:
        yield (
            f"closed_by: end of the input {join_input.alias!r} finishes no key with the end of a transaction, as the "
            f"stream {join_input.stream!r} does not declare its key {join_input.key!r}: declare it in 'keys' of the "
            "stream, or finish ranges of keys"
        )


def _of_retractions(join_input: JoinInput, declaration: StreamDeclaration, *, is_keyed: bool) -> Iterator[str]:
    if not declaration.derived:
        yield (
            f"retractions of the input {join_input.alias!r} does nothing: the stream {join_input.stream!r} takes "
            "posted events, and only events of derived streams are retracted"
        )
    elif is_keyed and join_input.retractions == "take":
        yield (
            f"retractions of the input {join_input.alias!r} does nothing: it is joined by {join_input.key}, an "
            "attribute that retractions do not have"
        )
