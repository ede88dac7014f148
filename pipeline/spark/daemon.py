"""Spark's Python daemon with the pipeline in it: the workers that it forks have imported everything already.

Spark starts it instead of ``pyspark.daemon`` on local masters; on a cluster's machines the packages are there only once
a task has begun.
"""

from __future__ import annotations

import gc
from importlib import import_module
from pkgutil import walk_packages

from shards import kinds


def main() -> None:
    """Entry point: import, then fork workers until Spark says that it is enough.

    The collector of cyclic garbage does not look at what is imported, neither now nor in the workers, which Spark lets
    collect after every task.
    """
    gc.disable()
    hosts = [found.name for found in walk_packages(kinds.__path__, f"{kinds.__name__}.")]  # each loads when it is asked
    for name in ("pyspark.worker", "pipeline.backtest", "pipeline.job", "pipeline.warmup", "shards.place", *hosts):
        import_module(name)
    gc.freeze()
    gc.enable()
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
