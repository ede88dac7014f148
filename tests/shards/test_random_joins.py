"""Random joins of two to four inputs in shards find what their documents mean, by a naive reading of them.

The naive reading sorts the events of all inputs by time, input and place, says what each of them finishes, and asks the
brute-force join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from joins import Item, JoinInput, JoinRefused, Why, read_join
from joins.kernels.tables import FINISHED
from shards import InlineShards, OldestFirst, Policy, RowBlock, ShardState
from shards.kinds.joins import JoinKind, merged_stream
from streams import (
    Event,
    EventBatch,
    KeyRange,
    OperatorOn,
    PatternOn,
    Punctuation,
    StreamDeclaration,
    StreamOn,
    format_time,
    key_of,
)
from tests.references.joins import ReferenceJoin
from tests.references.outer import ReferenceOuterJoin

IDLE, IDLE_US = "idle", 6
RANGE = "range"
RETRACTED = ".retracted"
KEYS = ["1", "2", "30", "a"]
"""Of orders; a range may contain those that are whole numbers."""
STREAMS = {
    "orders": StreamDeclaration(name="orders", end_events=("End",)),
    "parcels": StreamDeclaration(name="parcels", keys={"order": "data.order"}),
    "payments": StreamDeclaration(name="payments", end_events=("End",), idle_timeout=IDLE_US / 1e6),
    "alarms": StreamDeclaration(name="alarms", end_events=("End",)),
}
SEEN = {**STREAMS, "alarms": replace(STREAMS["alarms"], derived=True)}
"""As the join sees them: what is posted to alarms stands for what patterns make, and take back."""
KIND = JoinKind()
FAR_US = 100
FAR = format_time(FAR_US)
NAME = "all"

windows = st.sampled_from(["none", "none", "2 us", "5 us", {"last": 1}, {"last": 2}])
closings = st.lists(
    st.sampled_from(["unique", "clustered", "end", "punctuation", "punctuation", {"type": "Last"}]),
    max_size=2,
    unique_by=str,
)
retractions = st.sampled_from(["take", "take", "1 us", "4 us", "event"])
unusual_keys: st.SearchStrategy[Any] = st.sampled_from([None, "", 0.5, True, [], 1.0])
"""What is no key, and a number with a point, which is one."""
ranges = st.sampled_from([{"to": 1}, {"to": 2}, {"from": 2}, {"from": 2, "to": 40}, {"from": -5, "to": 29}])


VALUES = [1, 2, 2.0, "x", None, 3]
CONDITIONS: dict[str, Callable[[Sequence[Event]], bool]] = {
    "i0.v = i1.v": lambda events: (
        value_of(events[0]) is not None
        and type_of(events[0]) == type_of(events[1])
        and value_of(events[0]) == value_of(events[1])
    ),
    "time(i1) >= time(i0)": lambda events: events[1].time_us >= events[0].time_us,
    "i0.v IS NOT NULL AND NOT type(i1) = type(i0)": lambda events: (
        value_of(events[0]) is not None and events[0].type != events[1].type
    ),
    "id(i0) != id(i1) OR i1.v > 2": lambda events: events[0].id != events[1].id or value_of(events[1]) == 3,
}
"""Conditions between inputs, and their meaning in combinations."""


def value_of(event: Event) -> Any:
    """The attribute ``v``; None: the event has none."""
    return event.data.get("v")


def type_of(event: Event) -> type | None:
    """What the value of an event can be compared with; None: with nothing."""
    return {int: float, float: float, str: str}.get(type(value_of(event)))


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Joins whose memory is bounded: by windows and closings, or as the rest of their events is on disk."""
    inputs = []
    for number in range(draw(st.integers(2, 4))):
        stream = draw(st.sampled_from([*sorted(STREAMS), "alarms"]))
        one: dict[str, Any] = {"stream": stream, "as": f"i{number}", "closed_by": draw(closings)}
        one["window"] = draw(windows)
        if draw(st.booleans()):
            one["type"] = draw(st.sampled_from(["A", "B", ["A", "B"]]))
        if stream == "alarms":
            one["retractions"] = draw(retractions)
        if stream == "parcels":
            one["key"] = draw(st.sampled_from(["order", "data.other"]))
        inputs.append(one)
    aliases = [one["as"] for one in inputs]
    outer = draw(st.lists(st.sampled_from(aliases), unique=True)) if draw(st.booleans()) else []
    returns = {f"r{number}": f"id(i{number})" for number in range(len(inputs))}
    returns |= {f"w{alias}": f"decided_by({alias})" for alias in outer}
    if outer and len(inputs) > 2:
        inputs = [{name: value for name, value in one.items() if name != "retractions"} for one in inputs]
    document: dict[str, Any] = {"name": NAME, "inputs": inputs, "return": returns, "outer": outer}
    where = draw(st.sampled_from([None, None, *CONDITIONS]))
    if where is not None and not (outer and len(inputs) > 2):
        document["where"] = where
    rows = draw(st.sampled_from([None, None, 1, 3]))
    if rows is not None:
        document["memory"] = {"rows": rows, "spill": True}
    try:
        read_join({name: value for name, value in document.items() if name != "name"})
    except JoinRefused:
        assume(False)
    return document


