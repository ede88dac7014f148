"""Derived streams in one shard: what becomes of a match, in which order, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from shards import InlineShards, Metering, ShardState
from shards.rows import OutputRow
from streams import (
    ConstraintsOn,
    ControlRecord,
    Event,
    EventBatch,
    LogEntry,
    PatternOff,
    PatternOn,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    Tick,
    TraceEnd,
    encode_control,
)
from tests.builders.shards import bodies, event

SECOND_US = 1_000_000
Said = tuple[str, "ControlRecord | Sequence[Event]"]


def ordinary(name: str, **options: Any) -> Said:
    return name, StreamOn(StreamDeclaration(name=name, **options))


def derived(name: str, **options: Any) -> Said:
    return ordinary(name, derived=True, **options)


def pattern(stream: str, name: str, text: str, version: int = 1) -> Said:
    return stream, PatternOn(name=name, version=version, text=f"PATTERN {name} EVENT {text}")


def applied(state: ShardState, *said: Said) -> list[OutputRow]:
    """What a shard says to some entries; the positions follow those that it has."""
    log = []
    for number, (stream, step) in enumerate(said, start=1):
        kind, body = (
            (RecordKind.EVENTS, EventBatch.from_events(step).to_bytes())
            if isinstance(step, Sequence)
            else (step.KIND, encode_control(step))
        )
        position = f"{int(state.position.split('-')[0]) + 1}-{number}"
        log.append(LogEntry(position=position, kind=kind, stream=stream, body=body))
    return state.apply(log)


def refusals(rows: Sequence[OutputRow]) -> list[str]:
    return [str(body["reason"]) for body in bodies(rows, "dead-letter")]


def alerts(rows: Sequence[OutputRow]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(body["pattern"], body["returns"]) for body in bodies(rows, "alert")]


def test_a_match_becomes_an_event_in_the_same_step_and_no_alert():
    state = ShardState(0)
    rows = applied(
        state,
        ordinary("s"),
        derived("d"),
        pattern("s", "p", "SEQ(A a, B b) RETURN b.v AS v INTO d TYPE Pair"),
        pattern("d", "q", "Pair x RETURN x.v AS v, key(x) AS k, time(x) AS t"),
        ("s", [event(1, "A"), event(2, "B", v="ü"), event(3, "B", "other")]),
    )
    (body,) = bodies(rows, "derived")
    names = ("stream", "into", "type", "time", "key", "data", "pattern", "version", "source_key", "rekeyed")
    values = ("s", "d", "Pair", "1970-01-01T00:00:02.000000Z", "k", {"v": "ü"}, "p", 1, "k", False)
    assert {name: body[name] for name in names} == dict(zip(names, values, strict=True))
    assert alerts(rows) == [("q", {"v": "ü", "k": "k", "t": 2 * SECOND_US})]
    assert [(row.kind, row.stream, row.subject) for row in rows] == [("derived", "s", "p"), ("alert", "d", "q")]
    assert state.streams == ("s", "d")
    assert state.promises() == {}


def test_an_event_with_its_own_key_leaves_and_what_has_no_key_is_a_dead_letter():
    state = ShardState(0)
    into = "A a RETURN a.v AS v INTO d KEY v"
    some = [event(n, "A", v=value) for n, value in enumerate((7, "c", None, "", 1.5, True, {"x": 1}), start=1)]
    rows = applied(state, ordinary("s"), derived("d"), pattern("s", "p", into), ("s", some))
    found = [(body["key"], body["source_key"], body["rekeyed"]) for body in bodies(rows, "derived")]
    assert found == [("7", "k", True), ("c", "k", True)]
    letters = bodies(rows, "dead-letter")
    assert [(one["code"], one["pattern"], one["stream"], len(one["match"])) for one in letters] == [
        ("not-derivable", "p", "s", 32)
    ] * 5
    assert len({one["id"] for one in letters}) == 5
    assert "its column v is no key" in letters[0]["reason"]
    assert state.promises() == {"d": 7 * SECOND_US}
    assert state.measures()["d"]["events"] == 0


@pytest.mark.parametrize(("key", "own"), [("", "k"), (" KEY c", "c1")])
def test_a_correction_takes_the_event_back_under_its_key(key, own):
    state = ShardState(0)
    early = f"SEQ(A a, NOT B) WITHIN 1 h RETURN a.c AS c INTO d{key} TYPE Late"
    rules = ConstraintsOn(name="s", version=1, document={"constraints": ["exclusive(B, C)"]})
    control = [ordinary("s"), derived("d"), ("s", rules), pattern("s", "p", early), pattern("d", "all", "_ x")]
    rows = applied(state, *control, ("s", [event(1, "A", c="c1"), event(2, "C")]))
    (first,) = bodies(rows, "derived")
    state = ShardState.load(state.dump())
    rows = applied(state, ("s", [event(3, "B")]))
    (second,) = bodies(rows, "derived")
    assert (first["type"], first["key"], second["type"], second["key"]) == ("Late", own, "Late.retracted", own)
    assert second["data"] == {"retracts": first["id"]}
    assert second["time"] == "1970-01-01T00:00:03.000000Z"
    assert [row.kind for row in rows if row.kind == "correction"] == []
    assert len(bodies(rows, "alert")) == (0 if key else 1)


def test_what_a_deadline_decides_comes_before_the_events_of_its_time():
    state = ShardState(0)
    rows = applied(
        state,
        ordinary("s"),
        derived("d"),
        pattern("s", "late", "SEQ(A a, WITHIN 3 s NOT B) INTO d"),
        pattern("s", "one", "C c INTO d"),
        pattern("d", "strict", "SEQ(late a, STRICT one b)"),
        ("s", [event(1, "A"), event(4, "C")]),
        ("s", [event(9, "C")]),
    )
    assert [body["pattern"] for body in bodies(rows, "derived")] == ["late", "one", "one"]
    assert [body["pattern"] for body in bodies(rows, "alert")] == ["strict"]


def test_a_union_waits_for_the_slower_of_its_streams():
    state = ShardState(0)
    control = [ordinary("s"), ordinary("t"), derived("d")]
    control += [pattern("s", "p", "A INTO d"), pattern("t", "q", "A INTO d"), pattern("d", "r", "SEQ(q x, p y)")]
    rows = applied(state, *control, ("s", [event(2, "A"), event(5, "A")]))
    assert state.measures()["d"]["waiting"] == 2
    rows += applied(state, ("t", [event(1, "A")]), ("t", [event(4, "A")]))
    assert state.measures()["d"]["waiting"] == 2
    assert [one["id"] for one in bodies(rows, "alert")] != []
    state = ShardState.load(state.dump())
    assert applied(state, ("t", Tick(time_us=5 * SECOND_US, cause="events"))) == []
    rows = applied(state, ("t", Tick(time_us=9 * SECOND_US, cause="events")))
    assert (rows, state.measures()["d"]["watermark_us"]) == ([], 5 * SECOND_US)
    rows = applied(state, ("s", Tick(time_us=9 * SECOND_US, cause="events")))
    assert len(bodies(rows, "alert")) == 2
    assert state.measures()["d"]["waiting"] == 0


def test_ticks_among_events_cost_one_call_of_a_host_in_a_step():
    state = ShardState(0)
    control = [
        ordinary("s"),
        derived("d"),
        pattern("s", "p", "A a RETURN a.v AS v INTO d KEY v"),
        pattern("d", "r", "SEQ(_ x, _ y)"),
    ]
    assert applied(state, *control) == []
    calls = []

    class Counting(Metering):
        def process(self, host, batch):
            calls.append(len(batch))
            return super().process(host, batch)

    state.meter(Counting(lambda: 0))
    ticks = [("d", Tick(time_us=second * SECOND_US, cause="events")) for second in (3, 5, 4)]
    rows = applied(state, ("d", [event(1, "A")]), ticks[0], ("d", [event(4, "A")]), ticks[1], ticks[2])
    assert (calls, len(bodies(rows, "alert"))) == ([2], 1)
    rows = applied(state, ("d", [event(6, "A")]), ("d", Tick(time_us=9 * SECOND_US, cause="events")), ticks[0])
    assert (calls, len(bodies(rows, "alert"))) == ([2, 1], 2)
    rows = applied(state, ("d", Tick(time_us=19 * SECOND_US, cause="events")), ("d", [event(12, "A")]))
    assert (calls, state.measures()["d"]["late_processed"]) == ([2, 1, 1], 1)


@pytest.mark.parametrize("into", ["INTO d", "INTO d KEY v TYPE Other"])
def test_many_derived_events_at_once_have_the_rows_of_single_ones(into: str) -> None:
    text = f"SEQ(A a, B+ b) RETURN a.v AS v, count(b) AS n, a.name AS named {into}"
    events = [
        event(second, "AB"[second % 2], key=f'k"{second % 3}', v=f"é{second % 5}", name="\\\n")
        for second in range(2, 80)
    ]
    found = []
    for size in (1, len(events)):
        state = ShardState(0)
        rows = applied(state, ordinary("s"), derived("d"), pattern("s", "p", text))
        for start in range(0, len(events), size):
            rows += applied(state, ("s", events[start : start + size]))
        assert len(rows) > 100
        found.append(sorted((row.kind, row.id, row.body, row.subject, row.counter) for row in rows))
    assert found[0] == found[1]


def test_an_event_that_is_late_among_ticks_is_taken_in_the_order_of_the_log():
    steps: list[Said] = [
        ("s", [event(10, "A")]),
        ("d", [event(9, "W")]),
        ("d", Tick(time_us=12 * SECOND_US, cause="events")),
        ("s", [event(8, "A")]),
    ]
    found = []
    for size in (1, len(steps)):
        state = ShardState(0)
        control = [
            ordinary("s"),
            derived("d"),
            pattern("s", "p", "A INTO d TYPE Y"),
            pattern("s", "q", "B b RETURN b.v AS v INTO d KEY v"),
        ]
        rows = applied(state, *control, pattern("d", "r", "SEQ(Y y, W w)"), pattern("d", "t", "SEQ(W w, Y y)"))
        for start in range(0, len(steps), size):
            rows += applied(state, *steps[start : start + size])
        found.append((sorted(body["id"] for body in bodies(rows, "alert")), state.measures()["d"]["late_processed"]))
    assert found[0] == found[1]
    assert found[0][1] == 1


def test_an_event_that_comes_after_what_was_promised_is_taken_when_it_comes():
    state = ShardState(0)
    control = [ordinary("s"), ordinary("t"), derived("d")]
    control += [pattern("s", "p", "A INTO d"), pattern("t", "q", "A INTO d"), pattern("d", "r", "_ x")]
    ticks = [(name, Tick(time_us=9 * SECOND_US, cause="events")) for name in "st"]
    assert applied(state, *control, *ticks) == []
    rows = applied(state, ("s", [event(3, "A")]))
    assert [row.kind for row in rows] == ["derived", "alert"]
    assert state.measures()["d"]["late_processed"] == 1


def test_when_a_stream_is_fed_by_one_place_again_what_waits_leaves():
    state = ShardState(0)
    control = [ordinary("s"), ordinary("t"), derived("d")]
    control += [pattern("s", "p", "A INTO d"), pattern("t", "q", "A INTO d"), pattern("d", "r", "_ x")]
    rows = applied(state, *control, ("s", [event(3, "A")]), ("t", PatternOff("q")))
    assert bodies(rows, "alert") == []
    assert len(bodies(applied(state, ("s", [event(4, "A")])), "alert")) == 2


def test_a_version_that_feeds_another_stream_leaves_the_first():
    state = ShardState(0)
    control = [ordinary("s"), derived("d"), derived("e")]
    control += [pattern(name, f"on_{name}", "_ x") for name in "de"]
    rows = applied(state, *control, pattern("s", "p", "A INTO d"), ("s", [event(1, "A")]))
    rows += applied(state, pattern("s", "p", "A INTO e", version=2), ("s", [event(2, "A")]))
    assert [body["pattern"] for body in bodies(rows, "alert")] == ["on_d", "on_e"]
    assert applied(state, pattern("d", "back", "A INTO e")) == []
    assert refusals(applied(state, pattern("e", "back2", "A INTO d"))) == [
        "stream 'e' cannot feed 'd', which it is derived from: d → e → d"
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (pattern("d", "p", "A INTO d"), "stream 'd' cannot feed 'd', which it is derived from: d → d"),
        (pattern("s", "p", "A INTO t"), "feeds 't', which is no derived stream at this place of the log"),
        (pattern("s", "p", "A INTO x"), "feeds 'x', which is not declared at this place of the log"),
        (("d", StreamOn(StreamDeclaration(name="d"))), "the derived of a declared stream cannot change"),
    ],
)
def test_what_cannot_feed_a_stream_is_a_dead_letter_and_changes_nothing(said, reason):
    state = ShardState(0)
    applied(state, ordinary("s"), ordinary("t"), derived("d"))
    before = state.dump()
    (refusal,) = refusals(applied(state, said))
    assert reason in refusal
    assert state.promises() == {}
    assert len(state.dump()) == len(before)


def test_a_chain_of_sixteen_streams_works_and_no_longer_one():
    state = ShardState(0)
    names = [f"d{number}" for number in range(17)]
    control = [ordinary("s"), *map(derived, names)]
    control += [
        pattern(source, f"p{source}", f"_ x INTO {target}")
        for source, target in zip(["s", *names], names, strict=False)
    ]
    rows = applied(state, *control, ("s", [event(1, "A")]))
    assert ["17 streams would be derived from each other" in one for one in refusals(rows)] == [True]
    assert [body["into"] for body in bodies(rows, "derived")] == names[:16]


def test_the_streams_of_a_divided_shard_go_on_with_what_waits():
    state = ShardState(0)
    control = [ordinary("s"), ordinary("t"), derived("d")]
    control += [pattern("s", "p", "A INTO d"), pattern("t", "q", "A INTO d"), pattern("d", "r", "_ x")]
    applied(state, *control, ("s", [event(number, "A", f"k{number}") for number in range(1, 9)]))
    parts = list(state.split(1, 4))
    assert sum(part.measures()["d"]["waiting"] or 0 for part in parts) == 8
    ticks = [(name, Tick(time_us=99 * SECOND_US, cause="events")) for name in "st"]
    assert sum(len(bodies(applied(part, *ticks), "alert")) for part in parts) == 8


def test_nothing_is_left_of_what_is_over():
    shards = InlineShards(2)
    said = [ordinary("s"), derived("d"), derived("e")]
    said += [pattern("s", "p", "SEQ(A a, B b) WITHIN 5 s RETURN a.v AS v INTO d TYPE X")]
    said += [
        pattern("d", "q", "SEQ(X x, WITHIN 3 s NOT X) RETURN x.v AS v INTO e KEY v"),
        pattern("e", "r", "SEQ(q a, q b)"),
    ]
    for stream, record in said:
        assert not isinstance(record, Sequence)
        shards.append_record(stream, record)
    shards.settle()
    before = [len(state.dump()) for state in shards.states]
    some = [event(n, "AB"[n % 2], f"k{n % 3}", v=n % 5) for n in range(400)]
    shards.feed("s", EventBatch.from_events(some))
    shards.settle()
    shards.append_record("s", Tick(time_us=9_999 * SECOND_US, cause="events"))
    shards.settle()
    for key in (*map(str, range(5)), "k0", "k1", "k2"):
        for stream in "sde":
            shards.append_record(stream, TraceEnd(key=key))
    shards.settle()
    for state, size in zip(shards.states, before, strict=True):
        measures = state.measures()
        assert [(measures[name]["open_traces"], measures[name]["waiting"]) for name in "sde"] == [(0, 0)] * 3
        assert len(state.dump()) <= size + 800
