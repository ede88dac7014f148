"""Occurrence times: RFC 3339 to microseconds and back."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.columns.texts import time_texts
from streams.errors import EventRejected
from streams.timestamps import EARLIEST_US, LATEST_US, format_time, parse_rfc3339, parse_time
from tests.builders.streams import times_us


@pytest.mark.parametrize(
    ("text", "expected_us"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", 1_000_000),
        ("1970-01-01 00:00:00.5Z", 500_000),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1970-01-01T00:00:00.0000019999Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:30:00-00:30", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
        ("2017-01-01T00:59:60.25+01:00", 1_483_228_800_250_000),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000_000),
        ("0001-01-01T00:00:00Z", EARLIEST_US),
        ("9999-12-31T23:59:59.999999Z", LATEST_US),
    ],
)
def test_rfc3339_is_read(text: str, expected_us: int) -> None:
    assert parse_time(text) == expected_us


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2026-01-01T00:00:00", "has no time zone"),
        ("2026-01-01", "not RFC 3339"),
        ("", "not RFC 3339"),
        ("yesterday", "not RFC 3339"),
        ("2026-01-01T00:00Z", "not RFC 3339"),
        ("2026-01-01T00:00:00,5Z", "not RFC 3339"),
        ("\uff12026-01-01T00:00:00Z", "not RFC 3339"),
        (" 2026-01-01T00:00:00Z", "not RFC 3339"),
        ("2026-02-30T00:00:00Z", "does not exist"),
        ("2026-01-01T24:00:00Z", "does not exist"),
        ("2026-01-01T12:00:60Z", "second 60"),
        ("2026-01-01T00:00:00+24:00", "impossible offset"),
        ("2026-01-01T00:00:00+01:60", "impossible offset"),
        ("0001-01-01T00:00:00+00:01", "years 1 to 9999"),
        ("0000-01-01T00:00:00Z", "does not exist"),
        (1_767_225_600_000_000_000, "not nanoseconds"),
        (1.5, "neither RFC 3339 text nor whole microseconds"),
        (True, "neither RFC 3339 text nor whole microseconds"),
        (None, "neither RFC 3339 text nor whole microseconds"),
        (["2026-01-01T00:00:00Z"], "neither RFC 3339 text nor whole microseconds"),
    ],
)
def test_what_is_no_time_is_refused_with_the_reason(value: object, reason: str) -> None:
    with pytest.raises(EventRejected, match=reason) as caught:
        parse_time(value)
    assert caught.value.details["field"] == "time"


def test_whole_microseconds_are_taken_as_they_are() -> None:
    assert parse_time(1_767_225_600_000_001) == 1_767_225_600_000_001
    assert parse_time(-1) == -1


def test_a_time_is_written_in_utc_with_six_digits() -> None:
    assert format_time(1_767_225_600_000_000) == "2026-01-01T00:00:00.000000Z"
    assert format_time(1_767_225_600_000_010) == "2026-01-01T00:00:00.000010Z"
    assert format_time(EARLIEST_US) == "0001-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("time_us", [EARLIEST_US - 1, LATEST_US + 1, 2**63 - 1])
def test_times_beyond_the_calendar_cannot_be_written(time_us: int) -> None:
    with pytest.raises(EventRejected, match="years 1 to 9999"):
        format_time(time_us)


@given(times_us())
def test_writing_and_reading_gives_the_same_time(time_us: int) -> None:
    assert parse_rfc3339(format_time(time_us)) == time_us


@given(times_us(), times_us())
def test_written_times_sort_like_times_and_columns_are_written_alike(first_us: int, second_us: int) -> None:
    first, second = sorted((first_us, second_us))
    assert (format_time(first) < format_time(second)) == (first < second)
    assert time_texts(np.array([first, second])).to_pylist() == [format_time(first), format_time(second)]


@given(
    st.integers(EARLIEST_US + 86_400_000_000, LATEST_US - 86_400_000_000),
    st.integers(-1439, 1439),
)
def test_every_offset_agrees_with_the_standard_library(time_us: int, offset_minutes: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)
    zoned = moment.astimezone(timezone(timedelta(minutes=offset_minutes)))
    assert parse_rfc3339(zoned.isoformat()) == time_us
