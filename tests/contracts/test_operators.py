"""The laws of every kind of operator, in a shard. A new kind adds itself to ``CONTRACTS`` and is held to all of them.

1. How entries are cut into calls, and saving and loading in between, changes no result.
2. One shard or several give the same results; so does a shard that is divided on the way.
3. Streams do not disturb each other, however their entries lie among each other.
4. When all time has passed and every key has ended, nothing is left of them in the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import merged_id
from shards.kinds import KINDS, KINDS_BY_NAME, result_table
from shards.kinds.aggregates import AggregateKind
from shards.kinds.joins import JoinKind
from shards.kinds.patterns import SUPPRESSION
from shards.operators import Kind
from shards.rows import OutputRow
from shards.state import ShardState
from streams import (
    ConstraintsOn,
    ControlRecord,
    Definition,
    Event,
    Input,
    LogEntry,
    OperatorOff,
    OperatorOn,
    PatternOn,
    Punctuation,
    StreamDeclaration,
    StreamOn,
    Tick,
    TraceEnd,
    encode_control,
    position_order,
)
from tests.builders.shards import Step, log_of, saved_measures
from tests.contracts.tally import TallyKind

SECOND_US = 1_000_000
KEYS = tuple(f"k{number}" for number in range(7))
FAR_S = 10_000
BODIES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "pattern": [
        {"text": f"PATTERN o{number} EVENT {text}", "is_guarded": True}
        for number, text in enumerate(
            ("SEQ(A a, B b)", "SEQ(A a, NOT C) WITHIN 5 s", "SEQ(A a, B+ b [v > a.v]) WITHIN 9 s", "AND(A a, C c)")
        )
    ],
    "suppression": [{"stream": "orders", "suppression": {"by": ["v"], "for": "4 s", "is_rekeyed": False}}],
    "join-input": [
        {"into": "made", "number": 0, "alias": "a", "types": ["A", "B"], "last": ["B"], "ends": True, "path": None},
        {"into": "made", "number": 1, "alias": "b", "types": [], "last": [], "ends": False, "path": ["v"]},
    ],
    "join": [
        {
            "inputs": [{"stream": "x", "as": "A"}, {"stream": "y", "as": "B", "window": "2 s"}],
            "window": "5 s",
            "return": {"a": "id(A)", "b": "id(B)"},
            "late": "drop",
        },
        {
            "inputs": [{"stream": "x", "as": "A"}, {"stream": "y", "as": "C"}],
            "window": "3 s",
            "outer": ["C"],
            "return": {"a": "id(A)", "c": "C.v"},
            "late": "drop",
        },
        {
            "inputs": [{"stream": "x", "as": "A"}, {"stream": "y", "as": "C"}, {"stream": "y", "as": "B"}],
            "window": "3 s",
            "outer": ["A", "C"],
            "return": {"a": "id(A)", "b": "id(B)", "c": "C.v", "why": "decided_by(C)"},
            "late": "drop",
        },
    ],
    "aggregate-input": [
        {
            "into": "made",
            "aggregate": {"of": "x", "by": ["v"], "where": "type != 'C'", "values": {"n": "count()"}, "window": "5 s"},
        }
    ],
    "aggregate": [
        {
            "of": "x",
            "by": ["key"],
            "values": {"n": "count()", "sum": "sum(v)", "mean": "avg(v)", "most": "max(v)", "v": "distinct(v)"},
            "window": "4 s",
            "having": "n >= 2 AND sum > 1",
            "clear": True,
            "events": 2,
        },
        {
            "of": "x",
            "by": ["v", "key"],
            "where": "type = 'A' OR type = 'End'",
            "values": {"n": "count_if(v > 0)", "first": "first(type)", "spread": "stddev(v)"},
            "window": {"hopping": "6 s", "every": "2 s"},
            "having": "coalesce(before(n, 4 s), 0) < 2",
        },
        {"of": "x", "by": ["key"], "values": {"n": "count()", "last": "last(v)"}, "window": {"session": "3 s"}},
        {"of": "x", "by": ["key"], "values": {"n": "count()", "mid": "quantile(v, 0.5)"}, "window": "transaction"},
        {"of": "x", "by": ["key"], "values": {"n": "min(v)"}, "window": {"last": 2}, "having": "n > 0", "clear": True},
        {"of": "x", "by": ["key"], "values": {"n": "sum(v)"}, "window": "3 s", "having": "n > before(n, 2 s)"},
        {
            "of": "x",
            "by": ["key"],
            "where": "type != 'C'",
            "values": {"n": "count()", "v": "distinct(v)"},
            "window": "4 s",
            "having": "n >= 2",
            "clear": True,
            "type": "Busy",
            "ask": {"by": ["note", "v"]},
        },
        {"of": "x", "by": ["key"], "values": {"most": "max(v)"}, "window": {"tumbling": "3 s"}, "type": "Most"},
    ],
    "tap": [
        {"of": "orders", "results": "endings"},
        {"of": "orders", "results": "timeouts", "type": "Late"},
        {"of": "orders", "results": "deviations"},
    ],
    "tally": [{"every": 1}, {"every": 2}, {"every": 3}],
}
TAPPED: Sequence[ControlRecord] = [  # what taps make events of
    ConstraintsOn(name="orders", version=1, document={"constraints": [{"exclusive": ["B", "C"]}]}),
    PatternOn(name="ab", version=1, text="PATTERN ab EVENT SEQ(A a, B b)"),
    PatternOn(name="aac", version=1, text="PATTERN aac EVENT SEQ(A a, A b [v > a.v], C c) WITHIN 6 s EMIT TIMEOUTS"),
]
FED = ("made", *(f"o{number}" for number in range(8)))  # what joins, aggregates and their inputs make events of
TOTALS: Sequence[Mapping[str, Any]] = [
    {
        "inputs": [
            {"stream": "x", "as": "A", "closed_by": "unique", "window": "6 s"},
            {"stream": "y", "as": "B", "window": "9 s", "closed_by": ["clustered"] if is_clustered else []},
        ],
        "emit": "on_close",
        "outer": ["B"],
        "return": {"sum": "sum(B.v)", "a": "id(A)", "b": "count(B)"},  # not in the order of the alphabet
        "late": "drop",
    }
    for is_clustered in (False, True)
]


OF_ALL_GROUPS: Sequence[Mapping[str, Any]] = [  # which need all events in one shard
    {"of": "x", "by": ["v"], "values": {"n": "count()"}, "window": "4 s", "having": "2 * n > all(n)", "clear": True},
    {
        "of": "x",
        "by": ["v", "type"],
        "values": {"n": "count()", "newest": "last(note)"},
        "window": {"tumbling": "3 s"},
        "having": "3 * n > all(n) OR n > before(n, 6 s)",
    },
    {"of": "x", "values": {"n": "count()", "mean": "avg(v)"}, "window": {"session": "2 s"}, "events": 3},
]


@dataclass(frozen=True)
class Contract:
    """A kind, and bodies of definitions; the operator with body n is called ``o<n>``."""

    kind: Kind
    bodies: Sequence[Mapping[str, Any]]
    keys: Sequence[str] = KEYS

    @property
    def kinds(self) -> Mapping[str, Kind]:
        return {**KINDS_BY_NAME, self.kind.name: self.kind}

    def state(self, shard: int = 0) -> ShardState:
        return ShardState(shard, kinds=self.kinds)

    def reloaded(self, state: ShardState) -> ShardState:
        return ShardState.load(state.dump(), self.kinds)

    @property
    def feeds(self) -> bool:
        """Whether operators make events of the streams ``FED``."""
        return self.kind.name.startswith(("join", "aggregate", "tap"))

    def log(self, steps: Sequence[Step], *, stream: str = "orders", shards: int = 1) -> dict[int, list[LogEntry]]:
        """The log of each shard; parts get what the others would hand on, joins in streams that are declared before."""
        if self.kind.name == SUPPRESSION:
            steps = [[_alert(one) for one in step] if isinstance(step, list) else step for step in steps]
        if not self.feeds:
            return log_of(steps, stream=stream, shards=shards)
        is_join = self.kind.name == "join"
        given = [[_merged(one) for one in step] if is_join and isinstance(step, list) else step for step in steps]
        streams = [StreamOn(StreamDeclaration(name=name, derived=True)) for name in FED]
        declared = [_entry(f"0-{number}", one.declaration.name, one) for number, one in enumerate(streams, 1)]
        return {shard: [*declared, *log] for shard, log in log_of(given, stream=stream, shards=shards).items()}

    def all_over(self, steps: Sequence[Step]) -> list[LogEntry]:
        """The log of one shard; what operators have made is over, too."""
        log = self.log(steps)[0]
        if self.feeds:
            far: list[ControlRecord] = [
                Tick(time_us=(FAR_S + 2) * SECOND_US, cause="events"),
                *(TraceEnd(key=key) for key in self.keys),
            ]
            rest = enumerate(product(FED, far), 1)
            log += [_entry(f"2-{number}", name, record) for number, (name, record) in rest]
        return log

    def definitions(self, stream: str) -> st.SearchStrategy[list[OperatorOn]]:
        numbers = st.lists(st.integers(0, len(self.bodies) - 1), min_size=1, max_size=3, unique=True)
        return numbers.map(lambda some: [OperatorOn(self._definition(stream, number)) for number in some])

    def _definition(self, stream: str, number: int) -> Definition:
        body = {**self.bodies[number], **({"of": stream} if "of" in self.bodies[number] else {})}
        return Definition(kind=self.kind.name, name=f"o{number}", version=1, inputs=(Input(stream),), body=body)


def _alert(event: Event) -> Event:
    """An event as a pattern hands an alert on."""
    body = {"type": "alert", "id": event.id, "stream": "orders", "pattern": "o0", "key": event.key}
    return replace(event, data={**body, "returns": dict(event.data)})


def _merged(event: Event) -> Event:
    """An event as the input of a join hands it on."""
    data = {"type": event.type, "data": dict(event.data)}
    return replace(event, id=merged_id(0, int(event.id[1:]), event.id), data=data)


def _entry(position: str, stream: str, record: ControlRecord) -> LogEntry:
    return LogEntry(position=position, kind=record.KIND, stream=stream, body=encode_control(record))


CONTRACTS = [Contract(kind, BODIES[kind.name]) for kind in (*KINDS, TallyKind())]
OF_ALL = {"all groups": Contract(AggregateKind(), OF_ALL_GROUPS, keys=("all",))}  # their events are re-keyed
OF_TOTALS = {  # these remember finished keys, so something is left
    name: Contract(JoinKind(), [body]) for name, body in zip(("totals", "clustered totals"), TOTALS, strict=True)
}
RESULTS = result_table(contract.kind for contract in CONTRACTS)


def _each(more: dict[str, Contract]) -> pytest.MarkDecorator:
    contracts = {contract.kind.name: contract for contract in CONTRACTS} | more
    return pytest.mark.parametrize("contract", contracts.values(), ids=contracts)


EVERY_KIND, ALL_GROUPS_TOO, TOTALS_TOO = _each({}), _each(OF_ALL), _each(OF_ALL | OF_TOTALS)


@st.composite
def lives(draw: st.DrawFn, contract: Contract, stream: str = "orders") -> list[Step]:
    """A stream and its operators, then batches, each with its tick, among other records; at last all time passes."""
    lateness = draw(st.sampled_from([None, 3]))
    declaration = StreamDeclaration(name=stream, end_events=("End",), lateness=lateness)
    operators = draw(contract.definitions(stream))
    steps: list[Step] = [StreamOn(declaration), *(TAPPED if contract.kind.name == "tap" else ()), *operators]
    row = st.tuples(st.sampled_from(["A", "A", "B", "C", "End"]), st.sampled_from(contract.keys), st.integers(0, 3))
    seconds, number = 10, 0
    for rows in draw(st.lists(st.lists(row, min_size=1, max_size=8), min_size=1, max_size=6)):
        batch: list[Event] = []
        for event_type, key, pause in rows:
            number, seconds = number + 1, seconds + pause
            time_us = (seconds - draw(st.integers(0, lateness or 0))) * SECOND_US
            batch.append(
                Event(
                    id=f"e{number}",
                    type=event_type,
                    time_us=time_us,
                    key=key,
                    data={"v": number % 3, "note": f"note {number:040}"},
                )
            )
        steps += [batch, Tick(time_us=seconds * SECOND_US, cause="events")]
        match draw(st.integers(0, 9)):
            case 0:
                steps.append(TraceEnd(key=draw(st.sampled_from(contract.keys))))
            case 1:
                steps.append(Punctuation(before_us=(seconds - (lateness or 0)) * SECOND_US))
            case 2 if len(operators) > 1:
                steps.append(OperatorOff(contract.kind.name, operators.pop().operator.name))
    ends = [TraceEnd(key=key) for key in contract.keys]
    far = [
        Punctuation(before_us=seconds * SECOND_US) for seconds in (FAR_S, FAR_S + 1)
    ]  # the last is for what ends led to
    return [*steps, far[0], *ends, far[1]]


def said(rows: Sequence[OutputRow]) -> list[tuple[str, str, bytes]]:
    """What rows say, wherever they were found."""
    return sorted((row.kind, row.id, row.body) for row in rows)


def applied(state: ShardState, log: Sequence[LogEntry]) -> list[tuple[str, str, bytes]]:
    """What the rows say; their columns say the same as their bodies."""
    rows = state.apply(log)
    for row in rows:
        kind, body = RESULTS[row.kind], orjson.loads(row.body)
        assert (row.id, row.stream, row.subject) == (body["id"], body["stream"], kind.subject_of(body))
        assert row.counter == kind.counter_of(body)
    assert [row.body for row in rows if row.kind == "dead-letter"] == []
    return said(rows)


@TOTALS_TOO
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_cuts_and_reloads_change_nothing(contract: Contract, data: st.DataObject) -> None:
    log = contract.log(data.draw(lives(contract)))[0]
    whole, state, rows, done = contract.state(), contract.state(), [], 0
    expected = applied(whole, log)
    while done < len(log):
        end = data.draw(st.integers(done + 1, len(log)))
        rows += state.apply(log[data.draw(st.integers(0, done)) : end])  # what was applied before is passed over
        state, done = contract.reloaded(state) if data.draw(st.booleans()) else state, end
    assert said(rows) == expected
    assert saved_measures(state) == saved_measures(whole)


@EVERY_KIND
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_one_shard_or_several_say_the_same(contract: Contract, data: st.DataObject) -> None:
    steps = data.draw(lives(contract))
    expected = applied(contract.state(), contract.log(steps)[0])
    for shards in (2, 8):
        logs = contract.log(steps, shards=shards)
        assert sorted(row for shard, log in logs.items() for row in applied(contract.state(shard), log)) == expected


@EVERY_KIND
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_shard_that_is_divided_goes_on(contract: Contract, data: st.DataObject) -> None:
    steps = data.draw(lives(contract))
    few, many = contract.log(steps)[0], contract.log(steps, shards=3)
    cut = data.draw(st.integers(0, len(few)))
    done = position_order(few[cut - 1].position if cut else "0-0")
    state = contract.state()
    before = applied(state, few[:cut])
    after = [
        row
        for part in state.split(1, 3)
        for row in applied(
            contract.reloaded(part), [one for one in many[part.shard] if position_order(one.position) > done]
        )
    ]
    assert sorted(before + after) == applied(contract.state(), few)


@TOTALS_TOO
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_streams_do_not_disturb_each_other(contract: Contract, data: st.DataObject) -> None:
    logs = [contract.log(data.draw(lives(contract, name)), stream=name)[0] for name in ("orders", "others")]
    expected = sorted(row for log in logs for row in applied(contract.state(), log))
    waiting = [list(log) for log in logs]
    mixed: list[LogEntry] = []
    while any(waiting):
        chosen = data.draw(st.sampled_from([log for log in waiting if log]))
        mixed.append(replace(chosen.pop(0), position=f"1-{len(mixed) + 1}"))
    assert applied(contract.state(), mixed) == expected


@ALL_GROUPS_TOO
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_nothing_is_left_of_what_is_over(contract: Contract, data: st.DataObject) -> None:
    """A matcher is made with the first event of a place: compared with a state that has had one in each step."""
    steps = data.draw(lives(contract))
    state, fresh = contract.state(), contract.state()
    applied(state, contract.all_over(steps))
    applied(fresh, contract.all_over([step[:1] if isinstance(step, list) else step for step in steps]))
    assert state.measures()["orders"]["open_traces"] == 0
    without = {name for name, one in fresh.measures().items() if not one["events"]}
    made = sum(bool(one["events"]) for name, one in state.measures().items() if name in without)
    assert len(state.dump()) <= len(fresh.dump()) + _COUNTERS_BYTES + made * _EMPTY_MATCHER_BYTES


def test_time_passes_for_a_join_with_what_it_does_not_take() -> None:
    contract = next(one for one in CONTRACTS if one.kind.name == "join")
    declared = StreamOn(StreamDeclaration(name="orders", end_events=("End",), lateness=3))
    operators = [OperatorOn(contract._definition("orders", number)) for number in (0, 1)]
    rows = (("e1", "A", 10, "k0"), ("e2", "End", 13, "k4"), ("e3", "A", 16, "k0"))
    events = [Event(id=i, type=kind, time_us=at * SECOND_US, key=key, data={"v": 1}) for i, kind, at, key in rows]
    steps: list[Step] = [declared, *operators, events, OperatorOff("join", "o1")]
    found = applied(contract.state(), contract.log(steps)[0])
    assert [orjson.loads(body)["time"] for _, _, body in found] == ["1970-01-01T00:00:13.000000Z"]


_COUNTERS_BYTES = 256  # counts that have more digits
_EMPTY_MATCHER_BYTES = 2_600


def test_every_kind_has_a_contract() -> None:
    assert {kind.name for kind in KINDS} < {contract.kind.name for contract in CONTRACTS}
