"""Durations are written in their largest whole unit."""

import pytest

from streams import NAMED_UNITS_US, UNITS_US, duration_of, duration_text


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [(1, "1 us"), (90_000_000, "90 s"), (60_000_000, "1 min"), (1_500, "1500 us"), (14 * UNITS_US["d"], "14 d")],
)
def test_the_largest_unit_that_divides_it(duration_us, text):
    assert duration_text(duration_us) == text


def test_names_have_the_lengths_of_their_symbols():
    pairs = {"sec": "s", "second": "s", "minute": "min", "hour": "h", "day": "d", "week": "w"}
    assert {name: NAMED_UNITS_US[name] for name in pairs} == {name: UNITS_US[symbol] for name, symbol in pairs.items()}


@pytest.mark.parametrize("text", ["9" * 400 + " d", "300000000 d", "0 s", "0.1 us"])
def test_durations_out_of_range_are_zero(text):
    assert duration_of(text) == 0
