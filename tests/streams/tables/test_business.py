"""Deadlines and durations by a calendar against a walk over minutes and days as clocks show them."""

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import settings

from streams.tables import NEVER, BusinessHours, Calendar, TableFiles, keep_calendar
from streams.tables.current import Tables

MINUTE = 60_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CASES = 2 * settings().max_examples  # of each zone; the deep run draws ten times as many
PLACES = [  # a zone, and the year of one of its changes
    ("Europe/Berlin", 2026),
    ("America/New_York", 2026),
    ("America/Sao_Paulo", 2018),  # at midnight, which clocks skip
    ("Australia/Lord_Howe", 2026),  # by half an hour
    ("Asia/Kolkata", 2026),
    ("Pacific/Apia", 2011),  # skips a whole day
    ("America/Havana", 2026),  # shows midnight twice
    ("UTC", 2024),
]
WEEKS = (
    [[(540, 1020)]] * 5 + [[], []],
    [[(0, 1440)]] * 7,
    [[(150, 240), (1320, 1440)]] * 7,  # at night, when clocks are changed
    [[(0, 90), (120, 150), (600, 720)]] * 4 + [[], [], [(5, 1439)]],
)


def drawn(draw, zone, year):
    days = [date(year, 1, 1) + timedelta(days=number) for number in range(365)]
    closed = frozenset(draw.sample(days, 20))
    exceptions = {day: draw.choice([(), ((600, 660),), ((0, 1440),)]) for day in draw.sample(days, 20)}
    return Calendar(
        zone=zone,
        hours=draw.choice(WEEKS),
        closed=closed,
        exceptions=exceptions,
        years=(year, year),
        document={"zone": zone},
    )


class Walk:
    """The minutes of a year, one after the other: which are business time, and which day clocks show."""

    def __init__(self, calendar):
        zone, (year, _) = ZoneInfo(calendar.zone), calendar.years
        hours = dict(calendar.days())
        moment, latest = datetime(year - 1, 12, 31, tzinfo=UTC), datetime(1, 1, 1)
        self.first_us, self.is_open, self.days = (moment - EPOCH) // timedelta(microseconds=1), [], []
        while moment.year < year + 1 or moment.day < 3:
            latest = max(latest, moment.astimezone(zone).replace(tzinfo=None))  # clocks that go back change nothing
            minute = latest.hour * 60 + latest.minute
            of_day = hours.get(latest.date(), ())
            self.is_open.append(any(opens <= minute < closes for opens, closes in of_day))
            self.days.append(latest.date())
            moment += timedelta(minutes=1)
        self.open_days = {day for day, is_open in zip(self.days, self.is_open, strict=True) if is_open}

    def elapsed(self, begin, end):
        return sum(self.is_open[begin:end]) * MINUTE

    def after_minutes(self, begin, minutes):
        for place in range(begin, len(self.days)):
            minutes -= self.is_open[place]
            if minutes == 0:
                return self.first_us + (place + 1) * MINUTE
        return NEVER

    def after_days(self, begin, number):
        day, place = self.days[begin], begin
        while number or self.days[place] == day:
            if self.days[place] != day:
                day = self.days[place]
                number -= day in self.open_days
                continue
            place += 1
            if place == len(self.days):
                return NEVER
        return self.first_us + place * MINUTE


def hours_of(calendar):
    version = keep_calendar("c", calendar)
    ((_, hours),) = Tables(TableFiles()).with_version(version).hours("c", None, 1)
    return hours


@pytest.mark.parametrize(("zone", "year"), PLACES)
def test_deadlines_and_durations_equal_a_walk(zone, year):
    draw = random.Random(zone)
    calendar = drawn(draw, zone, year)
    walk, hours = Walk(calendar), hours_of(calendar)
    inside = [
        place for place in range(len(walk.days)) if hours.begins[0] <= walk.first_us + place * MINUTE <= hours.ends[-1]
    ]
    begins = np.array([draw.choice(inside) for _ in range(CASES)])
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
