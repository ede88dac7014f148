"""Runs a backtest with Spark in this process."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline import (
    BacktestOptions,
    BacktestResult,
    History,
    SessionOptions,
    build_context,
    compiling_beside,
    end_session,
    end_with_process,
    is_local,
    run_backtest,
)
from service.process import signals_held
from shards import EXERCISES, PatternKind, RoundPlan, run_exercises
from streams.compiling import JSON_LINES, CompileProgress, progress_of
from streams.readers import kind_of

_SHARDS_PER_CORE = 4
_LOCAL = re.compile(r"local\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkUse:
    """Options of Spark for a backtest.

    Attributes:
        master: Its master URL.
        data_folder: The folder for scratch files; None: a folder that is removed afterwards.
        is_last: Whether this process ends afterwards, which saves a second.
        settings: Further settings of Spark.
    """

    master: str = "local[*]"
    data_folder: Path | None = None
    is_last: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def shards(self) -> int:
        """The number of parts into which the keys are divided."""
        found = _LOCAL.fullmatch(self.master)
        return _SHARDS_PER_CORE * (int(found.group(1)) if found else os.cpu_count() or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Callbacks of a running backtest.

    Attributes:
        progress: Called with the share of the history that is done; an exception from it ends the backtest.
        compiling: Called with the progress of compiling kernels, if some are missing.
    """

    progress: Callable[[float], None] = lambda _: None
    compiling: Callable[[CompileProgress], None] = lambda _: None


def run_job(
    histories: Mapping[str, History],
    plan: RoundPlan,
    use: SparkUse,
    options: BacktestOptions | None = None,
    report: Reports | None = None,
) -> BacktestResult:
    """Match the histories of some streams; starts and stops Spark.

    Raises:
        JavaMissing: No Java is found for Spark.
        EventFileError: A file of the history cannot be read.
        BacktestFailed: Spark gave up.
    """
    chosen, said = options or BacktestOptions(shards=use.shards), report or Reports()
    with ExitStack() as ends:
        scratch = ends.enter_context(tempfile.TemporaryDirectory(prefix="forestall-backtest-"))
        where = SessionOptions(
            data_folder=use.data_folder or Path(scratch),
            master=use.master,
            writes_archive=True,
            settings=use.settings,
        )
        with (
            compiling_beside(_exercises(histories, plan, use), said.compiling),
            signals_held(),  # else a signal could leave Spark's Java process running
        ):
            context = build_context(where)
            ends.callback(end_with_process if use.is_last else end_session, context)
        return run_backtest(context, histories, plan, chosen, said.progress)


def _exercises(histories: Mapping[str, History], plan: RoundPlan, use: SparkUse) -> list[str]:
    if not is_local(use.master):
        return []  # the machines of a cluster compile their own
    needed = run_exercises(plan)
    if progress_of([PatternKind.exercise]).is_complete:  # no part of it needs to be recorded
        needed = [PatternKind.exercise, *(one for one in needed if one in EXERCISES)]
    reads_lines = any(kind_of(file) == "jsonl" for history in histories.values() for file in history.files)
    return [*needed, *([JSON_LINES] * reads_lines)]


def with_output(options: BacktestOptions, folder: Path | None) -> BacktestOptions:
    """The options with a folder for all rows, created if it does not exist."""
    if folder is None:
        return options
    folder.mkdir(parents=True, exist_ok=True)
    return replace(options, output=folder.resolve())
