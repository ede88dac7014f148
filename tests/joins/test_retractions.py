"""Retractions in joins, against the brute-force join that takes events out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Item, JoinBody, JoinOutput, JoinRefused, JoinRun, merged_id, read_join
from shards.kinds.joins.conditions import condition_of
from streams import Event, EventBatch
from tests.references.joins import ReferenceJoin

ALIASES = "opq"
KEYS = 2


WHERE = [None, None, "o.v <= p.v"]


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Joins of two or three inputs, whose memory is bounded."""
    inputs = []
    for alias in ALIASES[: draw(st.sampled_from([2, 2, 3]))]:
        window = draw(st.sampled_from(["none", "none", "5 us", "15 us", {"last": 3}]))
        closings = draw(st.sampled_from([[], ["unique"], *[[{"type": "Last"}]] * 4]))
        retractions = draw(st.sampled_from(["take", "take", "1 us", "9 us"]))
        inputs.append(
            {"stream": f"s{alias}", "as": alias, "window": window, "closed_by": closings, "retractions": retractions}
        )
    outer = draw(st.sampled_from([[], ["o"], ["p"], ["o", "p"], ["o", "p"]])) if len(inputs) == 2 else []
    emit = draw(st.sampled_from(["each", "each", "on_close"]))
    columns = {one["as"]: f"id({one['as']})" for one in inputs}
    if emit == "on_close":
        columns = {
            "n": "count(p)",
            "sum": "sum(p.v)",
            "most": "max(o.v)",
            "last": "last(p.v)",
            "distinct": "distinct(o.v)",
        }
    found = {"inputs": inputs, "outer": outer, "emit": emit, "return": columns, "where": draw(st.sampled_from(WHERE))}
    try:
        read_join(found)
    except JoinRefused:
        found = {**found, "inputs": [{**one, "window": "4 us", "closed_by": [{"type": "Last"}]} for one in inputs]}
    return found


events = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 3]),
        st.sampled_from("ooppq"),
        st.integers(0, KEYS - 1),
        st.sampled_from([*[""] * 7, "last", "closed", *["retract"] * 4]),
        st.integers(0, 5),
    ),
    min_size=10,
    max_size=35,
)


