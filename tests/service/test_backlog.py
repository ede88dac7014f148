import pytest

from service.stores.log.backlog import Backlog, DrainMark, Volume, drain_rate, retry_after_s

SECOND = 1_000_000


def mark(second, events):
    return DrainMark(time_us=second * SECOND, matched=Volume(events=events, bytes=10 * events))


def test_what_waits_is_never_less_than_nothing():
    told = Backlog(appended=Volume(events=3, bytes=9), matched=Volume(events=5, bytes=2))
    assert told.waiting == Volume(events=0, bytes=7)


def test_the_rate_is_that_of_the_latest_micro_batches():
    marks = [mark(104, 300), mark(102, 100), mark(100, 9_999), mark(10, 1)]
    assert drain_rate(marks, 104 * SECOND) == Volume(events=100, bytes=1_000)


def test_the_rate_gets_less_while_nothing_is_matched():
    marks = [mark(101, 100), mark(100, 100)]
    assert drain_rate(marks, 101 * SECOND) == Volume(events=100, bytes=1_000)
    assert drain_rate(marks, 110 * SECOND) == Volume(events=10, bytes=100)
    assert drain_rate(marks, 170 * SECOND) is None


@pytest.mark.parametrize("marks", [[], [mark(1, 1)], [mark(1, 1), mark(1, 1)]])
def test_the_rate_of_too_little_is_not_made_up(marks):
    assert drain_rate(marks, SECOND) is None


@pytest.mark.parametrize(
    ("wanted", "rate", "expected"),
    [
        (1_050, 10, 10),  # down to 950
        (1_050, 1_000, 1),
        (1_050, 1, 60),
        (1_050, 0, 60),
        (1_050, None, 10),
        (900, 10, 1),
    ],
)
def test_the_pause_is_what_the_excess_takes_within_bounds(wanted, rate, expected):
    assert retry_after_s(wanted, 1_000, rate) == expected
