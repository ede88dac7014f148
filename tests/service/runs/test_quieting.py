"""Suppressed matches of one stream in this process, and comparisons of rules that suppress alerts."""

from dataclasses import replace
from random import Random

import pytest

from nfa import parse_pattern
from service.backtests.plans import plan_of
from service.backtests.questions import Question, TriedPattern
from service.runs.stream_run import StreamRun, stream_plan
from shards import read_suppression, routed
from shards.errors import RoundsImpossible
from streams import Event, EventBatch, StreamDeclaration

TEXT = "PATTERN p EVENT SEQ(A a, B b) RETURN a.customer AS customer"
DECLARATION = StreamDeclaration(name="orders", key="data.order")
BY_CUSTOMER, BY_ORDER = ({"by": [name], "for": "7 s"} for name in ("customer", "order"))


def events():
    rng = Random(5)
    return EventBatch.from_events(
        [
            Event(
                id=f"e{n}",
                type=rng.choice("AAB"),
                time_us=n * 1_000_000,
                key=(order := f"o{rng.randrange(3)}"),
                data={"order": order, "customer": f"c{rng.randrange(2)}"},
            )
            for n in range(80)
        ]
    )


@pytest.mark.parametrize(("suppress", "name"), [(BY_CUSTOMER, "customer"), (BY_ORDER, "key")])
def test_matches_are_suppressed_in_the_order_of_time(suppress, name):
    pattern = routed(parse_pattern(TEXT), DECLARATION)
    pattern = replace(pattern, suppression=read_suppression(suppress, pattern))
    reports = []
    for one in (pattern, replace(pattern, suppression=None)):
        run = StreamRun(stream_plan(DECLARATION, None, [(one, True)]))
        run.feed(events())
        reports.append(run.report(is_open=False))
    quiet, plain = reports
    last: dict[object, int] = {}
    passed = []
    for match in sorted(plain.matches, key=lambda match: match["detected_at"]):
        group, second = (
            {**match["returns"], "key": match["key"]}[name],
            int(match["end"][17:19]) + 60 * int(match["end"][15]),
        )
        if group not in last or second - last[group] >= 7:
            last[group] = second
            passed.append((group, second))
    found = [
        ({**one["returns"], "key": one["key"]}[name], int(one["end"][17:19]) + 60 * int(one["end"][15]))
        for one in quiet.matches
    ]
    assert sorted(found) == sorted(passed)
    assert quiet.suppressed == len(plain.matches) - len(passed) > 0
    assert plain.suppressed is None


def test_rules_whose_alerts_are_in_different_shards_are_not_compared():
    def tried(suppress):
        pattern = routed(parse_pattern(TEXT), DECLARATION)
        return TriedPattern(name="p", text=TEXT, suppression=suppress and read_suppression(suppress, pattern))

    def plan(first, second):
        return plan_of(Question(declaration=DECLARATION, patterns=(tried(first),), against=(tried(second),)))

    assert plan(BY_CUSTOMER, {**BY_CUSTOMER, "for": "1 h"})
    assert plan(BY_ORDER, None)
    with pytest.raises(RoundsImpossible, match="run each alone"):
        plan(BY_CUSTOMER, None)
