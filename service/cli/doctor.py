"""``forestall doctor``: whether everything the service needs is in place, and what to do if it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from service.cli.output import echo_json
from service.doctor import Finding, Verdict, examine, worst
from streams import SystemClock

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
