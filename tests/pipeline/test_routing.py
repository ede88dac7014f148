from collections import Counter

import pytest

from pipeline.routing import routes, spark_hash
from streams import MAX_SHARDS


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 5, 6, 7, 8, 16])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_every_partition_gets_its_even_share(partitions, rounds):
    shares = Counter(spark_hash(route) % partitions for route in routes(partitions * rounds))
    assert shares == dict.fromkeys(range(partitions), rounds)


def test_a_route_is_one_shard_and_stays_when_shards_are_added():
    assert len(set(routes(MAX_SHARDS))) == MAX_SHARDS
    assert routes(64)[:8] == routes(8)


def test_routes_are_part_of_a_checkpoint_and_never_change():
    assert routes(8) == [2122, 3179, 1346, 1180, 7468, 3429, 296, 1133]