@dataclass
class Meaning:
    """The brute-force join, and which events may still be retracted.

    Attributes:
        body: Of the join.
        join: The brute force.
        sequences: Of ids of events that may be retracted: sequence number, input, key and time of coming.
        events: By sequence number.
        totals: What the totals of finished keys say.
        said: What is reported, with a minus where it is taken back.
    """

    body: JoinBody
    join: ReferenceJoin
    sequences: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)
    events: list[tuple[str, int, int]] = field(default_factory=list)
    totals: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    said: list[tuple[str, Any]] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    now_us: int = 0

    @classmethod
    def of(cls, body: JoinBody) -> Meaning:
        meaning = cls(body, ReferenceJoin([one.window for one in body.inputs], list(body.reporting)))
        if body.where is not None:
            meaning.join.holds = lambda members: meaning.events[members[0]][2] <= meaning.events[members[1]][2]
        return meaning

    def push(self, kind: Item, number: int, key: int, time_us: int) -> None:
        done, over = len(self.join.results), len(self.join.closed)
        self.join.push(kind, number, key, time_us)
        self._tell(done, over)

    def pass_time(self, until_us: int) -> None:
        for time_us in range(self.now_us + 1, until_us + 1):
            self.push(Item.TIME, 0, 0, time_us)
        self.now_us = max(self.now_us, until_us)
        for identity, (_, number, _, came_us) in list(self.sequences.items()):
            span_us = self.body.inputs[number].revocable_us
            if span_us is not None and self.now_us - came_us >= span_us:
                del self.sequences[identity]

    def retract(self, identity: str, number: int, key: int) -> None:
        known = self.sequences.get(identity)
        if known is None or known[1:3] != (number, key):
            self.late.append(identity)
            return
        del self.sequences[identity]
        done, over, before = len(self.join.results), len(self.join.closed), list(self.join.retracted)
        self.join.retract(known[0])
        removed = [place for place in self.join.retracted if place not in before]
        if self.body.emit == "each":
            self.said += [("-", self._named(self.join.results[place][1])) for place in removed]
        elif removed and key in self.totals:
            self.said.append(("-", self.totals.pop(key)))
            if (total := self._total(key)) is not None:
                self.totals[key] = total
                self.said.append(("+", total))
        self._tell(done, over)

    def _tell(self, done: int, over: int) -> None:
        """What is new, and which keys are over."""
        if self.body.emit == "each":
            self.said += [("+", self._named(members)) for _, members in self.join.results[done:]]
        for key in self.join.closed[over:]:
            for identity, (_, number, of, _) in list(self.sequences.items()):
                if of == key and self.body.inputs[number].revocable_us is None:
                    del self.sequences[identity]
            if self.body.emit == "on_close" and (total := self._total(key)) is not None:
                self.totals[key] = total
                self.said.append(("+", total))

    def _named(self, members: Sequence[int]) -> tuple[str | None, ...]:
        named = [*self.events, ("new", 0, 0)]
        return tuple(None if one < 0 else named[one][0] for one in members)

    def _total(self, key: int) -> tuple[Any, ...] | None:
        """What is in a combination of a key that stands."""
        of = {event.sequence: event.key for event in self.join._events}
        standing = [
            members
            for place, (_, members) in enumerate(self.join.results)
            if place not in self.join.retracted and of[max(members)] == key
        ]
        if not standing:
            return None
        known = [*self.events, *[("", 0, 0)] * (len(self.join._events) - len(self.events))]
        some = sorted({one for members in standing for one in members if one >= 0})
        o, p = ([known[one][2] for one in some if known[one][1] == number] for number in (0, 1))
        return len(p), sum(p) if p else None, max(o, default=None), p[-1] if p else None, len(set(o))


def made_of(made: Sequence[tuple[int, str, int, str, int]], body: JoinBody) -> tuple[Meaning, list[Event], list[Any]]:
    """The outcome, the merged events, and what is said with each; not of keys that all inputs have finished."""
    meaning, found, said = Meaning.of(body), list[Event](), list[Any]()
    time_us, ids = 1, list[tuple[str, int, int]]()
    for place, (step, alias, named, what, value) in enumerate(made):
        number, key = ALIASES.index(alias), named
        closed = {one for one, of in meaning.join._closings if of == key + 1}
        if number >= len(body.inputs) or len(closed) == len(body.inputs):
            continue
        time_us += step
        own = [one for one in ids if one[1] == number]
        kind, identity, data = f"{alias}.revocable", f"e{place}", dict[str, Any](v=value)
        if alias == "o" and value == 0:
            kind = alias  # one that cannot be retracted
        if what == "retract":
            if not own:
                continue
            target, _, key = own[value % len(own)] if value < 5 else own[-1]
            kind, data = f"{alias}.retracted", {"retracts": target}
        elif what:
            kind = f"{kind}.last" if what == "last" else f"{alias}.closed"
        text = f"k{key}"
        event = Event(
            id=merged_id(number, place, identity),
            type=kind,
            time_us=time_us,
            key=text,
            data={"type": "T", "data": data},
        )
        done = len(meaning.said)
        meaning.pass_time(time_us)
        if what == "retract":
            meaning.retract(data["retracts"], number, key + 1)
        elif what != "closed":
            ids.append((identity, number, key))
            add_value(meaning, event, number, key + 1)
        if what in ("last", "closed") or (what == "" and "unique" in body.inputs[number].closings):
            meaning.push(Item.CLOSING, number, key + 1, time_us)
        found.append(event)
        said.append(meaning.said[done:])
    return meaning, found, said


