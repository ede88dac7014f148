"""A few of the hostile joins; ``scripts/bench hostile_joins`` runs thousands, in processes whose memory is bounded."""

import pytest

from benchmarks.hostile_joins import case


@pytest.mark.parametrize("seed", range(10_000, 10_016))
def test_a_hostile_join_is_refused_or_runs_within_its_limits(seed):
    found = case(seed)
    assert found.fault == ""
    assert found.code or found.results <= 220_000 + 21 * found.events
