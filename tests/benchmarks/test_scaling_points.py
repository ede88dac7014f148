"""How measured points are reported, and how a stream is divided for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.copies import repeated
from benchmarks.scaling.axes import patterns
from benchmarks.scaling.flows import stretches_of
from benchmarks.scaling.made import uniform
from benchmarks.scaling.plots import draw
from benchmarks.scaling.points import Point, table
from nfa import Matcher

POINTS = [
    Point(plot="traces", series="one", at=1_000, rate=20e6, note="x"),
    Point(plot="traces", series="one", at=10_000, rate=15e6),
    Point(plot="traces", series="other", at=1_000, rate=500.0),
]


def test_each_series_is_compared_with_its_first_point() -> None:
    assert table("Open traces", "traces", POINTS).splitlines()[4:] == [
        "| 1,000 | one | 20.00 M | 1.00 | x |",
        "| 10,000 | one | 15.00 M | 0.75 |  |",
        "| 1,000 | other | 0.5 k | 1.00 |  |",
    ]


@pytest.mark.parametrize("plot", ["traces", "cores", "constraints"])
def test_a_picture_is_drawn(tmp_path: Path, plot: str) -> None:
    assert draw(plot, "A title", "things", POINTS, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_stretches_follow_what_warms_up() -> None:
    batch = uniform(100, types=3, keys=5, seed=1)
    warm_up, stretches = stretches_of(batch, 40, 25, 9)
    assert len(warm_up) == 40
    assert [int(part.time_us[0] - batch.time_us[0]) for part in stretches] == [40_000, 65_000]
    with pytest.raises(ValueError, match="too few"):
        stretches_of(batch, 90, 25, 1)


def test_a_made_stream_is_the_same_every_time_and_goes_on() -> None:
    batch = uniform(50, types=3, keys=5, seed=1)
    assert batch.columns.equals(uniform(50, types=3, keys=5, seed=1).columns)
    following = uniform(50, types=3, keys=5, seed=2, first=50)
    assert following.time_us[0] == batch.time_us[-1] + 1_000


def test_repeated_events_have_as_many_matches_again() -> None:
    def found(copies: int) -> int:
        matcher = Matcher()
        matcher.add_pattern("PATTERN p EVENT SEQ(T0 a, T1 b)")
        return matcher.process(repeated(uniform(200, types=3, keys=5, seed=1), copies)).n_matches

    assert found(1) > 0
    assert found(3) == 3 * found(1)


def test_quick_points_of_patterns_have_the_same_matches_beside_idle_ones() -> None:
    points = [point for point in patterns(is_quick=True) if point.series.startswith("one listens")]
    assert [point.at for point in points] == [1, 10, 100]
    assert len({point.note for point in points}) == 1
