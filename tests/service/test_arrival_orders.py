"""Several streams in every order of arrival: a service finds what ``run`` finds, or counts what was late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from service.processes.timekeeper import Timekeeper
from service.projects import LISTS, LocalProject, Results, read_project
from service.runs import results_of
from service.runs.running import InlineRun
from service.runtime import Stores
from service.stores import OperatorPart, StreamTimes
from shards import InlineShards, RowBlock
from streams import ControlRecord, Event, EventBatch, Punctuation, StreamDeclaration, Tick

SECOND_US = 1_000_000
STREAMS = ("orders", "payments", "shipments")
TYPES = {"orders": "Order", "payments": "Paid", "shipments": "Shipped"}
FAR_S = 1_000
CHAIN = """
kind: join
name: paid
inputs:
  - {stream: orders, as: o, key: KEY}
  - {stream: payments, as: p, key: KEY}
window: 20 s
return: {order: o.order, v: p.v}
---
kind: pattern
name: to_all
stream: shipments
text: "PATTERN to_all EVENT Shipped s RETURN s.order AS order INTO moves KEY order"
---
kind: pattern
name: paid_to_all
stream: paid
text: "PATTERN paid_to_all EVENT paid p RETURN p.order AS order INTO moves KEY order"
---
kind: pattern
name: not_shipped
stream: moves
text: "PATTERN not_shipped EVENT SEQ(paid_to_all p, WITHIN 15 s NOT to_all)"
"""
OUTER = """
kind: join
name: all
inputs:
  - {stream: orders, as: o, key: KEY}
  - {stream: payments, as: p, key: KEY}
  - {stream: shipments, as: s, key: KEY}
window: 12 s
outer: [s]
return: {order: o.order, paid: id(p), shipped: id(s)}
"""
UNION = "\n---\n".join(
    f"""
