"""Spark's Python daemon, which imports the pipeline's modules once for all workers forked from it.

For continuous tasks, the daemon loads the kernels as well. So a task that replaces a dead task matches at once. The
daemon may have been prepared while Java started (``prepared``). Spark starts this daemon in place of
``pyspark.daemon``, but only on local masters, because a cluster's machines lack the packages before a task begins.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from pipeline.spark.prepared import await_turn, hand_over, is_prepared
from pipeline.spark.workers import is_matcher, is_task


def main() -> None:
    """Import the modules, then fork workers until Spark ends the daemon.

    The garbage collector ignores the imported objects, because Spark runs a collection in the workers after every task.
    """
    if not is_prepared() and hand_over():
        return
    gc.disable()
    for name in ("pyspark.worker", "pipeline.sources.log_reader", *(_matcher_modules() if is_matcher() else ())):
        import_module(name)
    if is_task():
        import_module("pipeline.warmup").load_kernels()
    if is_prepared():
        await_turn()
    gc.freeze()
    gc.enable()
    import_module("pyspark.daemon").manager()


def _matcher_modules() -> Iterator[str]:
    """Yield the modules that only matching needs. Hosts of operators would otherwise be imported on first use."""
    yield from ("pipeline.runs.in_spark", "pipeline.job", "pipeline.warmup", "shards.place")
    kinds = import_module("shards.kinds")
    yield from (module.name for module in walk_packages(kinds.__path__, f"{kinds.__name__}."))


if __name__ == "__main__":
    main()
