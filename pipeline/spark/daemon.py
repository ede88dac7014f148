"""Spark's Python daemon with the pipeline in it: the workers that it forks have all imports done already.

Spark starts it instead of ``pyspark.daemon`` on local masters; on a cluster's machines the packages only exist once a
task has begun.
"""

from __future__ import annotations

import gc
from importlib import import_module
from pkgutil import walk_packages

from shards import kinds


def main() -> None:
    """Entry point: import, then fork workers until Spark ends the daemon.

    The garbage collector ignores the imported objects, here and in the workers, where Spark collects after every task.
    """
    gc.disable()
    hosts = [found.name for found in walk_packages(kinds.__path__, f"{kinds.__name__}.")]  # these load on first use
    for name in ("pyspark.worker", "pipeline.backtest", "pipeline.job", "pipeline.warmup", "shards.place", *hosts):
        import_module(name)
    gc.freeze()
    gc.enable()
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