@st.composite
def events(draw: st.DrawFn) -> list[tuple[str, Event]]:
    """Events of three streams by time, each with its stream; the key of parcels is not that of their order.

    They are many, as few combinations of few events are complete. What finishes a range is among them, and what takes
    back one of the last alarms.
    """
    row = st.tuples(
        st.sampled_from([*sorted(STREAMS), "alarms"]),
        st.sampled_from(["A", "A", "A", "A", "B", "B", "Last", "End", RANGE, RETRACTED, RETRACTED]),
        st.sampled_from(KEYS),
        st.integers(0, 2),
    )
    found, time_us, alarms = list[tuple[str, Event]](), 1, list[Event]()
    for number, (source, what, drawn, pause) in enumerate(draw(st.lists(row, min_size=12, max_size=30))):
        stream, event_type, key = source, what, drawn
        time_us += pause
        data: dict[str, Any] = {}
        if event_type == RANGE:
            by = draw(st.sampled_from(["order", "data.other"])) if stream == "parcels" else ""
            data = {"range": draw(ranges), "by": by}
        elif event_type == RETRACTED:
            of = alarms[-1 - number % min(4, len(alarms))] if alarms else None
            stream, event_type, key = "alarms", (of.type if of else "A") + RETRACTED, of.key if of else key
            data["retracts"] = of.id if of else "nothing"
        other = draw(unusual_keys) if stream == "parcels" and number % 3 == 0 else key
        if isinstance(other, float) and other.is_integer():  # the same key as the order's
            other = key if key == "a" else float(key)
        order = draw(unusual_keys.filter(lambda one: one != 1.0)) if stream == "parcels" and number % 5 == 0 else key
        if event_type != RANGE:
            data |= {"k": key, "order": order, "other": other, "v": VALUES[number % len(VALUES)]}
        own = f"x{number % 4}" if stream == "parcels" else key
        event = Event(id=f"e{number:02}", type=event_type, time_us=time_us, key=own, data=data)
        if stream == "alarms" and what not in (RANGE, RETRACTED):
            alarms.append(event)
        found.append((stream, event))
    return found


