"""Windows around the first and the last time that an event can have, with borders outside the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aggregates import AggregateRun, group_text
from aggregates import read_aggregate as read
from streams import EARLIEST_US, LATEST_US, format_time, key_hash, shown_time
from tests.builders.aggregates import columns_of
from tests.references.aggregates import Row

HOUR_US = 3_600_000_000
HOPPING = {"hopping": "1 h", "every": "20 min"}
FIRST, LAST = format_time(EARLIEST_US), format_time(LATEST_US)


def row(time_us: int) -> Row:
    text = group_text(("a",))
    return Row(time_us, ("a",), text, key_hash(text), f"e{time_us}", (True,))


def windows_of(window: Any, *batches: list[int]) -> list[Mapping[str, Any]]:
    """The data of the windows that have ended, of events with given times."""
    body = read({"of": "x", "by": ["g"], "values": {"n": "count()"}, "window": window})
    run, emissions = AggregateRun(body, None), []
    for times_us in batches:
        emissions += run.process(columns_of(body, [row(time_us) for time_us in times_us]))
    emissions += run.finish()
    assert all(EARLIEST_US <= emission.time_us <= LATEST_US for emission in emissions)
    return [emission.data for emission in emissions]


@pytest.mark.parametrize("size_us", [HOUR_US, 24 * HOUR_US, 7 * 24 * HOUR_US, 7_000_003, 2**61])
@pytest.mark.parametrize("time_us", [EARLIEST_US, 0, LATEST_US - HOUR_US // 2, LATEST_US])
def test_borders_of_a_tumbling_window_are_limited_to_the_years_of_events(size_us: int, time_us: int) -> None:
    begin_us = time_us // size_us * size_us
    borders = {"from": shown_time(begin_us), "to": shown_time(begin_us + size_us)}
    assert windows_of({"tumbling": f"{size_us} us"}, [time_us]) == [{"g": "a", "n": 1, **borders}]


def test_hopping_windows_end_after_the_first_time_and_at_the_last() -> None:
    found = windows_of(HOPPING, [EARLIEST_US], [EARLIEST_US + 10 * HOUR_US, LATEST_US])
    assert [(window["from"][:16], window["to"][:16]) for window in found] == [
        ("0001-01-01T00:00", "0001-01-01T00:20"),
        ("0001-01-01T00:00", "0001-01-01T00:40"),
        ("0001-01-01T00:00", "0001-01-01T01:00"),
        ("0001-01-01T09:20", "0001-01-01T10:20"),
        ("0001-01-01T09:40", "0001-01-01T10:40"),
        ("0001-01-01T10:00", "0001-01-01T11:00"),
        ("9999-12-31T23:00", LAST[:16]),
        ("9999-12-31T23:20", LAST[:16]),
        ("9999-12-31T23:40", LAST[:16]),
    ]


@pytest.mark.parametrize("window", [{"session": "30 min"}, "transaction"])
def test_sessions_and_transactions_have_the_times_of_their_events(window: Any) -> None:
    found = windows_of(window, [EARLIEST_US], [LATEST_US])
    assert (found[0]["from"], found[-1]["to"]) == (FIRST, LAST)
    assert sum(session["n"] for session in found) == 2
