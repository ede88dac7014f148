"""Incidents against a plain evaluation of all alerts in the order of time, in one shard and in several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import parse_pattern
from service.runs.plan import RunPlan
from shards import (
    ACKNOWLEDGE,
    CLOSE,
    InlineShards,
    OperatorRefused,
    RowBlock,
    ShardState,
    alerts_stream,
    read_quiet,
    routed,
)
from streams import Event, EventBatch, OperatorOn, PatternOff, PatternOn, StreamOff, Tick, format_time, parse_time
from tests.builders.quiet import ORDERS, SECOND_US, begun, blocks_of, events_of, plan_of

OPENS = {"text": "SEQ(A a, B b) RETURN a.customer AS customer, b.v AS v", "incident": {"close_after": "8 s"}}
CLOSES = {"text": "C c RETURN c.customer AS who", "resolves": {"pattern": "p", "by": ["who"]}}
CHANGES = ("opened-incident", "updated-incident", "closed-incident")


def read(blocks: Sequence[RowBlock]) -> dict[str, list[Any]]:
    """The rows by kind; every row is of the pattern that it names."""
    found: dict[str, list[Any]] = {name: [] for name in ("alert", "suppressed-alert", *CHANGES)}
    for block in blocks:
        for row in block:
            body = orjson.loads(row.body)
            assert (row.stream, row.subject, row.id) == ("orders", body["pattern"], body["id"])
            found[row.kind].append(body)
    return found


def ran(plan: RunPlan, events: Sequence[Event], shards: int, rng: Random | None = None) -> dict[str, list[Any]]:
    """The rows; ``rng`` cuts the log, and saves and loads states in between."""
    return read(blocks_of(begun(plan, shards), events, rng))


def reference(
    alerts: Sequence[Any], by: Sequence[str], closes_after: int, lasts: int
) -> tuple[list[tuple[Any, ...]], dict[str, str]]:
    """What incidents there are, as lists of alerts with the reason of their end, and the suppressed alerts."""
    order = sorted(alerts, key=lambda one: (one["detected_at"], one["pattern"] == "r", one["id"]))
    incidents: dict[str, list[dict[str, Any]]] = {}
    last: dict[str, tuple[int, str]] = {}
    suppressed: dict[str, str] = {}
    for one in order:
        at_us = parse_time(one["detected_at"])
        names = ["who"] if one["pattern"] == "r" else by
        group = orjson.dumps([one["returns"].get(name, one["key"]) for name in names]).decode()
        known = incidents.setdefault(group, [])
        is_open = bool(known) and "end" not in known[-1]
        if is_open and at_us - known[-1]["last"] >= closes_after * SECOND_US:
            known[-1]["end"] = ("time", known[-1]["last"] + closes_after * SECOND_US)
            is_open = False
        if one["pattern"] == "r":
            if is_open:
                known[-1]["end"] = ("pattern", at_us)
            continue
        if lasts and group in last and at_us - last[group][0] < lasts * SECOND_US:
            suppressed[one["id"]] = last[group][1]
        else:
            last[group] = at_us, one["id"]
        if not is_open:
            known.append({"alerts": [], "start": at_us})
        known[-1]["alerts"].append(one["id"])
        known[-1]["last"] = at_us
    found = [
        (*one["alerts"], one["start"], one.get("end", ("time", one["last"] + closes_after * SECOND_US)))
        for some in incidents.values()
        for one in some
    ]
    return sorted(found), suppressed


@pytest.mark.parametrize("by", [["customer"], ["v", "customer"], ["key"], []])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), shards=st.sampled_from((1, 3)), is_suppressing=st.booleans())
def test_incidents_are_those_of_a_plain_evaluation(by: Any, seed: int, shards: int, is_suppressing: bool) -> None:
    rng = Random(seed)
    lateness, closes_after, lasts = rng.choice((0, 4)), rng.randint(1, 9), rng.randint(1, 9) * is_suppressing
    events = events_of(rng, rng.randint(5, 80), lateness, "AABBC")
    opens = {**OPENS, "incident": {"by": by, "close_after": f"{closes_after} s"}}
    closes = CLOSES if by == ["customer"] else {"text": CLOSES["text"]}
    if is_suppressing:
        opens["suppress"] = {"by": by, "for": f"{lasts} s"}
    plain = ran(plan_of({"p": {"text": OPENS["text"]}, "r": {"text": CLOSES["text"]}}, lateness or None), events, 1)
    decides = [one for one in plain["alert"] if one["pattern"] == "p" or "resolves" in closes]
    expected, suppressed = reference(decides, by, closes_after, lasts)
    found = ran(plan_of({"p": opens, "r": closes}, lateness or None), events, shards, rng)

    of_p = [one for one in found["alert"] + found["suppressed-alert"] if one["pattern"] == "p"]
    assert {one["id"]: one["suppressed_by"] for one in found["suppressed-alert"]} == suppressed
    assert sorted(one["id"] for one in found["alert"] + found["suppressed-alert"]) == sorted(
        one["id"] for one in plain["alert"]
    )
    counts = {one["id"]: one["incident_alerts"] for one in found["suppressed-alert"]}
    members: dict[str, list[tuple[str, str]]] = {}
    for one in of_p:
        members.setdefault(one["incident"], []).append((one["detected_at"], one["id"]))
    made = []
    for opened in found["opened-incident"]:
        changes = [one for name in CHANGES for one in found[name] if one["incident"] == opened["incident"]]
        changes.sort(key=lambda one: one["revision"])
        closed = changes[-1]
        assert [one["revision"] for one in changes] == list(range(1, len(changes) + 1))
        assert [one["state"] for one in changes] == ["open"] * (len(changes) - 1) + ["closed"]
        alerts = [identity for _, identity in sorted(members[opened["incident"]])]
        quiet = [one for one in alerts if one in suppressed]
        assert {one: counts.get(one) for one in quiet} == {one: alerts.index(one) + 1 for one in quiet}
        assert (closed["alerts"], closed["suppressed_alerts"], closed["first_alert"]) == (
            len(alerts),
            len(quiet),
            alerts[0],
        )
        assert len(changes) - 2 == len([one for one in alerts[1:] if one not in suppressed])
        how = closed["closed_by"]["how"], parse_time(closed["closed_at"])
        made.append((*alerts, parse_time(closed["opened_at"]), how))
    assert sorted(made) == expected


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [(1, 1.0, "pattern"), (-0.0, 0, "pattern"), (1e300, 1e300, "pattern"), (None, None, "pattern"), ("1", 1, "time")],
)
def test_numbers_that_are_equal_are_one_group(first: Any, second: Any, how: str) -> None:
    opens = {"text": "A a RETURN a.v AS v", "incident": {"by": ["v"], "close_after": "1 h"}}
    closes = {"text": "C c RETURN c.v AS v", "resolves": {"pattern": "p", "by": ["v"]}}
    values = (("A", first), ("C", second))
    events = [Event(id=f"e{n}", type=name, time_us=n, key="o", data={"v": v}) for n, (name, v) in enumerate(values, 1)]
    (closed,) = ran(plan_of({"p": opens, "r": closes}), events, 3)["closed-incident"]
    assert closed["closed_by"]["how"] == how


def act(run: InlineShards, incident: Mapping[str, Any], action: str) -> list[RowBlock]:
    """What a person does with an incident, as an event of the inner stream."""
    request = {"incident": incident["incident"], "by": "ann", "at": "2026-01-01T00:00:00Z"}
    key = orjson.dumps(list(incident["group"].values())).decode()
    time_us = parse_time(incident["updated_at"])
    event = Event(id="~1", type=action, time_us=time_us, key=key, data=request)
    run.feed(alerts_stream("p"), EventBatch.from_events([event]))
    return run.settle()


def one_open() -> tuple[InlineShards, Any]:
    """A run with an open incident, and the incident."""
    run = begun(plan_of({"p": {"text": "A a RETURN a.customer AS customer", "incident": {"by": ["customer"], **H}}}), 2)
    made = [Event(id=f"e{n}", type="A", time_us=n * SECOND_US, key="o", data={"customer": "c"}) for n in (1, 2)]
    run.feed("orders", EventBatch.from_events(made))
    run.settle()
    run.append_record("orders", Tick(time_us=100 * SECOND_US, cause="events"))
    found = read(run.settle())
    assert [len(found[name]) for name in CHANGES] == [1, 1, 0]
    return run, found["updated-incident"][0]


H = {"close_after": "1 h"}


def test_a_person_acknowledges_and_closes_at_a_place_of_the_log() -> None:
    run, incident = one_open()
    (seen,) = read(act(run, incident, ACKNOWLEDGE))["updated-incident"]
    assert (seen["state"], seen["revision"], seen["acknowledged"]["by"]) == ("acknowledged", 3, "ann")
    assert not act(run, incident, ACKNOWLEDGE)  # it stays as it is
    run.states[:] = [ShardState.load(one.dump()) for one in run.states]
    (closed,) = read(act(run, incident, CLOSE))["closed-incident"]
    assert (closed["state"], closed["revision"], closed["closed_at"]) == ("closed", 4, format_time(100 * SECOND_US))
    assert closed["closed_by"] == {"how": "person", "by": "ann", "at": "2026-01-01T00:00:00Z"}
    assert not act(run, incident, CLOSE)
    event = Event(id="e3", type="A", time_us=101 * SECOND_US, key="o", data={"customer": "c"})
    run.feed("orders", EventBatch.from_events([event]))
    run.settle()
    run.append_record("orders", Tick(time_us=200 * SECOND_US, cause="events"))
    (opened,) = read(run.settle())["opened-incident"]
    assert (opened["alerts"], opened["incident"] == incident["incident"]) == (1, False)


def test_open_incidents_leave_the_state_as_time_passes() -> None:
    run, _ = one_open()
    assert sum(one.measures()[alerts_stream("p")]["suppression_incidents"] or 0 for one in run.states) == 1
    run.append_record("orders", PatternOff("p"))  # its incidents stay, and end by time
    run.append_record("orders", Tick(time_us=(3_602 + 100) * SECOND_US, cause="events"))
    (closed,) = read(run.settle())["closed-incident"]
    assert (closed["closed_by"], closed["closed_at"]) == ({"how": "time"}, format_time(3_602 * SECOND_US))
    assert sum(one.measures()[alerts_stream("p")]["suppression_incidents"] or 0 for one in run.states) == 0


@pytest.mark.parametrize("end", [PatternOff("p"), StreamOff("orders")])
def test_requests_count_after_the_end_of_the_pattern_or_its_stream(end: PatternOff | StreamOff) -> None:
    run, incident = one_open()
    run.append_record("orders", end)
    (closed,) = read(act(run, incident, CLOSE))["closed-incident"]
    assert (closed["incident"], closed["state"]) == (incident["incident"], "closed")


@pytest.mark.parametrize("is_same", [True, False])
def test_another_version_continues_the_same_groups_and_closes_others(is_same: bool) -> None:
    run, incident = one_open()
    document = {"text": "A a RETURN a.customer AS customer, a.v AS v", "incident": {"by": ["customer"], **H}}
    if not is_same:
        document["incident"] = {"by": ["v"], **H}
    (part,) = plan_of({"p": document}).operators
    run.append_record(alerts_stream("p"), OperatorOn(replace(part, version=2), "keep"))
    found = read(run.settle())
    assert [one["closed_by"] for one in found["closed-incident"]] == [{"how": "version"}] * (not is_same)
    acted = read(act(run, incident, CLOSE))["closed-incident"]
    assert [one["version"] for one in acted] == [2] * is_same


def test_a_version_that_only_suppresses_closes_what_is_open() -> None:
    run, _ = one_open()
    document = {"text": "A a RETURN a.customer AS customer", "suppress": {"by": ["customer"], "for": "1 h"}}
    (part,) = plan_of({"p": document}).operators
    run.append_record(alerts_stream("p"), OperatorOn(replace(part, version=2), "keep"))
    assert [one["closed_by"] for one in read(run.settle())["closed-incident"]] == [{"how": "version"}]


@pytest.mark.parametrize(
    ("shards", "rules", "returns"),
    [
        (2, {"incident": {"by": ["customer"], **H}}, "a.customer AS customer, a.region AS region"),
        (1, {"incident": {"by": ["customer"], **H}}, "a.customer AS customer"),
        (1, {"incident": {"by": ["key"], **H}}, "a.customer AS customer"),
        (1, {"suppress": {"by": ["customer"], "for": "1 h"}}, "a.customer AS customer"),
    ],
)
def test_alerts_on_their_way_to_other_groups_pass_without_an_incident(shards: int, rules: Any, returns: str) -> None:
    regions = {"text": "A a RETURN a.region AS region", "incident": {"by": ["region"], **H}}
    (part,) = plan_of({"p": regions}).operators
    run = begun(plan_of({"p": {"text": f"A a RETURN {returns}", **rules}}), shards)

    def feed(numbers: Sequence[int]) -> None:
        for n in numbers:
            data = {"order": f"o{n}", "customer": f"c{n}", "region": "north"}
            event = Event(id=f"e{n}", type="A", time_us=n * SECOND_US, key=f"o{n}", data=data)
            run.feed("orders", EventBatch.from_events([event]))

    feed([1, 2, 3, 4])
    run.append_record(alerts_stream("p"), OperatorOn(replace(part, version=2), "keep"))
    text, suppression = f"PATTERN p EVENT {regions['text']}", part.body["suppression"]
    run.append_record("orders", PatternOn(name="p", version=2, text=text, suppression=suppression))
    blocks = [*run.settle()]
    run.states[:] = [ShardState.load(one.dump()) for one in run.states]
    feed([5, 6])
    found = read([*blocks, *run.settle(), *run.pause()])
    assert [one["group"] for one in found["opened-incident"]] == [{"region": "north"}]
    assert sorted((one["version"], "incident" in one) for one in found["alert"]) == [
        *[(1, False)] * 4,
        *[(2, True)] * 2,
    ]


def test_a_divided_shard_keeps_its_incidents() -> None:
    run = begun(plan_of({"p": {"text": "A a", "incident": {"by": ["key"], **H}}}), 1)
    made = [Event(id=f"e{n}", type="A", time_us=n, key=f"o{n % 7}", data={}) for n in range(1, 15)]
    run.feed("orders", EventBatch.from_events(made))
    run.settle()
    run.append_record("orders", Tick(time_us=100, cause="events"))
    run.settle()
    counts = [one.measures()[alerts_stream("p")]["suppression_incidents"] for one in run.states[0].split(1, 3)]
    assert (sum(one or 0 for one in counts), all(counts)) == (7, True)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"incident": {"by": ["order"]}}, "incident: it has no close_after; write {by: [customer], close_after: 2 h}"),
        ({"incident": []}, "it has no close_after"),
        ({"incident": {"close_after": "1 h", "until": 3}}, "it has until"),
        ({"incident": {"close_after": "soon"}}, "'soon' is not a duration"),
        ({"incident": {"close_after": "0 s"}}, "'0 s' is not a duration of 1 us or more"),
        ({"incident": {"by": ["shop"], "close_after": "1 h"}}, "there are v, key, order"),
        ({"incident": {"by": ["v", "v"], "close_after": "1 h"}}, "names a column twice"),
        ({"incident": {"by": ["v"], "close_after": "1 h"}, "suppress": {"for": "1 h"}}, "by differs from that"),
        ({"resolves": {"by": ["v"]}}, "resolves: it has no pattern"),
        ({"resolves": {"pattern": ""}}, "the name of the pattern"),
        ({"resolves": {"pattern": "q"}, "suppress": {"for": "1 h"}}, "neither suppress nor incident"),
        ({"resolves": {"pattern": "q"}, "into": True}, "with INTO become events"),
    ],
)
def test_what_cannot_be_is_refused(document: Any, words: str) -> None:
    into = " INTO others" if document.pop("into", False) else ""
    pattern = routed(parse_pattern(f"PATTERN p EVENT A a RETURN a.v AS v{into}"), ORDERS)
    with pytest.raises(OperatorRefused) as refusal:
        read_quiet(document, pattern)
    assert words in refusal.value.message
    assert refusal.value.details["field"] in document


def test_incidents_have_the_groups_of_suppress() -> None:
    pattern = routed(parse_pattern("PATTERN p EVENT A a RETURN a.v AS v"), ORDERS)
    found = read_quiet({"suppress": {"by": ["v"], "for": "1 h"}, "incident": {"close_after": "2 h"}}, pattern)
    assert found == {"by": ["v"], "for": "1 h", "is_rekeyed": True, "incident": {"close_after": "2 h"}}