def add_value(meaning: Meaning, event: Event, number: int, key: int) -> None:
    """Take an event in; what it leads to says its id and value, so it is known before."""
    meaning.events.append((event.id[18:], number, int(event.data["data"]["v"])))
    sequence, refused = len(meaning.events) - 1, len(meaning.join.violations)
    meaning.push(Item.EVENT, number, key, event.time_us)
    is_over = key in meaning.join.closed and meaning.body.inputs[number].revocable_us is None
    if len(meaning.join.violations) == refused and not is_over and ".revocable" in event.type:
        meaning.sequences[event.id[18:]] = sequence, number, key, event.time_us


def told(output: JoinOutput, known: dict[str, tuple[Any, ...]]) -> list[tuple[str, Any]]:
    """What an output says, with a minus where it takes back; notes the values of each event."""
    found = []
    for event in output.events.to_events():
        if event.type.endswith(".retracted"):
            found.append(("-", known[event.data["retracts"]]))
        else:
            assert event.id not in known
            known[event.id] = tuple(event.data.values())
            found.append(("+", known[event.id]))
    return found


@settings(max_examples=250, deadline=None)
@given(bodies(), events)
def test_what_is_retracted_is_taken_out_and_taken_back(document: dict[str, Any], made: Any) -> None:
    body = read_join(document)
    meaning, merged, said = made_of(made, body)
    run, known, late = JoinRun(body, "j", 1, conditions=condition_of), dict[str, tuple[Any, ...]](), list[str]()
    for event, expected in zip(merged, said, strict=True):
        output = run.process(EventBatch.from_events([event]))
        assert sorted(told(output, known), key=str) == sorted(expected, key=str)
        late += [str(one.event.data["retracts"]) for one in output.late_retractions]
    assert late == meaning.late


@settings(max_examples=150, deadline=None)
@given(bodies(), events, st.sets(st.integers(0, 34)))
def test_neither_cuts_nor_reloads_change_what_is_taken_back(
    document: dict[str, Any], made: Any, cuts: set[int]
) -> None:
    body = read_join(document)
    _, merged, _ = made_of(made, body)
    whole = JoinRun(body, "j", 1, conditions=condition_of)
    outputs = [whole.process(EventBatch.from_events([event])) for event in merged]
    expected = [event for output in outputs for event in output.events.to_events()]
    run, found, begin = JoinRun(body, "j", 1, conditions=condition_of), list[Event](), 0
    for border in sorted({*(cut for cut in cuts if cut < len(merged)), len(merged)}):
        found += run.process(EventBatch.from_events(merged[begin:border])).events.to_events()
        begin, saved = border, run.dump()
        run = JoinRun(body, "j", 1, conditions=condition_of)
        run.load(*saved)
    assert found == expected
    assert run.finish().events.to_events() == whole.finish().events.to_events()


def test_nothing_is_left_of_what_can_no_longer_be_retracted() -> None:
    inputs = [{"stream": "a", "as": alias, "window": "5 us"} for alias in "op"]
    run = JoinRun(read_join({"inputs": inputs, "return": {"o": "id(o)", "p": "id(p)"}}), "j", 1)
    made = [
        Event(
            id=merged_id(n % 2, n, f"e{n}"),
            type=f"{'op'[n % 2]}.revocable",
            time_us=n,
            key="k",
            data={"type": "T", "data": {}},
        )
        for n in range(20)
    ]
    assert len(run.process(EventBatch.from_events(made)).events) > 20
    assert len(run.keys()) == 1
    run.advance_time(30)
    assert len(run.keys()) == 0
    saved = orjson.loads(run.dump()[1]["ledger"])
    assert saved["keys"] == []


PAIR: dict[str, Any] = {
    "inputs": [{"stream": "a", "as": "o", "window": "5 us"}, {"stream": "b", "as": "p", "window": "5 us"}],
    "return": {"o": "id(o)", "p": "id(p)"},
}


