"""``forestall backtest --project``: a whole project over past events, on all cores."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline import BacktestOptions, ChainInput, ChainResult
from service.backtests.job import Reports, SparkUse, run_project_job, with_output
from service.cli.inputs import progress_bar
from service.cli.run import files_of, print_results
from service.cli.waiting import waiting_in
from service.errors import FileUnreadable
from service.projects import LocalProject, read_project
from service.projects.errors import ProjectRefused
from service.settings import load_settings
from shards import ChainPlan
from shards.kinds.joins import merged_stream
from streams.readers import reading_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectBacktest:
    """The options of a project's backtest.

    Attributes:
        folder: Folder of the project.
        events: ``[STREAM=]FILE`` of each stream.
        limit: The most results of each list that are printed.
        output: New or empty folder for all rows; None: none.
        cores: Number of cores that Spark uses; None: all.
        is_json: Whether one JSON object is printed.
    """

    folder: Path
    events: Sequence[str]
    limit: int
    output: Path | None
    cores: int | None
    is_json: bool

    def run(self) -> None:
        """Match the project, and print the results.

        Raises:
            ProjectRefused: A document is not valid, or the files do not belong to the project's streams.
        """
        project = LocalProject.of(read_project(self.folder), self.folder)
        project.check()
        _check_rounds(project)
        inputs = _inputs(files_of(self.events, project).items(), project)
        result = self._result(inputs, project)
        plan = project.plan()
        found = plan.results((kind, body) for kind, bodies in result.rows.items() for body in bodies)
        numbers = {**plan.numbers(result.counts), "dead_letters": len(found["dead_letters"])}
        stats = {"events": result.events, "rounds": result.rounds}
        print_results(found, project.derived(), numbers, stats, is_json=self.is_json)

    def _result(self, inputs: Sequence[ChainInput], project: LocalProject) -> ChainResult:
        spark = SparkUse(master=f"local[{self.cores or '*'}]", is_last=True, settings=load_settings().spark.conf)
        options = with_output(BacktestOptions(shards=spark.shards, limit=self.limit), self.output)
        with progress_bar("backtest") as (progress, task):
            report = Reports(
                progress=lambda share: progress.update(task, description="backtest", completed=share),
                compiling=waiting_in(progress, task, is_shown=sys.stderr.isatty()).compiling,
            )
            return run_project_job(inputs, project, spark, options, report)


def _check_rounds(project: LocalProject) -> None:
    """Refuse joins whose inputs would come in different rounds of Spark.

    Raises:
        ProjectRefused: One input of a join has a key that its stream does not declare, and another input has a declared
            key.
    """
    divided = ChainPlan(tuple(project.plan().records())).divided
    if divided:
        names = ", ".join(name.removesuffix(merged_stream("")) for name in divided)
        reason = (
            f"the inputs of {names} come in different rounds of the backtest: one has a key that its stream does not "
            "declare; declare it under keys of the stream, or use forestall run"
        )
        raise ProjectRefused.of([reason])


def _inputs(files: Iterable[tuple[str, Path]], project: LocalProject) -> list[ChainInput]:
    """The events of each stream as Spark reads them.

    Raises:
        FileUnreadable: A file does not exist.
    """
    found = []
    for name, path in files:
        if not path.is_file():
            raise FileUnreadable(f"{path} is not a file; name one event file for each stream", file=str(path))
        options, routes = reading_of(project.stream(name).declaration), project.plan().routes(name)
        found.append(ChainInput(stream=name, file=path.resolve(), options=options, routes=routes))
    return found
