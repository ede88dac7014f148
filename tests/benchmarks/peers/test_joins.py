"""The join of the peers: our kernel and our shards against all pairs, and against engines that are installed."""

from itertools import product
from random import Random

import orjson
import pytest

from benchmarks.peers.cases import CASES
from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.drivers.join_driver import by_kernel, in_shards
from benchmarks.peers.drivers.library_driver import columns_of
from benchmarks.peers.workloads import Row
from tests.benchmarks.peers.test_differential import found_by, installed, written

CASE = next(case for case in CASES if case.name == "join")
DOCUMENT = orjson.loads(CASE.texts("forestall")[0])
WINDOW_US = 60_000_000


def random_rows(rng, count):
    """Orders and payments of few keys; some lie apart by just the window, or by a millisecond less or more."""
    time_us, rows = 1_700_000_000_000_000, []
    for _ in range(count):
        time_us += rng.choice((1, 1, 20_000, 30_000, 59_999, 60_000, 60_001)) * 1_000
        rows.append(Row(rng.choice(("Order", "Payment")), time_us, f"o{rng.randrange(4)}", None))
    return rows


def dense_rows(rng, count):
    """Thousands of events, each within a second, with pairs around the window between one thousand and the next.

    Siddhi gets a thousand events at a time, and lets time pass between them.
    """
    return [
        Row(
            rng.choice(("Order", "Payment")),
            1_700_000_000_000_000 + (number // 1_000 * 59_500 + number % 1_000) * 1_000,
            f"o{rng.randrange(100)}",
            None,
        )
        for number in range(count)
    ]


def all_pairs(rows):
    """Number and digest of the pairs, by looking at all of them."""
    placed = list(enumerate(rows))
    orders, payments = ([one for one in placed if one[1].type == kind] for kind in ("Order", "Payment"))
    return digest_of(
        (0, (a, b))
        for (a, one), (b, other) in product(orders, payments)
        if one.key == other.key and abs(one.time_us - other.time_us) < WINDOW_US
    )


@pytest.mark.parametrize("way", [by_kernel, in_shards])
@pytest.mark.parametrize(("made", "count"), [(random_rows, 400), (dense_rows, 1_200)])
def test_ours_finds_all_pairs(way, made, count, tmp_path):
    rows = made(Random(3), count)
    _, _, pairs = way(DOCUMENT, columns_of(str(written(rows, tmp_path))))
    found = digest_of((0, pair) for pair in pairs)
    assert found == all_pairs(rows)
    assert found[0] > 50


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "peer", "made"), [("flink-sql", "flink", random_rows), ("siddhi", "siddhi", dense_rows)]
)
def test_a_peer_finds_all_pairs(name, peer, made, tmp_path):
    installed(peer)
    rows = made(Random(5), 3_000)
    assert found_by(name, CASE, written(rows, tmp_path), tmp_path, CASES) == all_pairs(rows)
