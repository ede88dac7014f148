"""The report after all runs: a table, the comparisons of answers, and ratios. The module ``plots`` draws the plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.axes import Axis
from benchmarks.peers.cases import Case
from benchmarks.peers.differences import DIFFERENCES
from benchmarks.peers.plots import draw_all, draw_axes
from benchmarks.peers.results import Allowance, Judgement, Record, table
from benchmarks.peers.systems import SYSTEMS

OURS = ("library", "forestall match", "forestall backtest")


def allowances(cases: Sequence[Case]) -> dict[tuple[str, str], Allowance]:
    """Return the known differences by case and engine."""
    found = {}
    for case in cases:
        for system in SYSTEMS:
            wording = case.wording(system.wording)
            if wording.differs:
                found[(case.name, system.name)] = Allowance(difference=wording.differs, matches=wording.matches)
    return found


def write_report(
    records: Sequence[Record], judgement: Judgement, cases: Sequence[Case], folder: Path, axes: Sequence[Axis] = ()
) -> str:
    """Write ``table.md`` and plots, or ``scaling.md`` and its plot if there are ``axes``. Return the text."""
    folder.mkdir(parents=True, exist_ok=True)
    told = [case for case in cases if any(record.case == case.name for record in records)]
    titles = {case.name: f"{case.title} ({case.workload})" for case in told}
    parts = [table(records, titles), _cannot(told, records), _answers(judgement), _ratios(records), _versions(records)]
    text = "\n".join(part for part in parts if part)
    (folder / ("scaling.md" if axes else "table.md")).write_text(text, encoding="utf-8")
    if axes:
        draw_axes(records, axes, folder / "scaling.png")
    else:
        draw_all(records, folder)
    return f"{text}\nThis table, the raw results and the pictures are in {folder}"


def _cannot(cases: Sequence[Case], records: Sequence[Record]) -> str:
    """Return a list of the cases that engines do not support, with the reasons."""
    names = {record.system for record in records}
    lines = [
        f"- {case.name}, {system.name}: {reason}"
        for case in cases
        for system in SYSTEMS
        if system.name in names and (reason := case.wording(system.wording).cannot)
    ]
    return "### Not stated\n\n" + "\n".join(lines) + "\n" if lines else ""


def _answers(judgement: Judgement) -> str:
    lines = [f"- DISAGREEMENT {line}" for line in judgement.disagreements]
    lines += [f"- {case}, {system}: {DIFFERENCES[key].note}" for case, system, key in judgement.notes]
    lines += [f"- compared with nothing: {line}" for line in judgement.alone]
    if not judgement.disagreements:
        lines.insert(0, "- all other answers are equal: the same events in the same matches")
    return "### Answers\n\n" + "\n".join(lines) + "\n"


def _ratios(records: Sequence[Record]) -> str:
    """Return the ratios of our rates to the peers' rates, for the same events."""
    lines = []
    for case in dict.fromkeys(record.case for record in records):
        done = [record for record in records if record.case == case and record.status == "done"]
        lines += [line for line in (_best(case, done), _per_cpu(case, done), *_whole(case, done)) if line]
    return "### Ratios\n\n" + "\n".join(lines) + "\n" if lines else ""


def _best(case: str, done: Sequence[Record]) -> str:
    """Return the library's ratio to the fastest peer with one thread, in the peer's fastest mode."""
    ours = [record for record in done if record.system == "library"]
    peers = [record for record in done if record.system not in OURS and record.threads == 1 and record.rate]
    if not ours or not peers:
        return ""
    right, best = max(ours, key=lambda one: one.events), max(peers, key=lambda one: one.rate)
    return (
        f"- {case}: library {right.rate / best.rate:.1f} x {best.label} ({best.source}), the fastest peer of one thread"
    )


def _per_cpu(case: str, done: Sequence[Record]) -> str:
    """Return the library's ratio per CPU second of all threads, to every peer whose driver reports CPU time."""
    told = [one for one in done if one.source == "memory" and one.cpu_rate]
    ours = [one for one in told if one.system == "library" and not one.variant]
    peers = [one for one in told if one.system not in OURS]
    if not ours or not peers:
        return ""
    right = max(ours, key=lambda one: one.events)
    ratios = (f"{right.cpu_rate / one.cpu_rate:.1f} x {one.label}" for one in peers)
    return f"- {case}, per CPU second in memory: library {', '.join(ratios)}"


def _whole(case: str, done: Sequence[Record]) -> list[str]:
    """Return the ratios of whole jobs to those of Flink CEP, after a warm-up and from a cold start."""
    lines = []
    for name, threads in (("forestall match", 1), ("forestall backtest", 2)):
        ours = [one for one in done if (one.system, one.source) == (name, "file")]
        theirs = [one for one in done if (one.system, one.source, one.threads) == ("flink-cep", "file", threads)]
        if ours and theirs:
            warm, cold = ours[0].rate / theirs[0].rate, ours[0].cold_rate / theirs[0].cold_rate
            told = f"{warm:.1f} x {theirs[0].label}, whole job; " if warm else "start-up hides the job; "
            lines.append(f"- {case}: {name} {told}{cold:.1f} x with start-up")
    return lines


def _versions(records: Sequence[Record]) -> str:
    versions = sorted({f"{record.system} {record.version}" for record in records if record.version})
    pinned = " Runs of one thread were held to one core." if any(record.pinned for record in records) else ""
    return f"{', '.join(versions)}.{pinned}\n" if versions else ""