def some(kind: str, place: int, time_us: int, retracts: str = "") -> Event:
    """A merged event of the key k, or a retraction."""
    data = {"type": "T", "data": {"retracts": retracts} if retracts else {}}
    number = "op".index(kind[0])
    return Event(id=merged_id(number, place, f"e{place}"), type=kind, time_us=time_us, key="k", data=data)


@pytest.mark.parametrize(("retractions", "taken_back"), [("take", []), ("20 us", ["e1"]), ("3 us", [])])
@pytest.mark.parametrize("memory", [{}, {"memory": {"rows": 1, "spill": True}}])
def test_what_has_left_its_window_is_taken_back_for_as_long_as_is_declared(
    retractions: str, taken_back: list[str], memory: dict[str, Any]
) -> None:
    inputs = [PAIR["inputs"][0] | {"retractions": retractions}, PAIR["inputs"][1]]
    run = JoinRun(read_join({**PAIR, "inputs": inputs, **memory}), "j", 1)
    given_events = [some("o.revocable", 1, 1), some("p", 2, 2), some("o.retracted", 3, 15, "e1")]
    back, late = list[Event](), list[str]()
    for event in given_events:
        output = run.process(EventBatch.from_events([event]))
        back += output.events.to_events()
        late += [str(one.event.data["retracts"]) for one in output.late_retractions]
    made, *back = back
    assert (made.type, dict(made.data)) == ("j", {"o": "e1", "p": "e2"})
    assert [(one.type, one.data["retracts"]) for one in back] == [("j.retracted", made.id) for _ in taken_back]
    assert late == ([] if taken_back else ["e1"])
    run.advance_time(100)
    assert len(run.keys()) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"retractions": "soon"}, "write take or event, or for how long events can be retracted"),
        ({"retractions": 5}, "write take or event"),
        ({"retractions": "0 s"}, "write take or event"),
    ],
)
def test_other_words_for_retractions_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinRefused, match=message):
        read_join({**PAIR, "inputs": [PAIR["inputs"][0] | changes, PAIR["inputs"][1]]})


def test_many_inputs_that_may_be_absent_take_no_retractions() -> None:
    three = [*PAIR["inputs"], {"stream": "c", "as": "q", "window": "5 us"}]
    assert [one.retractions for one in read_join({**PAIR, "inputs": three, "outer": ["q"]}).inputs] == ["event"] * 3
    three[0] = three[0] | {"retractions": "take"}
    assert read_join({**PAIR, "inputs": three}).inputs[0].retractions == "take"
    with pytest.raises(JoinRefused, match="more than two inputs with 'outer' takes no retractions"):
        read_join({**PAIR, "inputs": three, "outer": ["q"]})


@pytest.mark.parametrize("end", ["p.closed", "finish"])
@pytest.mark.parametrize("memory", [{}, {"memory": {"rows": 1, "spill": True}}])
@pytest.mark.parametrize("mark", ["", ".revocable"])
def test_totals_are_emitted_of_a_key_whose_events_have_all_left_their_windows(
    end: str, memory: dict[str, Any], mark: str
) -> None:
    inputs = [PAIR["inputs"][0], PAIR["inputs"][1] | {"closed_by": {"type": "Last"}}]
    document = {**PAIR, "inputs": inputs, "emit": "on_close", "return": {"n": "count(o)"}, **memory}
    run = JoinRun(read_join(document), "j", 1)
    for place, key in enumerate("abk"):
        batch = EventBatch.from_events(
            [
                Event(id=merged_id(n, place, f"{kind}{key}"), type=kind + mark, time_us=1, key=key, data={"data": {}})
                for n, kind in enumerate("op")
            ]
        )
        assert len(run.process(batch).events) == 0
    run.advance_time(50)
    output = run.finish() if end == "finish" else run.process(EventBatch.from_events([some(end, 9, 60)]))
    assert [(one.key, one.data["n"]) for one in output.events.to_events()][-1] == ("k", 1)
    assert len(output.events) == (3 if end == "finish" else 1)
