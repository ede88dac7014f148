"""Running a backtest with Spark in this process."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline import (
    BacktestOptions,
    BacktestResult,
    History,
    SessionOptions,
    TrialPlan,
    build_context,
    end_session,
    end_with_process,
    run_backtest,
)
from service.process import signals_held

_SHARDS_PER_CORE = 4
_LOCAL = re.compile(r"local\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkUse:
    """How Spark is used.

    Attributes:
        master: Where it runs.
        data_folder: Where it keeps scratch files; None: a folder that is removed afterwards.
        is_last: Whether this process ends afterwards, which is a second faster.
    """

    master: str = "local[*]"
    data_folder: Path | None = None
    is_last: bool = False

    @property
    def shards(self) -> int:
        """Parts that the keys are dealt out to."""
        found = _LOCAL.fullmatch(self.master)
        return _SHARDS_PER_CORE * (int(found.group(1)) if found else os.cpu_count() or 1)


def run_job(
    history: History,
    plan: TrialPlan,
    use: SparkUse,
    options: BacktestOptions | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> BacktestResult:
    """Match a history; Spark is started and stopped.

    Args:
        history: What is matched.
        plan: How.
        use: How Spark is used.
        options: The shards are those of ``use`` when absent.
        progress: Told the share that is done; what it raises ends the backtest.

    Raises:
        JavaMissing: There is no Java for Spark.
        EventFileError: A file of the history cannot be read.
        BacktestFailed: Spark gave up.
    """
    chosen = options or BacktestOptions(shards=use.shards)
    with tempfile.TemporaryDirectory(prefix="forestall-backtest-") as scratch:
        where = SessionOptions(
            data_folder=use.data_folder or Path(scratch),
            master=use.master,
            writes_archive=True,
        )
        with signals_held():  # Spark's Java process would stay behind
            context = build_context(where)
        try:
            return run_backtest(context, history, plan, chosen, progress)
        finally:
            (end_with_process if use.is_last else end_session)(context)


def with_output(options: BacktestOptions, folder: Path | None) -> BacktestOptions:
    """The options with a folder for all rows, made if it is not there."""
    if folder is None:
        return options
    folder.mkdir(parents=True, exist_ok=True)
    return replace(options, output=folder.resolve())
