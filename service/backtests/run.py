"""The process of one backtest (``python -m service.backtests.run ID``), which stores progress and result in Redis."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pipeline import BacktestOptions, BacktestResult, History, history_files
from service.backtests.job import Reports, SparkUse, event_notices, run_job
from service.backtests.plans import plan_of
from service.backtests.questions import Question
from service.backtests.reports import alerts_of, summary_document
from service.backtests.sources import LogRange, allowed_path, export_log, require_inside, tables_before
from service.process import Stopped, run_process
from service.runtime import Stores, open_stores
from service.settings import Settings
from service.stores import Backtest
from streams import Clock, ForestallError, StreamDeclaration, SystemClock, TableOn
from streams.readers import ReaderOptions, reading_of

_NICENESS = 10  # gives priority to live matching
_REPORTED_EVERY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRun:
    """Runs a backtest that the worker has started."""

    stores: Stores
    settings: Settings
    clock: Clock

    def run(self, backtest_id: str) -> None:
        store = self.stores.backtests
        backtest = store.get(backtest_id)
        try:
            with tempfile.TemporaryDirectory(prefix="forestall-history-") as scratch:
                result, warnings = self._result(backtest, Path(scratch))
        except ForestallError as error:
            failure = {"code": error.code, "detail": error.message}
            now_us = self.clock.now_us()
            store.advance(backtest_id, ("running",), status="failed", error=failure, finished_us=now_us)
            return
        alerts = alerts_of(result, self.settings.limits.backtest_alerts_kept)
        kept = {"alerts_kept": len(alerts), "warnings": warnings}
        store.keep_result(backtest_id, {**summary_document(result), **kept}, alerts)
        store.advance(backtest_id, ("running",), status="done", progress=1.0, finished_us=self.clock.now_us())

    def _result(self, backtest: Backtest, scratch: Path) -> tuple[BacktestResult, list[str]]:
        """Run a backtest, and return its result with warnings about names that no event has."""
        question = Question.from_document(backtest.question)
        if backtest.path is None:
            history, question = self._of_log(backtest, question, scratch)
        else:
            history = self._of_files(backtest.path, question.declaration)
        for table in question.tables:
            self.stores.tables.files.path(table["digest"])
        use = SparkUse(
            master=self.settings.spark_master, data_folder=self.settings.data_dir, settings=self.settings.spark.conf
        )
        shards = use.shards
        # A file of the log has the events of one shard. If tables change, each file is one part of the backtest.
        # Otherwise each file is divided into a whole number of parts.
        if backtest.path is None:
            parts = len(history.files)
            shards = parts if history.changes else -(-shards // parts) * parts
        options = BacktestOptions(shards=shards, limit=self.settings.limits.backtest_alerts_kept)
        histories = {question.declaration.name: history}
        reports = Reports(progress=_ProgressReporter(self.stores, backtest.id))
        result = run_job(histories, plan_of(question), use, options, reports)
        return result, event_notices(question, history)

    def _of_log(self, backtest: Backtest, question: Question, scratch: Path) -> tuple[History, Question]:
        """Export a stream's events from the log to files in ``scratch``, and return their history and the question.

        The question gets the tables as they were before the first event, and the later changes of these tables.
        """
        names = frozenset(str(table["name"]) for table in question.tables)
        log_range = LogRange(
            stream=backtest.stream,
            now_us=self.clock.now_us(),
            since_ms=self.stores.registry.since_ms(backtest.stream),
            tables=names,
        )
        exported = export_log(self.stores.log, scratch, log_range)
        for record in exported.changes:
            if isinstance(record, TableOn):
                self.stores.tables.files.path(record.table.digest)
        past_tables = tables_before(self.stores.tables, names, exported.changes)
        history = History(
            files=exported.files, options=ReaderOptions(duplicates="keep"), is_ordered=True, changes=exported.places
        )
        return history, replace(question, tables=tuple(past_tables.to_json()), changes=exported.changes)

    def _of_files(self, path: str, declaration: StreamDeclaration) -> History:
        files = history_files(allowed_path(self.settings.backtest_dir, path))
        require_inside(self.settings.backtest_dir, files)
        is_ordered = declaration.lateness is not None
        options = replace(reading_of(declaration), duplicates="keep")
        return History(files=files, options=options, declaration=declaration, is_ordered=is_ordered)


class _ProgressReporter:
    """Stores the progress of a backtest in Redis. Ends the process if the backtest was cancelled or removed."""

    def __init__(self, stores: Stores, backtest_id: str) -> None:
        self._stores = stores
        self._id = backtest_id
        self._due_s = time.monotonic()

    def __call__(self, share: float) -> None:
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + _REPORTED_EVERY_S
        if self._stores.backtests.advance(self._id, ("running",), progress=round(share, 3)) is None:
            raise Stopped


def _work(backtest_id: str, settings: Settings) -> None:
    os.nice(_NICENESS)
    with open_stores(settings) as stores:
        BacktestRun(stores=stores, settings=settings, clock=SystemClock()).run(backtest_id)


if __name__ == "__main__":
    sys.exit(run_process("backtest", partial(_work, sys.argv[1])))
