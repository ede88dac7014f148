"""``forestall test``: the tests of a project."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer

from service.cli.output import printable, standard_error, tell_notices
from service.cli.waiting import waiting_on
from service.errors import FileUnreadable, ProjectRefused
from service.projects import (
    Case,
    Document,
    LocalProject,
    Outcome,
    cases_of,
    expectation,
    outcome_of,
    read_project,
    run_case,
    update_tests,
)
from streams import EventBatch
from streams.compiling import compile_kernels


def test(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the project.")],
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write the results to, as JUnit XML.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Update the expected results of failing tests, after asking.")
    ] = False,
) -> None:
    """Run the tests of a project: documents of the kind test. Exit status 1: one fails."""
    documents = read_project(folder)
    project = LocalProject.of(documents, folder)
    cases = cases_of(documents, project)
    if not cases:
        raise ProjectRefused.of([f"{folder} has no documents of the kind test"])
    tell_notices(project.notices)
    with waiting_on() as waiting:
        compile_kernels(project.exercises(), waiting.compiling)
    outcomes: list[Outcome] = []
    expectations: list[tuple[Document, dict[str, list[str]]]] = []
    unkeyed: dict[str, Sequence[str]] = {}
    for case in cases:
        begun = time.perf_counter()
        case_run = run_case(case, project)
        outcome = outcome_of(case, case_run, time.perf_counter() - begun)
        outcomes.append(outcome)
        _tell(outcome)
        unkeyed = {**case_run.unkeyed, **unkeyed}
        if not outcome.is_right:
            tell_notices({name: [sentence] for name, sentence in case_run.losses.items()})
        is_updatable = not outcome.is_right and not outcome.suspensions  # no test expects a suspension
        if update and is_updatable and typer.confirm("Write these results into the test?", err=True):
            expectations.append((case.document, expectation(case_run.lines, case)))
    for file in update_tests(expectations):
        standard_error.say(f"{file} is updated")
    tell_notices(unkeyed)
    tell_notices(project.event_notices(_events_of(cases), is_example=True))
    if junit is not None:
        _write_junit(junit, outcomes)
    failed = sum(not outcome.is_right for outcome in outcomes)
    standard_error.print(f"{len(outcomes) - failed} passed, {failed} failed")
    raise typer.Exit(bool(failed))


def _events_of(cases: Sequence[Case]) -> dict[str, list[EventBatch]]:
    batches: dict[str, list[EventBatch]] = {}
    for case in cases:
        for name, batch in case.events.items():
            batches.setdefault(name, []).append(batch)
    return batches


def _tell(outcome: Outcome) -> None:
    case = outcome.case
    typer.echo(f"{'passed' if outcome.is_right else 'FAILED'}  {printable(case.name)}")
    if not outcome.is_right:
        typer.echo(f"  at {printable(case.document.place())}")
        for line in outcome.side_by_side():
            typer.echo(printable(f"  {line}"))


def _write_junit(path: Path, outcomes: list[Outcome]) -> None:
    failed = sum(not outcome.is_right for outcome in outcomes)
    suite = ElementTree.Element("testsuite", name="forestall", tests=str(len(outcomes)), failures=str(failed))
    for outcome in outcomes:
        case = outcome.case
        element = ElementTree.SubElement(
            suite, "testcase", classname=",".join(case.events), name=case.name, time=f"{outcome.seconds:.3f}"
        )
        if not outcome.is_right:
            failure = ElementTree.SubElement(element, "failure", message=f"{case.document.place()}: other results")
            failure.text = printable_lines(outcome)
    try:
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be written: {error.strerror}") from error


def printable_lines(outcome: Outcome) -> str:
    """Return the expected and the actual lines of a test, without characters that XML does not allow."""
    return "\n".join(printable(line) for line in outcome.side_by_side())
