"""``forestall doctor`` checks that everything the service needs is in place. ``warm-up`` compiles all kernels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from service.cli.output import echo_json, telling
from service.cli.waiting import LINES_REST_S, Waiting, waiting_on
from service.doctor import EVERYTHING, Finding, Verdict, examine, size_of, worst
from service.errors import KernelsNotCompiled
from streams import SystemClock
from streams.compiling import compile_kernels, kernels_folder, progress_of

_COLOURS: dict[Verdict, str] = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Also start Spark; takes a while.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the results as one JSON document.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with status 1 for warnings too.")] = False,
) -> None:
    """Check that everything the service needs is in place: Java, packages, settings, Redis, ports."""
    console = Console(highlight=False, soft_wrap=True)
    findings: list[Finding] = []
    for finding in examine(SystemClock(), deep=deep):
        findings.append(finding)
        if not json:
            _print(console, finding)
    verdict = worst(findings)
    if json:
        echo_json({"verdict": verdict, "findings": list(map(asdict, findings))})
    else:
        console.print(_summary(findings))
    raise typer.Exit(int(verdict == "problem" or (strict and verdict == "warning")))


def _print(console: Console, finding: Finding) -> None:
    colour = _COLOURS[finding.verdict]
    console.print(f"[{colour}]{finding.verdict:8}[/{colour}] {escape(f'{finding.subject}: {finding.found}')}")
    if finding.advice:
        console.print(f"         {escape(finding.advice)}")


def _summary(findings: Sequence[Finding]) -> str:
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in _COLOURS}
    return f"{counts['problem']} problems, {counts['warning']} warnings, {counts['ok']} fine"


_MIB = 1024**2


def warm_up(
    is_json: Annotated[
        bool, typer.Option("--json", help="Print progress and result as JSON lines on standard output.")
    ] = False,
) -> None:
    """Compile all kernels once for this user and machine, so that later commands start fast."""
    tell = telling(is_json=is_json)
    to_program = Waiting(lambda text: tell("compiling", text, progress=text), LINES_REST_S)
    with nullcontext(to_program) if is_json else waiting_on() as waiting:
        is_complete = compile_kernels(EVERYTHING, waiting.compiling)
    progress = progress_of(EVERYTHING)
    if not is_complete:
        raise KernelsNotCompiled(
            f"{progress.kept} of {progress.needed or 'the'} kernels are compiled and kept; see the log above for the "
            "failure; forestall doctor shows whether they can be cached"
        )
    folder = kernels_folder()
    size = size_of(folder)
    tell(
        "compiled",
        f"{progress.kept} kernels are compiled, {size / _MIB:.1f} MiB in {folder}",
        kernels=progress.kept,
        folder=str(folder),
        size_bytes=size,
    )
