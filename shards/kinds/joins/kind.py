"""Joins as two kinds of operators.

A join reads one stream: the merged events of its inputs, which is derived from the input streams. So the mechanisms of
derived streams sort the events of several streams into one order, send them from shard to shard, and determine their
common time. The modules of the hosts are imported on first use, so processes that only register joins do not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from shards.errors import OperatorRefused, OperatorSuspended, ShardError
from shards.feeds import Feed
from shards.kinds.joins.errors import JOIN_LETTERS, JoinSuspended
from shards.kinds.joins.result_kinds import JOIN_SUSPENSION
from shards.kinds.joins.sources import KEYLESS, WAIT, source_of
from shards.names_read import NameRead
from shards.operators import Decided, DeciderKind, DocumentKind, Host, Kind, SavedHost
from shards.results import ResultKind
from streams import Definition, ForestallError, Input, SpilledFiles, StreamDeclaration, key_json
from streams.tables import Lookup

if TYPE_CHECKING:
    from joins import JoinBody, WaitDecider

_OWN = (*"inputs window where emit outer return type late memory wait results".split(),)
_INPUT = "join-input"


def merged_stream(join: str) -> str:
    """Return the name of the inner stream in which a join reads the events of all its inputs."""
    return f"{join}.inputs"


@dataclass(frozen=True)
class JoinInputKind(Kind):
    """The kind of join inputs.

    An input marks the events of one stream, and passes them on to the inner stream that its join reads.
    """

    name: ClassVar[str] = _INPUT

    def feed(self, definition: Definition) -> Feed | None:
        return Feed(stream=definition.body["into"], is_rekeyed=definition.body["path"] is not None, is_merged=True)

    def finishes_range(self, definition: Definition, by: str, declaration: StreamDeclaration) -> bool:
        """Return whether an input of a join finishes keys when a punctuation names a range of the key ``by``.

        The input must be joined by this key, and its keys must be finished by ends of traces or by punctuations.
        """
        source, path = source_of(declaration.name, by or None, declaration)
        return definition.inputs == (source,) and definition.body["path"] == path and bool(definition.body["ends"])

    def is_observed(self, definition: Definition) -> bool:
        """Return whether a decider finishes the keys of an input after measuring its disorder (``wait: auto``)."""
        return bool(definition.body.get("wait"))

    def silenced(self, definition: Definition) -> Definition:
        """Return the input without dead letters, for another run over the same events.

        The dead letters would name a join that does not run again.
        """
        return replace(definition, body={**definition.body, "silent": True})

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        from shards.kinds.joins.inputs import JoinInputHost  # noqa: PLC0415 - loads the joins

        return JoinInputHost.of(declaration, route, saved)


def _decider(state: Mapping[str, Any] | None) -> WaitDecider:
    from joins import WaitDecider  # noqa: PLC0415 - takes long

    return WaitDecider.from_json(state)


@dataclass(frozen=True)
class JoinKind(DocumentKind):
    """The kind of joins.

    Attributes:
        files: The store of rows that exceed the memory of a join.
    """

    name: ClassVar[str] = "join"
    plural: ClassVar[str] = "joins"
    result_kinds: ClassVar[tuple[ResultKind, ...]] = (JOIN_SUSPENSION,)
    letters: ClassVar[tuple[type[ShardError], ...]] = JOIN_LETTERS
    suspended: ClassVar[type[OperatorSuspended]] = JoinSuspended
    holds: ClassVar[str] = "rows"
    decider: ClassVar[DeciderKind] = DeciderKind(name=WAIT, load=_decider)
    exercise: ClassVar[str] = "joins.exercises:joined"
    files: SpilledFiles = field(default_factory=SpilledFiles, compare=False)

    @property
    def schema(self) -> Mapping[str, Any]:
        return _schema()

    def spilling_to(self, files: SpilledFiles) -> JoinKind:
        return replace(self, files=files)

    def spills(self, definition: Definition) -> bool:
        return bool(definition.body.get("memory", {}).get("spill"))

    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        from shards.kinds.joins.conditions import body_of, condition_of  # noqa: PLC0415 - loads the joins

        body = {name: document[name] for name in _OWN if name in document}
        if unknown_members := sorted(document.keys() - {"kind", "name", *_OWN}):
            raise OperatorRefused(f"a join has {', '.join(unknown_members)}; it takes name, {', '.join(_OWN)}")
        try:
            join = body_of(body)
        except OperatorRefused:
            raise
        except ForestallError as error:
            raise OperatorRefused(error.message, **error.details) from error
        condition_of(join)
        for join_input in join.inputs:
            declared(join_input.stream)
        name = document["name"]
        return Definition(kind=self.name, name=name, version=0, inputs=(Input(merged_stream(name)),), body=body)

    def lookups(self, definition: Definition) -> Collection[Lookup]:
        from shards.kinds.joins.conditions import lookups_of  # noqa: PLC0415 - loads the joins

        return set(lookups_of(_body(definition.body)))

    def parts(self, definition: Definition, declared: Callable[[str], StreamDeclaration]) -> Sequence[Definition]:
        """Return the inputs of a join as operators, each at the place where its events arrive.

        An input with a further key has a second operator at the correlation key, for events without a usable further
        key.
        """
        from joins import readings_of  # noqa: PLC0415 - takes long

        definitions, join = [], _body(definition.body)
        for number, (join_input, reading) in enumerate(zip(join.inputs, readings_of(join), strict=True)):
            declaration = declared(join_input.stream)
            source, path = source_of(join_input.stream, join_input.key, declaration)
            by_constraints = "workflow" in join_input.closings
            if by_constraints and (path is not None or source.key):
                raise OperatorRefused(
                    f"the input {join_input.alias!r} is closed_by workflow, which is about transactions, but is joined "
                    f"by {join_input.key}; leave its key out, or take another closed_by"
                )
            body: dict[str, Any] = {
                "into": merged_stream(definition.name),
                "number": number,
                "alias": join_input.alias,
                "reading": reading,
                "types": list(join_input.types),
                "last": sorted(join_input.closing_types),
                "ends": join_input.ends_with_traces,
                "path": path,
                **({"workflow": True} if by_constraints else {}),
                **({"retracts": True} if declaration.derived and join_input.retractions == "take" else {}),
                **({"wait": True} if join_input.waits else {}),
            }
            name, version = f"{definition.name}.{join_input.alias}", definition.version
            definitions.append(Definition(kind=_INPUT, name=name, version=version, inputs=(source,), body=body))
            if source.key:
                body = body | {"last": [], "ends": False, "keyless": key_json(declaration.keys[source.key])}
                inputs = (Input(join_input.stream),)
                definitions.append(
                    Definition(kind=_INPUT, name=name + KEYLESS, version=version, inputs=inputs, body=body)
                )
        return definitions

    def inner_streams(self, name: str) -> Sequence[str]:
        return (merged_stream(name),)

    def advice_on_ranges(self, stream: str, key: str) -> str:
        return f"no active join has an input of the stream {stream!r} with {key} and closed_by end or punctuation"

    def keeps(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        from joins import keeps_rows  # noqa: PLC0415 - takes long

        return keeps_rows(_body(before), _body(after))

    def waiting(
        self, definition: Definition, counts: Mapping[str, int], state: Mapping[str, Any] | None
    ) -> Mapping[str, Mapping[str, Any]]:
        from joins import waiting_inputs  # noqa: PLC0415 - takes long

        body = _body(definition.body)
        by_alias = waiting_inputs(body, counts, state) if body.waits else {}
        return {alias: asdict(waiting_input) for alias, waiting_input in by_alias.items()}

    def unkeyed(self, definition: Definition, counts: Mapping[str, int]) -> Sequence[str]:
        from joins import without_keys  # noqa: PLC0415 - takes long

        return without_keys(_body(definition.body), counts)

    def notices(
        self,
        definition: Definition,
        declared: Callable[[str], StreamDeclaration],
        has_constraints: Callable[[str], bool],
    ) -> Sequence[str]:
        from joins import warnings  # noqa: PLC0415 - takes long
        from shards.kinds.joins.notices import notices_of  # noqa: PLC0415 - loads the joins

        body = _body(definition.body)
        return [*notices_of(body, definition.body, declared, has_constraints), *warnings(body)]

    def names_read(self, definition: Definition) -> Iterable[NameRead]:
        from shards.kinds.joins.notices import names_read  # noqa: PLC0415 - loads the joins

        return names_read(_body(definition.body))

    def explain(self, definition: Definition) -> Sequence[str]:
        from joins import explain  # noqa: PLC0415 - takes long

        return explain(_body(definition.body))

    def figures(self, definition: Definition, counts: Mapping[str, int]) -> tuple[Sequence[str], Mapping[str, int]]:
        """Return sentences about the rate and the state of each input, and the counts that no sentence mentions."""
        from joins import FIGURE, figures  # noqa: PLC0415 - takes long

        other_counts = {name: count for name, count in counts.items() if FIGURE not in name}
        return figures(_body(definition.body), counts), other_counts

    def measured(
        self,
        definition: Definition,
        counts: Mapping[str, int],
        state: Mapping[str, Any] | None,
        decisions: Sequence[Decided],
    ) -> Sequence[str]:
        """Return sentences about each input with ``wait: auto``.

        They name the disorder of the input's keys, and the decisions based on it.
        """
        from joins import waiting_inputs, waiting_sentences  # noqa: PLC0415 - takes long

        body = _body(definition.body)
        if not body.waits:
            return ()
        decided_us = {closed_input["input"]: at_us for at_us, record in decisions for closed_input in record["closed"]}
        return waiting_sentences(waiting_inputs(body, counts, state), decided_us)

    def feed(self, definition: Definition) -> Feed | None:
        return Feed(stream=definition.name)

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        from shards.kinds.joins.host import JoinHost, RunningJoin  # noqa: PLC0415 - loads the joins

        return JoinHost(self.name, declaration, route, partial(RunningJoin, spilled=self.files), saved)


def _body(document: Mapping[str, Any]) -> JoinBody:
    from shards.kinds.joins.conditions import body_of  # noqa: PLC0415 - loads the joins

    return body_of(document)


@cache
def _schema() -> Mapping[str, Any]:
    schema: Mapping[str, Any] = orjson.loads(files("shards.kinds.joins").joinpath("document.schema.json").read_bytes())
    return schema
