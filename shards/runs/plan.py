"""The plan of a run: one or several sets of rules over the same events, split into rounds.

A round matches the streams whose events are complete. A derived stream belongs to the round of its sources if it has
their key, because its events then remain in the shard. If any of its events are derived for another key, all its events
are the input of a later round.

The inputs of a join are merged in the round of the last input. If an input keeps its key, its stream is read again in
that round, with only the operators that feed this input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from shards.entries import StoredEntry
from shards.errors import RoundsImpossible
from shards.feeds import MOST_HOPS, Feed, Feeds, Operator
from shards.kinds import KINDS_BY_NAME
from shards.operators import Likeness
from shards.rows import RowBlock
from shards.state import ShardState
from streams import (
    AttributePath,
    ConstraintsOn,
    ControlRecord,
    Definition,
    OperatorOn,
    PatternOn,
    StreamDeclaration,
    StreamOn,
    encode_control,
)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One of the sets of rules that a run applies to the same events.

    Attributes:
        name: Distinct among the variants of a plan.
        records: Control records as they would be in the log before the first event, each with its stream.
        counterparts: For each operator, the operator of the first variant that it is compared with. By default this is
            the operator of the same name.
        alike: How the variant's alerts are compared with the alerts of the first variant.
    """

    name: str
    records: tuple[tuple[str, ControlRecord], ...]
    counterparts: Mapping[str, str] = field(default_factory=dict)
    alike: Likeness = "bindings"

    @cached_property
    def declarations(self) -> dict[str, StreamDeclaration]:
        """The declarations of the streams, by name."""
        return {name: record.declaration for name, record in self.records if isinstance(record, StreamOn)}

    @cached_property
    def routes(self) -> dict[str, dict[str, AttributePath]]:
        """The further keys that operators use, for each posted stream."""
        used_inputs = sorted(
            {source for _, definition in self.operators for source in definition.inputs}, key=lambda source: source.key
        )
        return {
            name: {
                used_input.key: declared.attribute_of(used_input.key)
                for used_input in used_inputs
                if used_input.key and used_input.stream == name
            }
            for name, declared in self.declarations.items()
            if not declared.derived
        }

    @cached_property
    def operators(self) -> list[tuple[str, Definition]]:
        """The operators of all kinds, each with the stream that it reads."""
        return [
            (name, definition)
            for name, record in self.records
            if (definition := definition_of(name, record)) is not None
        ]

    @cached_property
    def active(self) -> frozenset[str]:
        """The streams that a run has to match: posted streams, and streams with operators or constraints."""
        constrained = {name for name, record in self.records if isinstance(record, ConstraintsOn)}
        posted = {name for name, declared in self.declarations.items() if not declared.derived}
        return frozenset(constrained | posted | {name for name, _ in self.operators})

    @cached_property
    def feeds(self) -> Feeds:
        """The feeds of the operators: which operator feeds which derived stream."""
        feeds = Feeds({})
        for stream, definition in self.operators:
            feed = KINDS_BY_NAME[definition.kind].feed(definition)
            feeds = (
                feeds
                if feed is None
                else feeds.with_operator((stream, definition.inputs[0].key, definition.kind, definition.name), [feed])
            )
        return feeds

    @property
    def streams(self) -> tuple[str, ...]:
        """The declared streams, each derived stream after the streams that feed it."""
        derived = self.feeds.order
        return (*(name for name in self.declarations if name not in derived), *derived)

    def times(self, newest_us: Mapping[str, int]) -> dict[str, int]:
        """Return the event time that each stream has reached, given the newest time of each posted stream.

        A derived stream reaches the least time of its sources. Streams without a time are missing.
        """
        times_us = {name: at_us for name, at_us in newest_us.items() if name in self.declarations}
        for name in self.feeds.order:
            sources = self.feeds.sources[name]
            if sources <= times_us.keys():
                times_us[name] = min(times_us[source] for source in sources)
        return times_us