kind: pattern
name: of_{name}
stream: {name}
text: "PATTERN of_{name} EVENT {TYPES[name]} e RETURN e.order AS order INTO moves TYPE {TYPES[name]} OWN"
"""
    for name in STREAMS
)
AFTER = """
---
kind: pattern
name: in_order
stream: moves
text: "PATTERN in_order EVENT SEQ(Order o, Paid p, WITHIN 9 s NOT Shipped) WITHIN 30 s"
"""


@dataclass
class Service:
    """The shards of a service, what its log notes of times, its timekeeper and a clock, without Redis.

    Attributes:
        project: What runs.
        shards: Where it runs.
        now_us: The clock.
    """

    project: LocalProject
    shards: InlineShards
    now_us: int
    rows: list[RowBlock] = field(default_factory=list)
    times: dict[str, StreamTimes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan = self.project.plan
        for stream, record in plan.records():
            self.shards.append_record(stream, record)
        self._streams = list(plan.declarations.values())
        self._feeders = [
            OperatorPart(stream=one.stream, key=one.route, kind=one.kind, name=one.name, into=feed.stream, body={})
            for one, feed in self._feeds(self.shards)
        ]
        stores = SimpleNamespace(log=self, registry=self, stream_times=self)
        self._keeper = Timekeeper(cast(Stores, stores))

    def _feeds(self, shards: InlineShards) -> Iterator[tuple[Any, Any]]:
        self.rows += shards.settle()
        for (stream, route, kind, name), fed in shards.states[0].feeds.of.items():
            for one in fed:
                yield SimpleNamespace(stream=stream, route=route, kind=kind, name=name), one

    @property
    def layout(self) -> None:
        return None

    def routed(self) -> frozenset[str]:
        return frozenset(one.name for one in self._streams if not one.derived and self.project.plan.routes(one.name))

    def sinces(self) -> dict[str, str]:
        return {}

    def streams(self) -> Sequence[StreamDeclaration]:
        return self._streams

    def timing_feeders(self) -> Sequence[OperatorPart]:
        return self._feeders

    def read(self) -> tuple[int, Mapping[str, StreamTimes]]:
        return self.now_us, self.times

    def tick(self, stream: str, tick: Tick, layout: object, *, since: str = "") -> bool:
        seen = self.times.get(stream, StreamTimes(newest_us=None, appended_us=None, ticked_us=None))
        if seen.ticked_us is not None and seen.ticked_us >= tick.time_us:
            return False
        self.times[stream] = replace(seen, ticked_us=tick.time_us)
        self.append_record(stream, tick)
        return True

    def append_record(self, stream: str, record: ControlRecord) -> None:
        self.shards.append_record(stream, record)
        self.rows += self.shards.settle()

    def post(self, stream: str, events: Sequence[Event]) -> None:
        batch = EventBatch.from_events(events)
        newest_us = int(batch.time_us.max())
        seen = self.times.get(stream, StreamTimes(newest_us=None, appended_us=None, ticked_us=None))
        newest_us = newest_us if seen.newest_us is None else max(newest_us, seen.newest_us)
        self.times[stream] = replace(seen, newest_us=newest_us, appended_us=self.now_us)
        self.shards.feed(stream, batch)
        for route, path in self.project.plan.routes(stream).items():
            self.shards.feed(stream, batch.keyed_by(path), route)
        self.rows += self.shards.settle()

    def pause(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_us += SECOND_US
            self._keeper.look()

    @property
    def late(self) -> int:
        """The number of events that were late, whatever was done with them."""
        return sum(
            number or 0
            for state in self.shards.states
            for measured in state.measures().values()
            for name, number in measured.items()
            if name.startswith("late_")
        )

    def found(self) -> Results:
        rows = ((row.kind, orjson.loads(row.body)) for block in self.rows for row in block)
        return results_of(self.project.plan, rows)


def declared(lateness: float | None = None, quiet_after: float | None = None) -> str:
    members = {"key": "data.order", "lateness": lateness, "quiet_after": quiet_after}
    set_members = {name: value for name, value in members.items() if value is not None}
    return yaml.safe_dump_all([{"kind": "stream", "name": name, **set_members} for name in STREAMS])


def project_of(folder: Path, text: str) -> LocalProject:
    (folder / "project.yaml").write_text(text)
    return LocalProject.of(read_project(folder), folder)


PROJECTS = {
    "join, declared key": OUTER.replace("key: KEY", "key: data.order"),
    "join, another key": OUTER.replace("key: KEY", "key: data.same"),
    "chain, declared key": CHAIN.replace("key: KEY", "key: data.order"),
    "chain, another key": CHAIN.replace("key: KEY", "key: data.same"),
    "union": UNION.replace("OWN", "") + AFTER,
    "union, another key": UNION.replace(" TYPE", " KEY order TYPE").replace("OWN", "") + AFTER,
}


def event(stream: str, number: int, second: float, order: str) -> Event:
    data = {"order": order, "same": order, "v": number}
    return Event(id=f"{stream}-{number}", type=TYPES[stream], time_us=round(second * SECOND_US), key=order, data=data)


@st.composite
def made(draw: st.DrawFn, least_pause: int = 1) -> dict[str, list[Event]]:
    """Events of each stream by time, and behind them one by which all windows have passed."""
    found = {}
    for place, stream in enumerate(STREAMS):
        steps = draw(st.lists(st.tuples(st.integers(least_pause, 6), st.sampled_from("abc")), max_size=8))
        second, events = place / 10, []
        for number, (pause, order) in enumerate(steps):
            second += pause
            events.append(event(stream, number, second, order))
        found[stream] = [*events, event(stream, 99, FAR_S + place / 10, "end")]
    return found


@st.composite
def arrivals(draw: st.DrawFn, events: Mapping[str, Sequence[Event]]) -> list[tuple[str, Sequence[Event]] | int]:
    """Requests of each stream in its order, those of several in any, with pauses of some seconds between them."""
    kind = draw(st.sampled_from(("file after file", "interleaved")))
    left = {stream: list(some) for stream, some in events.items()}
    order = draw(st.permutations(STREAMS))
    found: list[tuple[str, Sequence[Event]] | int] = []
    while any(left.values()):
        open_streams = [stream for stream in order if left[stream]]
        stream = open_streams[0] if kind == "file after file" else draw(st.sampled_from(open_streams))
        size = draw(st.integers(1, len(left[stream])))
        found.append((stream, left[stream][:size]))
        del left[stream][:size]
        found.append(draw(st.sampled_from((0, 0, 1, 3))))
    return found


def outcome(found: Results) -> dict[str, list[Any]]:
    """All results but those of the last events."""
    return {
        name: sorted(str(sorted(one.items())) for one in found[name] if "end" not in str(one))
        for name in (*LISTS, "events")
    }


def replayed(
    project: LocalProject, steps: Sequence[tuple[str, Sequence[Event]] | int], shards: int, now_s: float
) -> Service:
    service = Service(project, InlineShards(shards), round(now_s * SECOND_US))
    for step in steps:
        if isinstance(step, int):
            service.pause(step)
        else:
            service.post(*step)
    service.pause(3)
    return service


def by_run(project: LocalProject, events: Mapping[str, Sequence[Event]]) -> dict[str, list[Any]]:
    return outcome(project.run({stream: EventBatch.from_events(some) for stream, some in events.items()}))


@pytest.mark.parametrize("name", PROJECTS)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_every_order_of_arrival_finds_what_run_finds(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lateness = data.draw(st.sampled_from((None, None, 0, 3)), "lateness")
    project = project_of(tmp_path_factory.mktemp("rules"), declared(lateness) + "---\n" + PROJECTS[name])
    events = data.draw(made(), "events")
    service = replayed(project, data.draw(arrivals(events), "steps"), data.draw(st.sampled_from((1, 3)), "shards"), 5e9)
    assert service.late == 0
    assert outcome(service.found()) == by_run(project, events)


@pytest.mark.parametrize("name", ["join, declared key", "chain, declared key", "union"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_where_the_clock_moves_time_on_what_differs_from_run_was_late(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = declared(data.draw(st.sampled_from((None, 2)), "lateness"), data.draw(st.sampled_from((1, 4)), "quiet"))
    project = project_of(tmp_path_factory.mktemp("rules"), text + "---\n" + PROJECTS[name])
    events = data.draw(made(least_pause=0), "events")
    steps = data.draw(arrivals(events), "steps")
    service = replayed(project, steps, data.draw(st.sampled_from((1, 3)), "shards"), data.draw(st.integers(0, 40)))
    assert service.late or outcome(service.found()) == by_run(project, events)


ONE_PAID = {
    "orders": [event("orders", 1, 1, "a"), event("orders", 2, 40, "b"), event("orders", 99, FAR_S, "end")],
    "payments": [event("payments", 1, 2, "a"), event("payments", 2, 41, "b"), event("payments", 99, FAR_S, "end")],
    "shipments": [event("shipments", 1, 3, "a"), event("shipments", 99, FAR_S, "end")],
}


@pytest.mark.parametrize("name", PROJECTS)
def test_one_file_after_the_other_finds_what_run_finds(name: str, tmp_path: Path) -> None:
    project = project_of(tmp_path, declared() + "---\n" + PROJECTS[name])
    steps: list[tuple[str, Sequence[Event]] | int] = []
    for stream in STREAMS:
        steps += [(stream, ONE_PAID[stream][:1]), 2, (stream, ONE_PAID[stream][1:]), 2]
    service = replayed(project, steps, 2, 5e9)
    assert service.late == 0
    expected = by_run(project, ONE_PAID)
    assert outcome(service.found()) == expected
    assert sum(map(len, expected.values()))


def test_a_join_waits_for_an_input_without_events_until_the_clock_or_a_punctuation_ends_the_wait(
    tmp_path: Path,
) -> None:
    text = declared(quiet_after=60) + "---\n" + PROJECTS["join, declared key"]
    some = {"orders": [event("orders", 1, 1, "a")], "payments": [event("payments", 1, 2, "a")]}
    service = replayed(project_of(tmp_path, text), list(some.items()), 2, 10)
    assert service.found()["events"] == []
    service.pause(58)  # 61 s later: shipments have come to 11 s, quiet_after before the clock
    assert service.found()["events"] == []
    service.pause(20)
    (absent,) = service.found()["events"]
    assert (absent["data"], service.late) == ({"order": "a", "paid": "payments-1", "shipped": None}, 0)

    punctuated = replayed(project_of(tmp_path, text.replace("quiet_after: 60", "")), list(some.items()), 2, 10)
    punctuated.pause(100)
    assert punctuated.found()["events"] == []
    for stream in STREAMS:
        punctuated.append_record(stream, Punctuation(before_us=13 * SECOND_US))
    assert [one["data"] for one in punctuated.found()["events"]] == [absent["data"]]


COUNTED = """
kind: aggregate
name: counted
of: orders
by: [KEY]
values: {n: count(), total: sum(v)}
window: 5 s
"""
QUIET = """
kind: pattern
name: quiet
stream: orders
text: "PATTERN quiet EVENT SEQ(Order a, WITHIN 4 s NOT Order)"
suppress: {by: [], for: 7 s}
"""
OF_ONE_KEY = {"patterns": QUIET, "aggregate, declared key": COUNTED.replace("KEY", "order")}
OF_OTHERS = {name: PROJECTS[name] for name in ("join, declared key", "chain, another key")}
OF_OTHERS["aggregate, another key"] = COUNTED.replace("KEY", "same")


@st.composite
def disordered(draw: st.DrawFn) -> list[tuple[str, Event]]:
    """Events of all streams in the order of arrival, some of them older than the one before them."""
    rows = draw(st.lists(st.tuples(st.sampled_from(STREAMS), st.integers(-6, 4), st.sampled_from("ab")), max_size=9))
    return [
        (stream, event(stream, number, 10 + 2 * number + shift + STREAMS.index(stream) / 10, order))
        for number, (stream, shift, order) in enumerate(rows)
    ]


def matched(project: LocalProject, events: Sequence[tuple[str, Event]], shards: int, draw: st.DataObject) -> Service:
    """The events in any requests, matched at any moments."""
    service = Service(project, InlineShards(shards), round(5e9) * SECOND_US)
    first = 0
    while first < len(events):
        stream = events[first][0]
        last = first + 1
        while last < len(events) and events[last][0] == stream and draw.draw(st.booleans()):
            last += 1
        batch = EventBatch.from_events([one for _, one in events[first:last]])
        service.shards.feed(stream, batch)
        for route, path in project.plan.routes(stream).items():
            service.shards.feed(stream, batch.keyed_by(path), route)
        if draw.draw(st.booleans()):
            service.rows += service.shards.settle()
        first = last
    service.rows += [*service.shards.settle(), *service.shards.finish()]
    return service


@pytest.mark.parametrize("name", [*OF_ONE_KEY, *OF_OTHERS])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_where_requests_or_moments_change_results_of_disordered_events_some_are_counted_as_late(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rules = {**OF_ONE_KEY, **OF_OTHERS}[name]
    project = project_of(tmp_path_factory.mktemp("rules"), declared() + "---\n" + rules)
    events = data.draw(disordered(), "events")
    one, other = (matched(project, events, shards, data) for shards in (1, 3))
    assert one.late or other.late or outcome(one.found()) == outcome(other.found())
    if name in OF_ONE_KEY:
        assert one.late == 0


def test_a_run_counts_late_events_between_the_parts_of_an_operator(tmp_path: Path) -> None:
    project = project_of(tmp_path, declared() + "---\n" + OF_OTHERS["aggregate, another key"])
    run = InlineRun(project.plan)
    for number, second, order in ((0, 10, "a"), (1, 20, "a"), (2, 3, "b")):
        run.feed("orders", EventBatch.from_events([event("orders", number, second, order)]))
        run.settle()
    assert run.late == {"counted.inputs": {"processed": 1}}
    run.results(is_open=False)
    assert run.losses["counted.inputs"].startswith("late events: 1 processed")