@dataclass
class Naive:
    """What a document means.

    Attributes:
        inputs: As they are read.
        join: The brute force.
        ids: Of the events so far.
        events: By sequence number the events so far.
        numbers: Of join keys.
        newest: Of each input the key of its newest event.
        now_us: How far time has come.
        outer: Numbers of inputs that may be absent, in the order of the document.
        ranged: Inputs and keys that they have finished by ranges.
        revocable: By input and id of events that can be retracted: sequence number, key, and when they came.
        late: Ids of retractions of other events.
        taken_back: Of results that do not stand: when they were taken back, and which ones.
        passed_on: Key, time and ids of what was found, and where a key was finished, in their order.
    """

    inputs: Sequence[JoinInput]
    join: ReferenceJoin
    ids: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)
    now_us: int = 0
    outer: Sequence[int] = ()
    passed_on: list[tuple[int, int, str]] = field(default_factory=list)
    ranged: set[tuple[int, int]] = field(default_factory=set)
    revocable: dict[tuple[int, str], tuple[int, int, int]] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    taken_back: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Naive:
        body = read_join({name: value for name, value in document.items() if name != "name"})
        spans, aliases = [one.window for one in body.inputs], [one.alias for one in body.inputs]
        outer = list(map(aliases.index, body.outer))
        is_outer = outer and len(aliases) > 2
        join = ReferenceOuterJoin(spans, outer) if is_outer else ReferenceJoin(spans, list(body.reporting))
        naive = cls(body.inputs, join, outer=outer)
        naive.meet(body.where)
        return naive

    def meet(self, where: str | None) -> None:
        """Let a condition between inputs hold in every combination that is found from here on."""
        if where is not None:
            holds = CONDITIONS[where]
            self.join.holds = lambda members: holds([self.events[one] for one in members])
        else:
            self.join.holds = lambda _: True

    def take(self, number: int, event: Event) -> None:
        """An event of a stream as one of an input."""
        self.pass_time(event.time_us)
        one = self.inputs[number]
        if event.type == RANGE:
            self.take_range(number, event)
            return
        if is_keyless(one, event):
            self.take_unkeyed(number, event)
            return
        if event.type == IDLE:
            if ends_with_traces(one):
                self.push(Item.CLOSING, number, self.key_of(event), event.time_us)
            return
        if takes_back(one, event):
            self.retract(number, event)
            return
        ends = SEEN[one.stream].end_events if ends_with_traces(one) and one.key != "data.other" else ()
        is_last = event.type in one.closing_types or event.type in ends
        is_part = not one.types or event.type in one.types
        key = self.key_of(event)
        if is_part:
            before = self.newest.get(number, key)
            if "clustered" in one.closings and before != key:
                self.push(Item.CLOSING, number, before, event.time_us)
            self.newest[number] = key
            self.ids.append(event.id)
            self.events.append(event)
            violations = len(self.join.violations)
            self.push(Item.EVENT, number, key, event.time_us)
            is_gone = len(self.join.violations) > violations or (key in self.join.closed and one.revocable_us is None)
            if SEEN[one.stream].derived and one.retractions == "take" and not is_gone:
                self.revocable[number, event.id] = len(self.ids) - 1, key, event.time_us
        if is_last or (is_part and "unique" in one.closings):
            self.push(Item.CLOSING, number, key, event.time_us)

    def take_unkeyed(self, number: int, event: Event) -> None:
        """An event without a usable key is reported alone, if it may be, under a key of its own."""
        if self.inputs[number].types and event.type not in self.inputs[number].types:
            return
        self.ids.append(event.id)
        self.events.append(event)
        results = len(self.join.results)
        self.join.take_unkeyed(number, event.time_us)
        for _, members in self.join.results[results:]:
            own = self.number_of(f"no key: {number} {event.id}")
            self.passed_on += [(own, event.time_us, repr(self.named(members))), (own, event.time_us, "")]

    def retract(self, number: int, event: Event) -> None:
        """Retract the event named by ``event`` and its results; a retraction of an unknown event is late."""
        known = self.revocable.pop((number, event.data["retracts"]), None)
        if known is None:
            self.late.append(event.id)
            return
        sequence, key, _ = known
        results, closed, before = len(self.join.results), len(self.join.closed), len(self.join.retracted)
        is_over = key in self.join.closed
        self.join.retract(sequence)
        for place in self.join.retracted[before:]:
            self.taken_back.append((event.time_us, place))
            self.passed_on.append((key, event.time_us, "-" + repr(self.named(self.join.results[place][1]))))
        self.note(results, closed, event.time_us)
        if is_over:
            self.passed_on.append((key, event.time_us, ""))

    def take_range(self, number: int, event: Event) -> None:
        """All keys of a range are finished, also those that have not come."""
        one, finished = self.inputs[number], event.data["range"]
        if not ends_with_traces(one) or (one.key or "") != event.data["by"]:
            return
        for key in KEYS[:-1]:
            if finished.get("from", -100) <= int(key) <= finished.get("to", 100):
                place = self.number_of(key)
                is_known = self.is_known(place)
                self.ranged.add((number, place))
                passed_on = len(self.passed_on)
                self.push(Item.CLOSING, number, place, event.time_us)
                if not is_known:  # what is held of no key is not known to be finished
                    del self.passed_on[passed_on:]

    def is_known(self, key: int) -> bool:
        """Whether the join holds an event of a key, or some inputs have finished it, but not all."""
        closed = sum((number, key) in self.join._closings for number in range(len(self.inputs)))
        keys = {event.key for event in self.join._events if event.sequence in self.join.held()}
        is_remembered = any(of == key for _, of, _ in self.revocable.values())
        return key in keys or 0 < closed < len(self.inputs) or is_remembered

    def is_forgotten(self, number: int, event: Event) -> bool:
        """Whether all inputs have finished the key of an event, and its own not by a range, which is remembered."""
        if is_keyless(self.inputs[number], event):
            return False
        key = self.key_of(event)
        is_finished = all((other, key) in self.join._closings for other in range(len(self.inputs)))
        return is_finished and (number, key) not in self.ranged

    def finish(self) -> None:
        """All time passes, and every key of every input is finished."""
        self.pass_time(FAR_US)
        for key in self.numbers.values():
            for number in range(len(self.inputs)):
                self.push(Item.CLOSING, number, key, FAR_US)

    def pass_time(self, until_us: int) -> None:
        """Every microsecond by itself, as what leaves its window has the time at which it does."""
        for time_us in range(self.now_us + 1, until_us + 1):
            self.push(Item.TIME, 0, 0, time_us)
            for (number, name), (_, _, came_us) in list(self.revocable.items()):
                if time_us - came_us >= (self.inputs[number].revocable_us or FAR_US):
                    del self.revocable[number, name]
        self.now_us = max(self.now_us, until_us)

    def key_of(self, event: Event) -> int:
        """A number for the join key."""
        return self.number_of(str(event.data["k"]))

    def number_of(self, key: str) -> int:
        """A number for a join key."""
        return self.numbers.setdefault(key, len(self.numbers) + 1)

    def push(self, kind: Item, number: int, key: int, time_us: int) -> None:
        """An item, and what follows from it: of each key the combinations come before its end."""
        results, closed = len(self.join.results), len(self.join.closed)
        self.join.push(kind, number, key, time_us)
        self.note(results, closed, time_us)

    def note(self, results: int, closed: int, time_us: int) -> None:
        """What is new from a number of results and of keys that are over; these cannot be retracted any more."""
        for when_us, members in self.join.results[results:]:
            key_of = {event.sequence: event.key for event in self.join._events}
            found = key_of[max(members)]
            assert found is not None
            self.passed_on.append((found, when_us, repr(self.named(members))))
        self.passed_on += [(one, time_us, "") for one in self.join.closed[closed:]]
        for (number, name), (_, key, _) in list(self.revocable.items()):
            if key in self.join.closed[closed:] and self.inputs[number].revocable_us is None:
                del self.revocable[number, name]

    def named(self, members: Sequence[int]) -> list[str | None]:
        """Ids of the events of a combination."""
        return [None if one < 0 else self.ids[one] for one in members]

    def last_ones(self) -> list[tuple[str, str]]:
        """Of each trace of the derived stream the time of its end and its last event."""
        last: dict[int, str] = {}
        found = []
        for key, time_us, ids in self.passed_on:
            if ids:
                last[key] = ids
            elif key in last:
                found.append((format_time(time_us), last.pop(key)))
        return [*found, *((FAR, ids) for ids in last.values())]

    def told_back(self) -> list[tuple[str, str]]:
        """Times at which results were taken back, and the ids of these."""
        return [(format_time(when), repr(self.named(self.join.results[one][1]))) for when, one in self.taken_back]

    def told(self) -> list[tuple[str, list[str | None]]]:
        """Times, ids, and why inputs are absent, of what was found."""
        words = {Why.BY_CLOSING: "finished", Why.BY_RETRACTION: "retracted", Why.NO_KEY: "no_key"}

        def decided(member: int, why: Why) -> str | None:
            return None if member >= 0 else "finished" if member == FINISHED else words.get(why, "window")

        return [
            (format_time(time_us), [*self.named(members), *(decided(members[number], why) for number in self.outer)])
            for (time_us, members), why in zip(self.join.results, self.join.whys, strict=True)
        ]