class Decision(NamedTuple):
    """A decision for a variant.

    Attributes:
        source: The posted stream whose events led to the decision.
        number: Arrival number of the last of these events (``EventBatch.arrivals``).
    """

    variant: int
    source: str
    number: int
    stream: str
    record: ControlRecord

    @property
    def is_of_source(self) -> bool:
        """Whether the decision is about its source stream, and thus applies from the stream's next event on.

        Any other decision has a time in its record.
        """
        return self.stream == self.source


class Repeated(NamedTuple):
    """A stream that a round reads again, because an input of a join there is merged in this later round.

    Attributes:
        operators: Kind and name of the operators that run again in this round.
        silent: Names of the operators that ran in an earlier round, so that their results are already reported.
    """

    operators: frozenset[tuple[str, str]]
    silent: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """The plan of a run: its variants, and the streams that each round matches.

    A round matches the streams whose events are complete. Events that it re-keys are the input of a later round.

    Attributes:
        variants: The sets of rules. The first variant is tested, and all others are compared with it.
        is_open: Whether more events may follow. If so, traces remain open, and each stream's time is that of its newest
            event. Otherwise every trace ends, and every deadline expires.
        decisions: The decisions about the streams, from ``shards.runs.decisions``.
        changes: The control records that change tables between events, in the order of the log.
    """

    variants: tuple[Variant, ...]
    is_open: bool = False
    decisions: tuple[Decision, ...] = ()
    changes: tuple[ControlRecord, ...] = ()

    @cached_property
    def rounds(self) -> tuple[tuple[str, ...], ...]:
        """The streams that each round matches for the first time, over all variants. A stream follows its sources."""
        active = {name for variant in self.variants for name in variant.active}
        numbers = {name: number for name, number in self._numbers.items() if name in active}
        last_round = max(numbers.values(), default=-1)
        return tuple(
            tuple(name for name, number in numbers.items() if number == round_number)
            for round_number in range(last_round + 1)
        )

    @cached_property
    def cuts(self) -> Mapping[str, tuple[int, ...]]:
        """For each posted stream, the sorted arrival numbers of events after which decisions about the stream apply."""
        numbers: dict[str, set[int]] = {}
        for decision in self.decisions:
            if decision.is_of_source:
                numbers.setdefault(decision.source, set()).add(decision.number)
        return {stream: tuple(sorted(stream_numbers)) for stream, stream_numbers in numbers.items()}

    def routes(self, stream: str) -> dict[str, AttributePath]:
        """Return the further keys of a posted stream that operators of any variant use."""
        return {name: path for variant in self.variants for name, path in variant.routes.get(stream, {}).items()}

    def streams_of(self, number: int, variant: int) -> tuple[str, ...]:
        """Return the streams that a round finishes for a variant, in processing order.

        Streams that the round reads again are included.
        """
        round_streams, repeated_streams = set(self.rounds[number]), self.repeated(number, variant)
        return tuple(
            name for name in self.variants[variant].streams if name in round_streams or name in repeated_streams
        )

    def ticked(self, number: int, variant: int, newest_us: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """Yield the streams that advance to their final time in a round, each with this time.

        These are the posted streams, and the derived streams with re-keyed events, whose events are complete. Streams
        derived within the shard are left out, because they follow their sources.
        """
        rules = self.variants[variant]
        for name, time_us in rules.times(newest_us).items():
            is_own = not rules.declarations[name].derived or name in rules.feeds.logged
            if is_own and self._numbers[name] <= number:
                yield name, time_us

    def takes(self, number: int, variant: int, stream: str, route: str) -> bool:
        """Return whether a round reads the events of a stream by the key ``route``, for a variant.

        A further key is read only if an operator uses it.
        """
        is_read = stream in self.rounds[number] or stream in self.repeated(number, variant)
        if not is_read or stream not in self.variants[variant].declarations:
            return False
        return not route or any(
            name == stream and definition.inputs[0].key == route and self._runs(number, variant, name, definition)
            for name, definition in self.variants[variant].operators
        )

    def reads(self, number: int) -> frozenset[str]:
        """Return the streams whose events a round may read, including the streams that it reads again."""
        repeated_streams = {name for variant in range(len(self.variants)) for name in self.repeated(number, variant)}
        return frozenset(repeated_streams.union(self.rounds[number]))

    def repeated(self, number: int, variant: int) -> Mapping[str, Repeated]:
        """Return the streams that a round reads again for a variant, by name, with the operators that run again."""
        return self._repeated[number, variant]

    def begun(self, number: int, variant: int, shard: int) -> tuple[ShardState, list[RowBlock]]:
        """Create a shard for a round, and apply the variant's control records.

        Return also the dead letters of these records.
        """
        records = []
        for stream, record in self.variants[variant].records:
            definition = definition_of(stream, record)
            if definition is None or self._runs(number, variant, stream, definition):
                records.append((stream, self._silenced(number, variant, stream, record)))
        state = ShardState(shard)
        return state, state.advance(_entries(records))

    def _silenced(self, number: int, variant: int, stream: str, record: ControlRecord) -> ControlRecord:
        repeated_stream = self.repeated(number, variant).get(stream)
        if (
            repeated_stream is None
            or not isinstance(record, OperatorOn)
            or record.operator.name not in repeated_stream.silent
        ):
            return record
        return replace(record, operator=KINDS_BY_NAME[record.operator.kind].silenced(record.operator))

    def _runs(self, number: int, variant: int, stream: str, definition: Definition) -> bool:
        """Return whether a round runs an operator for a variant.

        In a stream that the round reads again, only the operators of ``Repeated`` run. In another stream, an operator
        runs unless it is a join input whose events are merged in a later round.
        """
        repeated_streams = self.repeated(number, variant)
        if stream in repeated_streams:
            return (definition.kind, definition.name) in repeated_streams[stream].operators
        feeds = self.variants[variant].feeds.of.get(
            (stream, definition.inputs[0].key, definition.kind, definition.name), ()
        )
        return not any(self._waits(stream, feed) for feed in feeds)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        """The number of the first round that matches each stream.

        Raises ``RoundsImpossible`` if variants derive streams in opposite directions.
        """
        names = dict.fromkeys(name for variant in self.variants for name in variant.streams)
        numbers = dict.fromkeys(names, 0)
        feeds = list(dict.fromkeys((source, feed) for variant in self.variants for source, feed in _feeds(variant)))
        for _ in range(MOST_HOPS * len(self.variants) + 1):
            before = dict(numbers)
            for (source, *_), feed in feeds:
                numbers[feed.stream] = max(numbers[feed.stream], numbers[source] + feed.is_rekeyed)
            if numbers == before:
                return numbers
        raise RoundsImpossible("two sets of rules derive the same streams from each other in opposite directions")

    @cached_property
    def _repeated(self) -> Mapping[tuple[int, int], dict[str, Repeated]]:
        by_round = {}
        for number in range(len(self.rounds)):
            for variant in range(len(self.variants)):
                by_round[number, variant] = self._read_again(number, self.variants[variant])
        return by_round

    def _read_again(self, number: int, variant: Variant) -> dict[str, Repeated]:
        """Return the streams that a round has to read again, each with the operators that run again.

        They are the streams of join inputs that wait for this round, because another input of the join is complete only
        now. The streams that feed these within the shard are read again, too.
        """
        operators: dict[str, set[tuple[str, str]]] = {}
        silent: dict[str, set[str]] = {}
        feeds = list(_feeds(variant))
        for (stream, _, kind, name), feed in feeds:
            if self._waits(stream, feed) and self._numbers[feed.stream] == number:
                operators.setdefault(stream, set()).add((kind, name))
        waiting = list(operators)
        while waiting:
            target = waiting.pop()
            for (stream, _, kind, name), feed in feeds:
                is_direct = feed.stream == target and not feed.is_rekeyed
                is_new = (kind, name) not in operators.get(stream, ())
                if is_direct and self._numbers[stream] == self._numbers[target] and is_new:
                    waiting.append(stream)
                    again = _with_heard(variant, stream, kind, name)
                    operators.setdefault(stream, set()).update(again)
                    silent.setdefault(stream, set()).update(again_name for _, again_name in again)
        for (stream, _, kind, name), feed in feeds:  # advances time in streams with other keys, as a single round would
            if stream in operators and feed.is_rekeyed and self._numbers[feed.stream] == number:
                again = _with_heard(variant, stream, kind, name) - operators[stream]
                operators[stream] |= again
                silent.setdefault(stream, set()).update(again_name for _, again_name in again)
        for (stream, _, kind, name), feed in feeds:  # derive the streams that these operators feed again
            if (kind, name) in operators.get(stream, ()) and self._numbers[feed.stream] == self._numbers[stream]:
                operators.setdefault(feed.stream, set())
        return {
            name: Repeated(frozenset(kinds_and_names), frozenset(silent.get(name, ())))
            for name, kinds_and_names in operators.items()
        }

    def _waits(self, stream: str, feed: Feed) -> bool:
        """Return whether a feed belongs to a join input whose events keep their key and are merged in a later round."""
        return feed.is_merged and not feed.is_rekeyed and self._numbers[stream] < self._numbers[feed.stream]


def _with_heard(variant: Variant, stream: str, kind: str, name: str) -> set[tuple[str, str]]:
    heard = KINDS_BY_NAME[kind].hears  # empty: the kind reads no results
    return {(kind, name)} | {
        (heard, definition.name) for at, definition in variant.operators if (at, definition.kind) == (stream, heard)
    }


def likeness(first: Variant, other: Variant) -> Likeness:
    """Return how alerts of two variants are compared: by bindings, or by bound events if aliases differ."""
    tested = {(definition.kind, definition.name): definition for _, definition in first.operators}
    likenesses = [
        KINDS_BY_NAME[compared_operator.kind].likeness(tested_operator, compared_operator)
        for _, compared_operator in other.operators
        if (
            tested_operator := tested.get(
                (compared_operator.kind, other.counterparts.get(compared_operator.name, compared_operator.name))
            )
        )
        is not None
    ]
    return "events" if "events" in likenesses else "bindings"


def run_exercises(plan: RoundPlan) -> list[str]:
    """Return the exercises that compile the kernels of a run (``streams.compiling``)."""
    return sorted({exercise for variant in plan.variants for exercise in _variant_exercises(variant) if exercise})


def _variant_exercises(variant: Variant) -> Iterator[str]:
    """Yield exercises that compile the kernels of a variant, for each place.

    Constraints apply only at places of the correlation key.
    """
    places = {(name, "") for name in variant.active} | {
        (name, definition.inputs[0].key) for name, definition in variant.operators
    }
    for name, route in places:
        at_place = [
            definition
            for stream, definition in variant.operators
            if (stream, definition.inputs[0].key) == (name, route)
        ]
        records = [record for stream, record in variant.records if stream == name and not route]
        constraints_document = next((record.document for record in records if isinstance(record, ConstraintsOn)), None)
        for kind in KINDS_BY_NAME.values():
            of_kind = [definition for definition in at_place if definition.kind == kind.name]
            if of_kind or (kind.is_resident and not route):
                yield kind.exercise_for(of_kind, variant.declarations[name], constraints_document)


def _feeds(variant: Variant) -> Iterator[tuple[Operator, Feed]]:
    return ((operator, feed) for operator, operator_feeds in variant.feeds.of.items() for feed in operator_feeds)


def definition_of(stream: str, record: ControlRecord) -> Definition | None:
    """Return the operator that a control record starts, or None if the record starts none."""
    if isinstance(record, PatternOn):
        return record.definition(stream)
    return record.operator if isinstance(record, OperatorOn) else None


def _entries(records: Iterable[tuple[str, ControlRecord]]) -> Iterator[StoredEntry]:
    for number, (stream, record) in enumerate(records, start=1):
        body = encode_control(record)
        yield StoredEntry(position=f"1-{number}", kind=record.KIND.value, stream=stream, body=body)
