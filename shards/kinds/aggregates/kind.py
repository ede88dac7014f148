"""Aggregates as two kinds of operators.

If the attributes in ``by`` contain the key of the stream, an aggregate runs at the place of its stream. Otherwise it
runs at the place of an inner stream, to which an input re-keys the events by their group. The modules of the hosts are
imported on first use, so processes that only register aggregates do not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from shards.errors import OperatorRefused, OperatorSuspended
from shards.feeds import Feed
from shards.kinds.aggregates.errors import AggregateSuspended
from shards.kinds.aggregates.results import AGGREGATE_SUSPENSION, moved_stream
from shards.kinds.aggregates.schema import AGGREGATE_SCHEMA
from shards.names_read import NameRead
from shards.operators import DocumentKind, Host, Kind, SavedHost
from shards.results import ResultKind
from streams import Definition, ForestallError, Input, StreamDeclaration
from streams.tables import Lookup, Tables

if TYPE_CHECKING:
    from aggregates import AggregateBody

_INPUT = "aggregate-input"


@lru_cache(maxsize=256)
def _asked_body(text: bytes) -> AggregateBody:
    from aggregates import read_aggregate  # noqa: PLC0415 - takes long

    return read_aggregate(orjson.loads(text))


@dataclass(frozen=True)
class AggregateInputKind(Kind):
    """The kind of the inputs that re-key the events of an aggregate by their group."""

    name: ClassVar[str] = _INPUT
    is_counted: ClassVar[bool] = True

    def feed(self, definition: Definition) -> Feed:
        """Return the feed into the stream of the aggregate."""
        return Feed(stream=definition.body["into"], is_rekeyed=True, is_merged=True)

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        from shards.kinds.aggregates.inputs import AggregateInput, AggregateInputHost  # noqa: PLC0415 - takes long

        return AggregateInputHost(self.name, declaration, route, AggregateInput, saved)


@dataclass(frozen=True)
class AggregateKind(DocumentKind):
    """The kind of aggregates."""

    name: ClassVar[str] = "aggregate"
    plural: ClassVar[str] = "aggregates"
    result_kinds: ClassVar[tuple[ResultKind, ...]] = (AGGREGATE_SUSPENSION,)
    suspended: ClassVar[type[OperatorSuspended]] = AggregateSuspended
    is_final: ClassVar[bool] = True
    schema: ClassVar[Mapping[str, Any]] = AGGREGATE_SCHEMA
    holds: ClassVar[str] = "windows"
    is_asked: ClassVar[bool] = True
    is_plotted: ClassVar[bool] = True
    exercise: ClassVar[str] = "aggregates.exercises:aggregated"

    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        from aggregates import read_aggregate, why_moved  # noqa: PLC0415 - takes long
        from shards.kinds.aggregates.reading import EventReader, having_of, is_moved  # noqa: PLC0415 - takes long

        name = document["name"]
        body = {member: value for member, value in document.items() if member not in ("kind", "name")}
        try:
            aggregate = read_aggregate(body)
        except ForestallError as error:
            raise OperatorRefused(error.message, **error.details) from error
        EventReader.of(aggregate)
        having_of(aggregate)
        stream = declared(aggregate.of)
        moved = is_moved(aggregate, stream)
        if moved and aggregate.window.kind == "transaction":
            raise OperatorRefused(
                f"window: transaction needs the key of the stream in 'by' (by: [key]), because {why_moved(aggregate)}",
                field="window",
            )
        source = Input(moved_stream(name) if moved else aggregate.of)
        return Definition(kind=self.name, name=name, version=0, inputs=(source,), body=body)

    def lookups(self, definition: Definition) -> Collection[Lookup]:
        """Return the lookups in ``where``, ``having`` and the values of an aggregate."""
        from aggregates import read_aggregate  # noqa: PLC0415 - takes long
        from shards.kinds.aggregates.reading import EventReader, having_of  # noqa: PLC0415 - takes long

        body = read_aggregate(definition.body)
        having = having_of(body)
        return EventReader.of(body).lookups | (frozenset() if having is None else having.lookups)

    def require_rows(self, definition: Definition, tables: Tables) -> None:
        """Refuse a table whose rows cannot be the groups of an aggregate."""
        from aggregates import read_aggregate  # noqa: PLC0415 - takes long
        from shards.kinds.aggregates.row_groups import require_groups  # noqa: PLC0415 - takes long

        require_groups(read_aggregate(definition.body), tables)

    def parts(self, definition: Definition, declared: Callable[[str], StreamDeclaration]) -> Sequence[Definition]:
        """Return the input that re-keys the events of an aggregate. The result is empty if events are not re-keyed."""
        into, stream = moved_stream(definition.name), definition.body["of"]
        if definition.inputs != (Input(into),):
            return ()
        declared(stream)
        body = {"into": into, "aggregate": definition.body}
        name, version = f"{definition.name}.events", definition.version
        return (Definition(kind=_INPUT, name=name, version=version, inputs=(Input(stream),), body=body),)

    def final_input(self, definition: Definition) -> tuple[str, str]:
        """Return the stream whose events must not be retracted, and the member of the aggregate that requires this.

        Both are empty if the aggregate accepts retractions.
        """
        member = next((member for member in ("ask", "for_each_row_of") if member in definition.body), "")
        return (definition.body["of"], member) if member else ("", "")

    def inner_streams(self, name: str) -> Sequence[str]:
        """Return the name of the stream of an aggregate's re-keyed events."""
        return (moved_stream(name),)

    def explain(self, definition: Definition) -> Sequence[str]:
        """Return sentences about an aggregate: where it runs and why, how long it retains events, and when it emits."""
        from aggregates import explain, read_aggregate  # noqa: PLC0415 - takes long

        body = read_aggregate(definition.body)
        is_moved = definition.inputs == (Input(moved_stream(definition.name)),)
        return explain(body, is_moved=is_moved)

    def notices(
        self,
        definition: Definition,
        declared: Callable[[str], StreamDeclaration],
        has_constraints: Callable[[str], bool],
    ) -> Sequence[str]:
        from aggregates import read_aggregate  # noqa: PLC0415 - takes long
        from shards.kinds.aggregates.reading import null_comparisons_of  # noqa: PLC0415 - takes long

        return null_comparisons_of(read_aggregate(definition.body))

    def names_read(self, definition: Definition) -> Iterable[NameRead]:
        from aggregates import read_aggregate  # noqa: PLC0415 - takes long
        from shards.kinds.aggregates.reading import EventReader  # noqa: PLC0415 - takes long

        return EventReader.of(read_aggregate(definition.body)).names_read

    def check_question(self, definition: Definition, question: Mapping[str, Any]) -> None:
        from aggregates import read_question  # noqa: PLC0415 - takes long

        body = _asked_body(orjson.dumps(definition.body))
        try:
            read_question(body, question)
        except ForestallError as error:
            raise OperatorRefused(error.message, **error.details) from error

    def answer_of(
        self, definition: Definition, question: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """Merge the answers of all shards into one answer, which has the groups and their values.

        If the question has ``explain``, the answer also has each shard's description of its index.
        """
        from aggregates import Answer, merged  # noqa: PLC0415 - takes long

        answer = merged([Answer.from_json(reply["answer"]) for reply in answers])
        return {
            "groups": answer.rows(),
            "events": answer.events,
            "compared": answer.compared,
            "time_us": answer.end_us,
            "indexes": [reply["index"] for reply in answers if "index" in reply],
        }

    def plotted(self, definition: Definition) -> tuple[Sequence[str], Sequence[str]]:
        """Return the attributes in ``by``, which identify the groups, and the names of the aggregate's values."""
        from aggregates import read_aggregate  # noqa: PLC0415 - takes long

        body = read_aggregate(definition.body)
        return body.by, [value.name for value in body.values]

    def feed(self, definition: Definition) -> Feed:
        """Return the feed into the stream with the aggregate's name."""
        return Feed(stream=definition.name)

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        from shards.hosts.keyed_host import KeyedHost  # noqa: PLC0415 - takes long
        from shards.kinds.aggregates.host import RunningAggregate  # noqa: PLC0415 - takes long

        return KeyedHost(self.name, declaration, route, RunningAggregate, saved)
