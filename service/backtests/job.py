"""The job of a backtest, which runs in this process, or in Spark if the history is large."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pipeline  # loads Spark lazily, for large histories only
from nfa import parse_pattern
from pipeline import BacktestOptions, BacktestResult, History, InProcess, is_small, read_history, run_backtest
from service.backtests.questions import Question
from service.process import signals_held
from service.runs.run_rules import RunRules
from shards import EXERCISES, PatternKind, RoundPlan, run_exercises
from streams import EventBatch, ForestallError
from streams.compiling import JSON_LINES, CompileProgress, compile_kernels, progress_of
from streams.readers import kind_of

_SHARDS_PER_CORE = 4
_LOCAL = re.compile(r"local\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkUse:
    """Options of Spark for a backtest.

    Attributes:
        data_folder: Folder for scratch files, or None for a temporary folder.
        is_last: Whether this process ends after the backtest. Then Spark's shutdown is skipped, which saves a second.
    """

    master: str = "local[*]"
    data_folder: Path | None = None
    is_last: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def shards(self) -> int:
        """Number of shards among which the correlation keys are divided."""
        local_match = _LOCAL.fullmatch(self.master)
        return _SHARDS_PER_CORE * (int(local_match.group(1)) if local_match else os.cpu_count() or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Callbacks of a running backtest.

    Attributes:
        progress: Called with the finished share of the work, from 0 to 1. If it raises an exception, the backtest ends.
        compiling: Called with the progress of compiling kernels.
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
    """Run a backtest over the histories of streams.

    If all histories together are small, the backtest runs in this process, otherwise in Spark.
    """
    backtest_options, reports = options or BacktestOptions(shards=use.shards), report or Reports()
    exercises = _exercises(histories, plan)
    if is_small(histories):
        compile_kernels(exercises, reports.compiling)
        return run_backtest(InProcess(), histories, plan, backtest_options, reports.progress)
    with _spark(use, exercises, reports) as context:
        return run_backtest(pipeline.InSpark(context), histories, plan, backtest_options, reports.progress)


def event_notices(question: Question, history: History) -> list[str]:
    """Return notices about names that no event of a history has.

    There are none if Spark reads the history, or if an error prevents them. The result of the backtest stays valid.
    """
    if not is_small({question.declaration.name: history}):
        return []
    try:
        patterns = [parse_pattern(tried.text) for tried in question.patterns]
        rules = RunRules(patterns=patterns, declaration=question.declaration, own=question.constraint_set)
        return list(rules.event_notices(EventBatch.joined(read_history(history))))
    except ForestallError:
        return []


@contextmanager
def _spark(use: SparkUse, exercises: Sequence[str], reports: Reports) -> Iterator[Any]:
    with ExitStack() as ends:
        scratch = ends.enter_context(tempfile.TemporaryDirectory(prefix="forestall-backtest-"))
        session_options = pipeline.SessionOptions(
            data_folder=use.data_folder or Path(scratch),
            master=use.master,
            writes_archive=True,
            settings=use.settings,
        )
        compiled_here = exercises if pipeline.is_local(use.master) else []  # executors of a cluster compile themselves
        with (
            pipeline.compiling_beside(compiled_here, reports.compiling),
            signals_held(),  # a signal in between would leave Spark's Java process running
        ):
            context = pipeline.build_context(session_options)
            ends.callback(pipeline.end_with_process if use.is_last else pipeline.end_session, context)
        yield context


def _exercises(histories: Mapping[str, History], plan: RoundPlan) -> list[str]:
    needed = run_exercises(plan)
    if progress_of([PatternKind.exercise]).is_complete:  # the cache is complete, so matchers need no recording
        needed = [PatternKind.exercise, *(exercise for exercise in needed if exercise in EXERCISES)]
    reads_lines = any(kind_of(file) == "jsonl" for history in histories.values() for file in history.files)
    return [*needed, *([JSON_LINES] * reads_lines)]


def with_output(options: BacktestOptions, folder: Path | None) -> BacktestOptions:
    """Create a folder for files of result rows, and return the options with this folder.

    If ``folder`` is None, return the options unchanged.
    """
    if folder is None:
        return options
    folder.mkdir(parents=True, exist_ok=True)
    return replace(options, output=folder.resolve())
