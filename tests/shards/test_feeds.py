"""Feeds that have ended: events on their way are processed in the order of time after their operator has stopped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import orjson
import pytest

from shards import Feed, Feeds, InlineShards, RowBlock, ShardState
from shards.kinds.aggregates import AggregateKind
from shards.kinds.joins import JoinKind
from shards.operators import DocumentKind
from streams import (
    ControlRecord,
    ControlRecordError,
    Event,
    EventBatch,
    OperatorOff,
    OperatorOn,
    OperatorPause,
    PatternOff,
    PatternOn,
    PatternPause,
    StreamDeclaration,
    StreamOff,
    StreamOn,
    Tick,
)

SECOND_US = 1_000_000
LATE = "PATTERN late EVENT A a RETURN a.c AS c, a.n AS n INTO"
EACH = "PATTERN each EVENT late a RETURN a.n AS n"
STOPS: list[ControlRecord] = [
    PatternPause("late"),
    PatternOff("late"),
    PatternOn(name="late", version=2, text=f"{LATE} other"),
    PatternOn(name="late", version=2, text="PATTERN late EVENT B b"),
]


def event(number: int, kind: str = "A", **data: Any) -> Event:
    return Event(id=f"e{number}", type=kind, time_us=number * SECOND_US, key=f"k{number}", data={"n": number, **data})


def tick(seconds: int) -> Tick:
    return Tick(time_us=seconds * SECOND_US, cause="clock")


def begun(shards: int, said: Iterable[tuple[str, ControlRecord]]) -> InlineShards:
    run = InlineShards(shards)
    for stream, record in said:
        run.append_record(stream, record)
    assert list(run.settle()) == []
    return run


def declared(posted: str, derived: Iterable[str]) -> list[tuple[str, ControlRecord]]:
    plain: list[tuple[str, ControlRecord]] = [(name, StreamOn(StreamDeclaration(name=name))) for name in posted]
    return [*plain, *((name, StreamOn(StreamDeclaration(name=name, derived=True))) for name in derived)]


def alerts(rows: Iterable[RowBlock]) -> list[Mapping[str, Any]]:
    return [orjson.loads(row.body)["returns"] for block in rows for row in block if row.kind == "alert"]


def reload(run: InlineShards) -> None:
    run.states = [ShardState.load(state.dump()) for state in run.states]


@pytest.mark.parametrize("into", ["d KEY c", "d"])
@pytest.mark.parametrize("stop", STOPS, ids=["paused", "retired", "another stream", "no stream"])
def test_events_on_their_way_are_matched_when_their_pattern_has_stopped(stop: ControlRecord, into: str) -> None:
    run = begun(
        2,
        [
            *declared("s", ("d", "other")),
            ("s", PatternOn(name="late", version=1, text=f"{LATE} {into}")),
            ("d", PatternOn(name="each", version=1, text=EACH)),
            ("d", PatternOn(name="quiet", version=1, text="PATTERN quiet EVENT SEQ(late a, WITHIN 9 s NOT late)")),
        ],
    )
    found = []
    for some in ([event(1, c="x"), event(3, c="x")], [event(2, c="x")]):
        run.feed("s", EventBatch.from_events(some))
    found += run.settle()
    run.append_record("s", stop)
    found += run.settle()
    reload(run)
    for seconds in (4, 5, 3_600):
        run.append_record("s", tick(seconds))
        found += run.settle()
    bodies = alerts(found)
    numbers = [body["n"] for body in bodies if "n" in body]
    assert (numbers if "KEY" in into else sorted(numbers)) == [1, 2, 3]
    assert len(bodies) == (4 if "KEY" in into else 6)  # the absence of each, too
    assert [state.measures()["d"]["waiting"] for state in run.states] == [0, 0]
    run.append_record("s", PatternOn(name="late", version=3, text=f"{LATE} {into}"))
    run.feed("s", EventBatch.from_events([event(7_200, c="x")]))
    run.append_record("s", tick(7_201))
    assert [body["n"] for body in alerts(run.settle()) if "n" in body] == [7_200]


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("stop", [OperatorPause, OperatorOff])
@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (AggregateKind(), {"of": "s", "by": ["c"], "values": {"n": "count()"}, "window": "20 s", "having": "n >= 2"}),
        (
            JoinKind(),
            {
                "inputs": [{"stream": name, "as": name, "key": "data.c", "window": "20 s"} for name in "st"],
                "return": {"n": "s.n"},
            },
        ),
    ],
    ids=["aggregate", "join"],
)
def test_time_passes_behind_an_aggregate_or_join_that_has_stopped(
    kind: DocumentKind, document: Mapping[str, Any], stop: type[OperatorOff], is_removed: bool
) -> None:
    streams = {name: StreamDeclaration(name=name) for name in "st"}
    whole = replace(kind.read({"name": "made", **document}, streams.__getitem__), version=1)
    parts = (whole, *kind.parts(whole, streams.__getitem__))
    (inner,) = kind.inner_streams("made")
    quiet = "PATTERN quiet EVENT SEQ(made a, WITHIN 60 s NOT made) RETURN a.n AS n INTO k KEY n TYPE Quiet"
    run = begun(
        2,
        [
            *declared("st", (inner, "made", "k")),
            *((part.inputs[0].stream, OperatorOn(part)) for part in parts),
            ("made", PatternOn(name="quiet", version=1, text=quiet)),
            ("k", PatternOn(name="told", version=1, text="PATTERN told EVENT Quiet a RETURN a.n AS n")),
        ],
    )
    run.feed("s", EventBatch.from_events([event(1, c="x"), event(2, c="x")]))
    run.feed("t", EventBatch.from_events([event(3, c="x")]))
    found = list(run.settle())
    for name in "st":
        run.append_record(name, tick(10))
    found += run.settle()
    assert "derived" in {row.kind for block in found for row in block}
    for part in parts:
        run.append_record(part.inputs[0].stream, stop(part.kind, part.name))
    found = list(run.settle())
    if is_removed:
        run.append_record(inner, StreamOff(inner))
        found += run.settle()
    for seconds in (70, 90):
        for name in "st":
            run.append_record(name, tick(seconds))
    found += run.settle()
    assert alerts(found) != []


def feeds(*hops: str) -> Feeds:
    """Feeds by patterns, of which each names its stream and the derived one."""
    made = Feeds({})
    for hop in hops:
        made = made.with_operator((hop[0], "", "pattern", hop), [Feed(stream=hop[1])])
    return made


def test_an_ended_feed_gives_way_to_others() -> None:
    ended = feeds("sd").without_operator("s", "pattern", "sd")
    assert ended.of == {("s", "", "pattern", "sd"): (Feed(stream="d", is_ended=True),)}
    assert ended.direct == {"d": (("s", "", "pattern"),)}
    taken = ended.with_operator(("t", "", "pattern", "td"), [Feed(stream="d")])
    assert taken.of == feeds("td").of
    assert ended.with_operator(("s", "", "pattern", "sd"), [Feed(stream="d")]).of == feeds("sd").of
    assert ended.without_stream("d").of == ended.without_stream("s").of == {}


def test_of_several_feeds_only_the_last_one_ends() -> None:
    one = feeds("sd", "td").without_operator("s", "pattern", "sd")
    assert one.of == feeds("td").of
    merged = Feed(stream="d", is_merged=True)
    both = Feeds({(name, "", "join-input", name): (merged,) for name in "st"})
    stopped = both.without_operator("s", "join-input", "s").without_operator("t", "join-input", "t")
    assert set(stopped.of) == set(both.of)
    assert not any(feed.is_ended is False for operator_feeds in stopped.of.values() for feed in operator_feeds)


def test_an_ended_feed_neither_closes_a_cycle_nor_makes_a_chain_too_long() -> None:
    with pytest.raises(ControlRecordError, match="derived from"):
        feeds("de", "ef").check("f", Feed(stream="d"))
    ended = feeds("de", "ef", "gh").without_operator("d", "pattern", "de").without_operator("g", "pattern", "gh")
    ended.check("f", Feed(stream="d"))
    turned = ended.with_operator(("f", "", "pattern", "fd"), [Feed(stream="d")])
    assert turned.order == ("f", "d", "h")
    names = "abcdefghijklmnopqr"
    chain = feeds(*(a + b for a, b in pairwise(names[:17])))
    with pytest.raises(ControlRecordError, match="17 streams"):
        chain.check("q", Feed(stream="r"))
    chain.without_operator("a", "pattern", "ab").check("q", Feed(stream="r"))


def test_the_time_of_a_stream_comes_from_before_a_removed_one() -> None:
    chain = feeds("sd", "de", "ef").without_operator("d", "pattern", "de").without_operator("s", "pattern", "sd")
    left = chain.without_stream("d")
    assert left.sources == {"e": frozenset("s"), "f": frozenset("e")}
    assert left.of["s", "", "pattern", "sd"] == (Feed(stream="e", is_ended=True),)


@pytest.mark.parametrize(
    ("saved", "feed"),
    [
        (["d", True], Feed(stream="d", is_rekeyed=True)),
        (["d", False, True], Feed(stream="d", is_merged=True)),
        (["d", True, False, True], Feed(stream="d", is_rekeyed=True, is_inner=True)),
        (["d", False, False, False, True], Feed(stream="d", is_ended=True)),
    ],
)
def test_feeds_are_saved_as_before(saved: list[Any], feed: Feed) -> None:
    whole = [["s", "", "pattern", "p", [saved]]]
    assert Feeds.from_json(whole).of == {("s", "", "pattern", "p"): (feed,)}
    assert Feeds.from_json(whole).to_json() == whole
