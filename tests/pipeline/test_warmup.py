import os
from pathlib import Path

import pytest

from pipeline.warmup import warm_up

pytestmark = pytest.mark.spark


def test_kernels_are_compiled_into_the_shared_cache(spark):
    warm_up(spark)
    cache = Path(spark.conf.get("spark.executorEnv.NUMBA_CACHE_DIR"))
    assert cache == Path(os.environ["NUMBA_CACHE_DIR"])
    assert list(cache.glob("**/matching.match_batch-*.nbc"))