def is_keyless(one: JoinInput, event: Event) -> bool:
    """Whether an event has no usable key in an input."""
    return one.key is not None and key_of(event.data[one.key.removeprefix("data.")]) is None


def takes_back(one: JoinInput, event: Event) -> bool:
    """Whether an event is the retraction of one of an input."""
    retracted = event.type.removesuffix(RETRACTED)
    is_taken = SEEN[one.stream].derived and one.retractions == "take" and retracted != event.type
    return is_taken and event.type not in one.types and (not one.types or retracted in one.types)


def ends_with_traces(one: JoinInput) -> bool:
    """Whether the keys of an input are finished by punctuations."""
    return not one.closings.isdisjoint({"end", "punctuation"})


def in_order(naive: Naive, made: Sequence[tuple[str, Event]]) -> Iterator[tuple[int, Event]]:
    """Events of all inputs by time, input and place.

    The end of an idle trace comes before events of its time, and what finishes a range behind them.
    """
    placed = [
        *((place + 1_000 * (one[1].type == RANGE), one) for place, one in enumerate(made)),
        *((-1, ("payments", one)) for one in idle_ends(made)),
    ]
    rows = [
        (event.time_us, number, place, event)
        for place, (stream, event) in placed
        for number, one in enumerate(naive.inputs)
        if one.stream == stream
    ]
    return ((number, event) for _, number, _, event in sorted(rows, key=lambda row: row[:3]))


