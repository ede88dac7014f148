"""Stays of events against simulation, and their borders."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.costs import mean_stay_us, purge_time_us, stay_case

# life, lag, window of each case
CASES = {
    1: [(10.0, 2.5, 4.0), (1.0, 7.0, 6.0)],
    2: [(10.0, -0.5, 4.0), (10.0, 0.0, 4.0)],
    3: [(10.0, 0.8, 4.0), (3.0, 1.0, 2.0)],
    4: [(10.0, 0.6, 7.0), (10.0, 0.3, 50.0)],
    5: [(10.0, 1.4, 7.0), (2.0, 1.9, 3.0)],
    6: [(10.0, 1.4, 20.0), (2.0, 3.0, 9.0)],
}


def simulated_stay(life, lag, window):
    """An event that comes at x of a life stays until the other input closes the key, or it leaves the window."""
    came = (np.arange(1_000_000) + np.random.default_rng(1).random(1_000_000)) / 1_000_000 * life
    return float(np.maximum(0.0, np.minimum(window, lag * life - came)).mean())


@pytest.mark.parametrize(("case", "values"), [(case, values) for case, several in CASES.items() for values in several])
def test_each_case_agrees_with_simulation(case, values):
    assert stay_case(*values) == case
    assert mean_stay_us(*values) == pytest.approx(simulated_stay(*values), rel=0.01, abs=1e-9)


@given(st.floats(0.1, 20), st.floats(-1, 4), st.floats(0, 60))
def test_the_cases_meet_at_their_borders_and_lie_within_bounds(life, lag, window):
    stay = mean_stay_us(life, lag, window)
    assert -1e-9 <= stay <= window + 1e-9
    for other in (
        mean_stay_us(life, lag + 1e-7, window),
        mean_stay_us(life, lag, window + 1e-7),
        mean_stay_us(life + 1e-7, lag, window),
    ):
        assert other == pytest.approx(stay, abs=1e-4)
    assert mean_stay_us(life, lag + 0.5, window) >= stay - 1e-9
    assert mean_stay_us(life, lag, window + 1) >= stay - 1e-9


def test_the_printed_cases_differ():
    life, lag, window = CASES[4][0]
    assert lag * life / 2 == pytest.approx(simulated_stay(life, lag, window) / lag, rel=0.01)
    life, lag, window = CASES[5][0]
    printed = lag * window - (window**2 / life - (lag - 1) ** 2 * life) / 2
    assert printed > 1.2 * simulated_stay(life, lag, window)


def test_without_punctuations_or_windows():
    assert mean_stay_us(10, math.inf, 4) == 4
    assert mean_stay_us(10, 1.5, math.inf) == 10
    assert mean_stay_us(10, 0.5, math.inf) == pytest.approx(1.25)
    with pytest.raises(ValueError, match="for ever"):
        mean_stay_us(10, math.inf, math.inf)
    with pytest.raises(ValueError, match="not negative"):
        mean_stay_us(-1, 1, 1)


def simulated_purge_time(closings, expiries):
    """The first moment at which all other inputs have closed the key, or a closed input has no event of it left."""
    moments = sorted({*closings, *expiries})
    for moment in moments:
        has_closed = [closing <= moment for closing in closings]
        if all(has_closed) or any(
            closed and expiry <= moment for closed, expiry in zip(has_closed, expiries, strict=True)
        ):
            return moment
    return math.inf


@given(st.lists(st.tuples(st.integers(0, 9) | st.just(math.inf), st.integers(0, 9) | st.just(math.inf)), min_size=1))
def test_events_become_useless_at_the_first_reason(others):
    closings, expiries = zip(*others, strict=True)
    assert purge_time_us(closings, expiries) == simulated_purge_time(closings, expiries)
