"""Functions of calendars: as columns, in RETURN, and between steps."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from nfa import Matcher, PatternRefused, columns_of_events, parse_event_expression, parse_pattern
from streams import Event, EventBatch
from streams.tables import Calendar, TableFiles, Tables, keep_calendar

HOUR = 3_600_000_000
MONDAY = 1_767_571_200_000_000  # 2026-01-05T00:00:00Z
CALENDAR = Calendar(
    zone="Europe/Berlin",
    hours=[[(540, 1020)]] * 5 + [[], []],
    closed=frozenset([date(2026, 1, 6)]),
    exceptions={},
    years=(2026, 2026),
    document={"zone": "Europe/Berlin"},
)


@pytest.fixture(scope="module")
def tables():
    return Tables(TableFiles()).with_version(keep_calendar("de", CALENDAR))


def event(number, kind, time_us, **data):
    return Event(id=str(number), type=kind, time_us=time_us, key="k", data=data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("business_duration('2026-01-05 10:00', '2026-01-07 10:00', de)", 8 * HOUR),
        ("business_duration('2026-01-05T10:00:00Z', '2026-01-05T09:30:00Z', de)", -HOUR // 2),
        ("business_duration(opened, time(event), de)", 2 * HOUR),
        ("business_duration(none, time(event), de)", None),
        ("business_duration('1999-01-05', time(event), de)", None),
        ("business_duration(opened, time(event), fr)", None),
        ("add_business_time(opened, 8 h, de) - timestamp(opened)", (24 + 7) * HOUR + 17 * HOUR),
        ("add_business_days(opened, 1, de)", MONDAY + 71 * HOUR),
        ("add_business_days(opened, days, de)", MONDAY + 95 * HOUR),
        ("add_business_days(opened, 0, de)", None),
        ("add_business_days(opened, 500, de)", None),
        ("add_business_days(opened, 'x', de)", "refused"),
    ],
)
def test_columns(tables, text, value):
    batch = EventBatch.from_events([event(1, "A", MONDAY + 12 * HOUR, opened="2026-01-05T11:00+01:00", days=2)])
    if value == "refused":
        with pytest.raises(PatternRefused, match="days of add_business_days"):
            parse_event_expression(text)
        return
    (found,) = parse_event_expression(text).column(columns_of_events(replace(batch, tables=tables)), np.arange(1))
    assert found == (None if value is None else value)


def test_conditions_between_steps_and_return(tables):
    matcher = Matcher()
    matcher.add_pattern(
        "PATTERN p EVENT SEQ(A a, B b [business_duration(time(a), time(b), de) > 8 h OR late]) "
        "RETURN business_duration(time(a), time(b), de) / 1 h AS h, add_business_days(time(a), 1, de) AS due"
    )
    events = [
        event(1, "A", MONDAY + 9 * HOUR),
        event(2, "B", MONDAY + 57 * HOUR),
        event(3, "B", MONDAY + 58 * HOUR),
        event(4, "A", MONDAY + 59 * HOUR),
        event(5, "B", MONDAY + 60 * HOUR, late=True),
    ]
    batch = replace(EventBatch.from_events(events), tables=tables)
    found = matcher.process(batch)
    found = type(found)(tuple(replace(lane, tables=tables) for lane in found.lanes))
    values = [(one.bindings["a"][0], one.bindings["b"][0], dict(one.returns)) for one in found.matches()]
    assert sorted(values, key=lambda one: one[:2]) == [
        ("1", "3", {"h": 9.0, "due": MONDAY + 71 * HOUR}),
        ("1", "5", {"h": 11.0, "due": MONDAY + 71 * HOUR}),
        ("4", "5", {"h": 1.0, "due": MONDAY + 95 * HOUR}),
    ]


def test_times_of_several_events_are_not_mixed():
    text = "PATTERN p EVENT SEQ(A a, B b, C c [business_duration(time(a), time(a) + time(b), de) > 1])"
    with pytest.raises(PatternRefused, match="are of several events"):
        parse_pattern(text)