def idle_ends(made: Sequence[tuple[str, Event]]) -> Iterator[Event]:
    """Where traces of payments end, as no event of theirs has come for a while."""
    last: dict[str, int] = {}
    for time_us, key, event_type in [
        *(
            (event.time_us, event.key, event.type)
            for stream, event in made
            if stream == "payments" and event.type != RANGE
        ),
        (FAR_US, "far", ""),
    ]:
        for known in [known for known, seen_us in last.items() if seen_us + IDLE_US <= time_us]:
            yield Event(id=IDLE, type=IDLE, time_us=last.pop(known) + IDLE_US, key=known, data={"k": known})
        last[key] = time_us
        if event_type == "End":
            del last[key]


def read_naively(document: Mapping[str, Any], made: Sequence[tuple[str, Event]]) -> tuple[Naive, set[str]]:
    """The outcome, and the events of keys that all inputs had finished, which a join forgets; they are left out."""
    left_out: set[str] = set()
    while True:
        naive = Naive.of(document)
        for number, event in in_order(naive, [one for one in made if one[1].id not in left_out]):
            is_event = event.type not in (IDLE, RANGE) and not takes_back(naive.inputs[number], event)
            if is_event and naive.is_forgotten(number, event):
                left_out.add(event.id)
                break
            naive.take(number, event)
        else:
            naive.finish()
            return naive, left_out


def run_in_shards(
    document: Mapping[str, Any],
    made: Sequence[tuple[str, Event]],
    shards: int,
    cuts: set[int],
    divided_at: int | None = None,
    policy: Policy | None = None,
) -> list[RowBlock]:
    """Rows of the events, with cuts at which everything is matched, saved and loaded.

    Args:
        document: The join.
        made: The events.
        shards: How many there are.
        cuts: Events behind which there is a cut.
        divided_at: The event behind which one shard is divided into three.
        policy: What chooses among places.
    """
    inline, rows = begun(document, shards), list[RowBlock]()
    for state in inline.states:
        state.schedule(policy or OldestFirst())
    is_routed = any(one.get("key") == "order" for one in document["inputs"])
    far = [(name, Event(id=f"far-{name}", type="Z", time_us=FAR_US, key="far", data={})) for name in STREAMS]
    for number, (stream, event) in enumerate([*made, *far]):
        if event.type == RANGE:
            inline.append_record(stream, promise_of(event))
        else:
            batch = EventBatch.from_events([event])
            inline.feed(stream, batch)
            if stream == "parcels" and is_routed:
                inline.feed(stream, batch.keyed_by(("order",)), "order")
        if number in cuts:
            rows += inline.settle()
            inline.states[:] = [ShardState.load(state.dump()) for state in inline.states]
        if number == divided_at:
            rows += inline.settle()
            inline = divided(inline)
    return rows + inline.finish()


def promise_of(event: Event) -> Punctuation:
    """What finishes a range, as the log says it."""
    return Punctuation(range=KeyRange.from_json(event.data["range"]), by=event.data["by"], time_us=event.time_us)


def divided(inline: InlineShards) -> InlineShards:
    """Three shards in the place of one, as it is."""
    parts = InlineShards(3)
    parts.states[:] = [ShardState.load(part.dump()) for part in inline.states[0].split(1, 3)]
    parts._appended = inline._appended * 3
    parts._newest_us, parts._promised, parts._fed = inline._newest_us, inline._promised, inline._fed
    return parts


def begun(document: Mapping[str, Any], shards: int) -> InlineShards:
    """Shards in which the join runs."""
    inline = InlineShards(shards)
    join = KIND.read(document, SEEN.__getitem__)
    derived = [StreamDeclaration(name=name, derived=True) for name in (NAME, merged_stream(NAME))]
    for declaration in [*STREAMS.values(), *derived]:
        inline.append_record(declaration.name, StreamOn(declaration))
    inline.append_record(NAME, PatternOn(name="last", version=1, text="PATTERN last EVENT SEQ(_ e, NOT _)"))
    for one in (join, *KIND.parts(join, SEEN.__getitem__)):
        inline.append_record(one.inputs[0].stream, OperatorOn(replace(one, version=1)))
    assert [row.body for block in inline.settle() for row in block] == []
    return inline


