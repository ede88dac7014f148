"""Spark's Python daemon with the pipeline in it: the workers that it forks have their imports done already.

That of continuous tasks has also loaded the kernels, so a task that replaces a dead one can match at once; it may have
been prepared while Java started (``prepared``).
Spark starts it instead of ``pyspark.daemon`` on local masters; on a cluster's machines the packages only exist once a
task has begun.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from pipeline.spark.prepared import await_turn, is_passed_on, is_prepared
from pipeline.spark.workers import is_matcher, is_task


def main() -> None:
    """Entry point: import, then fork workers until Spark ends the daemon.

    The garbage collector ignores the imported objects, here and in the workers, where Spark collects after every task.
    """
    if not is_prepared() and is_passed_on():
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
    """Modules that matching needs and reading does not; hosts of operators load on first use."""
    yield from ("pipeline.runs.in_spark", "pipeline.job", "pipeline.warmup", "shards.place")
    kinds = import_module("shards.kinds")
    yield from (module.name for module in walk_packages(kinds.__path__, f"{kinds.__name__}."))


if __name__ == "__main__":
    main()
