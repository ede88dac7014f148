"""Suppressed alerts against a plain evaluation of all alerts in the order of time, in one shard and in several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nfa import parse_pattern
from service.runs.plan import RunPlan
from shards import InlineShards, LastAlerts, OperatorRefused, alerts_stream, read_suppression, routed
from streams import Event, EventBatch, PatternOff, Tick, parse_time
from tests.builders.quiet import ORDERS, SECOND_US, begun, blocks_of, events_of
from tests.builders.quiet import plan_of as plan_of_patterns

TEXTS = (
    "SEQ(A a, B b) RETURN a.customer AS customer, b.v AS v",
    "SEQ(A a, NOT B) WITHIN 3 s RETURN a.customer AS customer, a.v AS v",
    "SEQ(A a, B+ b) WITHIN 9 s RETURN a.customer AS customer, first(b.v) AS v",
    "A a RETURN a.order AS customer, a.v AS v",
)
BYS: Mapping[str, Sequence[str]] = {
    "key": ["order"],
    "key and value": ["key", "v"],
    "column": ["customer"],
    "columns": ["customer", "v"],
    "all": [],
}


def plan_of(text: str, suppress: Mapping[str, Any] | None, lateness: int | None = None) -> RunPlan:
    return plan_of_patterns({"p": {"text": text, "suppress": suppress}}, lateness)


def ran(plan: RunPlan, events: Sequence[Event], shards: int, rng: Random | None = None) -> dict[str, list[Any]]:
    """The alerts and suppressed alerts; ``rng`` cuts the log, and saves and loads states in between."""
    found: dict[str, list[Any]] = {"alert": [], "suppressed-alert": []}
    for block in blocks_of(begun(plan, shards), events, rng):
        for row in block:
            body = orjson.loads(row.body)
            assert (row.kind, row.stream, row.subject, row.id) in [(name, "orders", "p", body["id"]) for name in found]
            found[row.kind].append(body)
    return found


def reference(
    alerts: Sequence[Any], suppress: Mapping[str, Any], events: Sequence[Event], *, is_rekeyed: bool
) -> dict[str, str | None]:
    """For each alert the id of its suppressor, from all alerts in the order of time and, at one time, of events."""
    order = {event.id: number for number, event in enumerate(sorted(events, key=lambda event: event.time_us))}
    last: dict[str, tuple[int, str]] = {}
    lasts_us = int(suppress["for"].split()[0]) * SECOND_US

    def place(alert: Any) -> Any:
        is_event = alert.get("decided_by") != "window"
        number = max(order[one] for ids in alert["bindings"].values() for one in ids)
        return parse_time(alert["detected_at"]), (0, 0) if is_rekeyed else (is_event, number * is_event), alert["id"]

    found: dict[str, str | None] = {}
    for alert in sorted(alerts, key=place):
        values = [alert["returns"].get(name, alert["key"]) for name in suppress["by"]]
        group = orjson.dumps(values if is_rekeyed else [alert["key"], *values]).decode()
        time_us = parse_time(alert["detected_at"])
        if group in last and time_us - last[group][0] < lasts_us:
            found[alert["id"]] = last[group][1]
        else:
            found[alert["id"]] = None
            last[group] = time_us, alert["id"]
    return found


@pytest.mark.parametrize("by", BYS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), text=st.sampled_from(TEXTS), shards=st.sampled_from((1, 3)))
@example(seed=303206, text=TEXTS[2], shards=1)  # the last event of alerts comes before others of them
def test_alerts_are_suppressed_as_by_a_plain_evaluation(by: str, seed: int, text: str, shards: int) -> None:
    rng = Random(seed)
    lateness = rng.choice((0, 4))
    events = events_of(rng, rng.randint(5, 60), lateness, "AABC")
    suppress = {"by": BYS[by], "for": f"{rng.randint(1, 9)} s"}
    plan = plan_of(text, suppress, lateness or None)
    (pattern, _) = plan.patterns["orders"][0]
    assert pattern.suppression is not None
    is_rekeyed = pattern.suppression["is_rekeyed"]
    assert is_rekeyed is (by in ("column", "columns", "all") and not (text is TEXTS[3] and by != "all"))
    plain = ran(plan_of(text, None, lateness or None), events, 1)["alert"]
    expected = reference(plain, suppress, events, is_rekeyed=is_rekeyed)
    found = ran(plan, events, shards, rng)
    assert sorted(one["id"] for one in found["alert"]) == sorted(name for name, one in expected.items() if one is None)
    assert {one["id"]: one["suppressed_by"] for one in found["suppressed-alert"]} == {
        name: one for name, one in expected.items() if one is not None
    }
    whole = {one["id"]: one for one in plain}
    assert all(one == whole[one["id"]] for one in found["alert"])
    for one in found["suppressed-alert"]:
        assert one == {**whole[one["id"]], "type": "alert.suppressed", "suppressed_by": one["suppressed_by"]}


def test_groups_leave_the_state_as_time_passes() -> None:
    plan = plan_of(TEXTS[0], {"by": ["customer"], "for": "5 s"})
    run = InlineShards(2)
    for stream, record in plan.records():
        run.append_record(stream, record)
    run.feed("orders", EventBatch.from_events(events_of(Random(3), 200, 0, "AABC")))
    run.settle()
    assert sum(state.measures()[alerts_stream("p")]["suppression_groups"] or 0 for state in run.states) > 0
    run.append_record("orders", Tick(time_us=10_000 * SECOND_US, cause="events"))
    run.settle()
    assert [state.measures()[alerts_stream("p")]["suppression_groups"] for state in run.states] == [0, 0]


def test_alerts_on_their_way_are_reported_when_the_pattern_ends() -> None:
    plan = plan_of("A a RETURN a.customer AS customer", {"by": ["customer"], "for": "5 s"})
    run = InlineShards(2)
    for stream, record in plan.records():
        run.append_record(stream, record)
    made = [Event(id=f"e{n}", type="A", time_us=n, key=f"o{n}", data={"customer": f"c{n % 2}"}) for n in range(1, 9)]
    run.feed("orders", EventBatch.from_events(made))
    blocks = [block for shard in range(2) for block in run.step(shard, 100)]
    run.append_record("orders", PatternOff("p"))  # the alerts are in the log, and their places have not taken them
    blocks += run.settle()
    waiting = 8 - sum(map(len, blocks))
    run.append_record("orders", Tick(time_us=10_000 * SECOND_US, cause="events"))
    blocks += run.settle()
    assert waiting > 0
    assert sorted(row.kind for block in blocks for row in block) == ["alert"] * 2 + ["suppressed-alert"] * 6


def test_a_divided_shard_keeps_its_groups() -> None:
    plan = plan_of("A a", {"by": ["key"], "for": "100 s"})
    run = InlineShards(1)
    for stream, record in plan.records():
        run.append_record(stream, record)
    made = [Event(id=f"e{n}", type="A", time_us=n, key=f"o{n % 7}", data={}) for n in range(1, 15)]
    run.feed("orders", EventBatch.from_events(made))
    run.settle()
    parts = list(run.states[0].split(1, 3))
    assert sum(part.measures()[alerts_stream("p")]["suppression_groups"] or 0 for part in parts) == 7
    assert all(part.measures()[alerts_stream("p")]["suppression_groups"] for part in parts)


def test_an_older_alert_that_comes_later_counts_as_at_the_time_of_the_newer_one() -> None:
    last = LastAlerts(10)
    assert last.suppressor("g", 100, "a") is None
    assert last.suppressor("g", 50, "b") == "a"
    last.expire(110)
    assert len(last) == 0
    assert last.suppressor("g", 105, "c") is None


@pytest.mark.parametrize(
    ("suppress", "text", "words"),
    [
        ({"by": ["order"]}, "A a", "has no for"),
        ([], "A a", "has no for"),
        ({"for": "1 h", "until": 3}, "A a", "has until"),
        ({"for": "1 h", 1: 2, "until": 3}, "A a", "has 1, until"),
        ({"for": "0 s"}, "A a", "'0 s' is not a duration of 1 us or more"),
        ({"by": "order", "for": "1 h"}, "A a", "by is a list of names"),
        ({"by": ["order"], "for": "soon"}, "A a", "'soon' is not a duration"),
        ({"by": ["shop"], "for": "1 h"}, "A a RETURN a.v AS v", "there are v, key, order. Add RETURN … AS shop"),
        ({"for": "1 h"}, "A a INTO others", "with INTO become events"),
    ],
)
def test_what_cannot_be_is_refused(suppress: Any, text: str, words: str) -> None:
    pattern = routed(parse_pattern(f"PATTERN p EVENT {text}"), ORDERS)
    with pytest.raises(OperatorRefused, match="suppress") as refusal:
        read_suppression(suppress, pattern)
    assert words in refusal.value.message
    assert refusal.value.details["field"] == "suppress"


def test_an_alert_behind_the_time_that_has_passed_counts_as_of_this_time():
    last = LastAlerts(10)
    last.expire(100)
    assert last.suppressor("g", 50, "late") is None
    assert last.suppressor("g", 105, "next") == "late"
    last.expire(110)
    assert len(last) == 0
    assert last.suppressor("g", 110, "then") is None