NEWEST_KEY: dict[str, Any] = {
    "name": NAME,
    "inputs": [
        {"stream": "alarms", "as": "i0", "closed_by": ["end"], "window": "2 us", "type": "A"},
        {"stream": "alarms", "as": "i1", "closed_by": ["clustered"], "window": "2 us"},
    ],
    "return": {"r0": "id(i0)", "r1": "id(i1)", "wi0": "decided_by(i0)", "wi1": "decided_by(i1)"},
    "outer": ["i0", "i1"],
}
"""When the range comes, all events of key 1 have left their windows, and the newest event of i1 is one of them."""
NEWEST_EVENTS = [
    ("alarms", Event(id="e00", type="A", time_us=1, key="1", data={"k": "1"})),
    ("alarms", Event(id="e01", type="B", time_us=3, key="2", data={"k": "2"})),
    ("alarms", Event(id="e02", type=RANGE, time_us=3, key="1", data={"range": {"to": 1}, "by": ""})),
]


@settings(max_examples=150, deadline=None)
@example(NEWEST_KEY, NEWEST_EVENTS, 1, set(), None)
@given(
    documents(),
    events(),
    st.sampled_from([1, 3]),
    st.sets(st.integers(0, 25), max_size=4),
    st.one_of(st.none(), st.integers(0, 25)),
)
def test_shards_find_what_a_document_means(
    document: dict[str, Any], made: list[tuple[str, Event]], shards: int, cuts: set[int], divided_at: int | None
) -> None:
    if any("clustered" in one["closed_by"] for one in document["inputs"]):
        shards, divided_at = 1, None  # an event of another key finishes one in the same shard only
    naive, left_out = read_naively(document, made)
    kept = [one for one in made if one[1].id not in left_out]
    rows = [
        row
        for block in run_in_shards(document, kept, shards, cuts, divided_at if shards == 1 else None)
        for row in block
    ]
    bodies = [(row.kind, orjson.loads(row.body)) for row in rows]
    made_by = {
        body["id"]: body
        for kind, body in bodies
        if kind == "derived" and body["into"] == NAME and "far-" not in str(body["data"])
    }
    found = [
        (body["time"], list(body["data"].values())) for body in made_by.values() if body["type"] != NAME + RETRACTED
    ]
    ended = [one for one in found if "end_of_input" in one[1]]
    assert {time for time, _ in ended} <= {FAR}
    said = [(time, ["finished" if one == "end_of_input" else one for one in values]) for time, values in found]
    assert sorted(said, key=str) == sorted(naive.told(), key=str)
    taken_back = [body for body in made_by.values() if body["type"] == NAME + RETRACTED]
    targets = [(body["time"], made_by[body["data"]["retracts"]]) for body in taken_back]
    assert sorted((time, named(one)) for time, one in targets) == sorted(naive.told_back())
    words = {name: said_of(body, made_by) for name, body in made_by.items()}
    alerts = [(body["detected_at"], body["bindings"]["e"][0]) for kind, body in bodies if kind == "alert"]
    last = [(time, words[one]) for time, one in alerts if one in words]
    assert sorted(ids for _, ids in last) == sorted(ids for _, ids in naive.last_ones())
    assert {one for one in naive.last_ones() if one[0] != FAR} <= set(last)  # the end of the input ends the others
    letters = [(body["code"], body["event_id"]) for kind, body in bodies if kind == "dead-letter"]
    refused = [("key-finished", naive.ids[sequence]) for sequence in naive.join.violations]
    assert sorted(letters) == sorted([*refused, *(("retraction-late", one) for one in naive.late)])


def named(body: Mapping[str, Any]) -> str:
    """The ids of the events that a derived event is of."""
    return repr([value for name, value in body["data"].items() if name.startswith("r")])


def said_of(body: Mapping[str, Any], made_by: Mapping[str, Mapping[str, Any]]) -> str:
    """What a derived event says, or takes back."""
    is_back = body["type"] == NAME + RETRACTED
    return f"-{named(made_by[body['data']['retracts']])}" if is_back else named(body)
