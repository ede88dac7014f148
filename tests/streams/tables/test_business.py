"""Deadlines and durations by a calendar against a walk over minutes and days as clocks show them."""

import itertools
import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streams.tables import NEVER, BusinessHours, Calendar, TableFiles, keep_calendar
from streams.tables.current import Tables

MINUTE = 60_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CASES = 12_500  # of each zone in the deep run, which is 100,000
PLACES = [  # a zone, and a day on which its clocks are changed
    ("Europe/Berlin", date(2026, 3, 29)),
    ("America/New_York", date(2026, 11, 1)),
    ("America/Sao_Paulo", date(2018, 11, 4)),  # at midnight, which clocks skip
    ("Australia/Lord_Howe", date(2026, 10, 4)),  # by half an hour
    ("Asia/Kolkata", date(2026, 6, 1)),  # never
    ("Pacific/Apia", date(2011, 12, 30)),  # skips the whole day
    ("America/Havana", date(2026, 11, 1)),  # shows an hour after midnight twice
    ("UTC", date(2024, 2, 29)),
]
BEFORE, DRAWN, WALKED = 30, 60, 120  # days
WEEKS = (
    [[(540, 1020)]] * 5 + [[], []],
    [[(0, 1440)]] * 7,
    [[(150, 240), (1320, 1440)]] * 7,  # at night, when clocks are changed
    [[(0, 90), (120, 150), (600, 720)]] * 4 + [[], [], [(5, 1439)]],
)


def drawn(draw, zone, first):
    days = [first + timedelta(days=number) for number in range(WALKED)]
    closed = frozenset(draw.sample(days, 8))
    exceptions = {day: draw.choice([(), ((600, 660),), ((0, 1440),)]) for day in draw.sample(days, 8)}
    return Calendar(
        zone=zone,
        hours=draw.choice(WEEKS),
        closed=closed,
        exceptions=exceptions,
        years=(first.year, first.year + 1),
        document={"zone": zone},
    )


class Walk:
    """The minutes of some days, one after the other: which are business time, and which day clocks show."""

    def __init__(self, calendar, first):
        zone, hours = ZoneInfo(calendar.zone), dict(calendar.days())
        moment, latest = datetime(first.year, first.month, first.day, tzinfo=UTC), datetime(1, 1, 1)
        self.first_us, is_open, days = (moment - EPOCH) // timedelta(microseconds=1), [], []
        for _ in range(WALKED * 24 * 60):
            latest = max(latest, moment.astimezone(zone).replace(tzinfo=None))  # clocks that go back change nothing
            minute = latest.hour * 60 + latest.minute
            is_open.append(any(opens <= minute < closes for opens, closes in hours.get(latest.date(), ())))
            days.append(latest.date())
            moment += timedelta(minutes=1)
        self.is_open, self.days = bytes(is_open), days
        self.begins = {day: days.index(day) for day in dict.fromkeys(days)}
        self.open_days = {day for day, is_open in zip(days, is_open, strict=True) if is_open}

    def elapsed(self, begin, end):
        return sum(self.is_open[begin:end]) * MINUTE

    def after_minutes(self, begin, minutes):
        place = begin - 1
        for _ in range(minutes):
            place = self.is_open.find(1, place + 1)
            assert place >= 0
        return self.first_us + (place + 1) * MINUTE

    def after_days(self, begin, number):
        later = [day for day in self.begins if day > self.days[begin]]
        for day, following in itertools.pairwise(later):
            number -= day in self.open_days
            if number == 0:
                return self.first_us + self.begins[following] * MINUTE
        raise AssertionError("the walk is too short")


def hours_of(calendar):
    version = keep_calendar("c", calendar)
    ((_, hours),) = Tables(TableFiles()).with_version(version).hours("c", None, 1)
    return hours


@pytest.mark.parametrize(("zone", "change"), PLACES)
def test_deadlines_and_durations_equal_a_walk(zone, change, pytestconfig):
    draw, first = random.Random(zone), change - timedelta(days=BEFORE)
    calendar = drawn(draw, zone, first)
    walk, hours = Walk(calendar, first), hours_of(calendar)
    inside = range(24 * 60, DRAWN * 24 * 60)
    cases = range(int(CASES * pytestconfig.getoption("--examples-share") ** 2))  # a hundredth is enough each day
    begins = np.array([draw.choice(inside) for _ in cases])
    times = walk.first_us + begins * MINUTE
    minutes = np.array([draw.choice([1, 30, 480, 2000, draw.randint(1, 5000)]) for _ in begins])
    days = np.array([draw.randint(1, 12) for _ in begins])
    ends = np.array([draw.choice(inside) for _ in begins])
    wanted = [walk.after_minutes(*one) for one in zip(begins.tolist(), minutes.tolist(), strict=True)]
    assert hours.after_hours(times, minutes * MINUTE).tolist() == wanted
    wanted = [walk.after_days(*one) for one in zip(begins.tolist(), days.tolist(), strict=True)]
    assert hours.after_days(times, days).tolist() == wanted
    passed = hours.elapsed(walk.first_us + ends * MINUTE) - hours.elapsed(times)
    wanted = [
        walk.elapsed(*one) if one[0] <= one[1] else -walk.elapsed(*one[::-1])
        for one in zip(begins.tolist(), ends.tolist(), strict=True)
    ]
    assert passed.tolist() == wanted


def test_a_deadline_is_the_first_moment_at_which_the_time_has_passed():
    hours = BusinessHours.of_intervals(
        "UTC", *(np.array(column) for column in zip((10, 20, 0, 40), (30, 40, 0, 40), (60, 70, 50, 90), strict=True))
    )
    times = np.arange(0, 90)
    for amount in range(1, 31):
        deadlines = hours.after_hours(times, np.full(90, amount))
        for time, deadline in zip(times, deadlines, strict=True):
            passed = hours.elapsed(times) - hours.elapsed(times[time : time + 1])
            later = times[(passed >= amount) & (times >= time)]
            assert deadline == (later[0] if len(later) else NEVER)


def test_midnight_is_of_the_day_that_it_begins():
    year = (2026, 2026)
    hours = hours_of(
        Calendar(zone="UTC", hours=WEEKS[0], closed=frozenset(), exceptions={}, years=year, document={"zone": "UTC"})
    )
    midnight = (datetime(2026, 3, 3, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)  # a Tuesday
    before, at, noon = hours.after_days(
        np.array([midnight - 1, midnight, midnight + 720 * MINUTE]), np.ones(3, np.int64)
    ).tolist()
    assert before < at == noon
