"""Histograms of latencies: counted by bound, added up over processes, and reported as metrics."""

import pytest

from service.stores import BOUNDS_S, LatencyStore

pytestmark = pytest.mark.redis


def test_latencies_are_counted_up_to_each_bound(client):
    first, second = LatencyStore(client), LatencyStore(client)
    first.note("alert", [5_000, 10_000, 10_001, -3])
    second.note("alert", iter([7_200_000_000]))
    second.note("delivery", [])
    found = first.read("alert")
    assert len(found.cumulative) == len(BOUNDS_S) + 1
    assert (found.cumulative[0], found.cumulative[1], found.cumulative[-2:]) == (3, 4, (4, 5))
    assert found.sum_s == pytest.approx(7_200.025_001)
    assert first.read("delivery").cumulative == (0,) * (len(BOUNDS_S) + 1)
