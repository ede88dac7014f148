"""The measurements of a release as a line of ``benchmarks/history.jsonl``, and comparisons with later measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

import orjson

LOSS = 0.2


class RecordRefused(Exception):
    """A line of the history cannot be read, a version cannot be added, or runs disagree in a count."""


class Ratio(NamedTuple):
    """A ratio of two measurements of one run.

    Attributes:
        value: The ratio.
        more_is_better: Whether the ratio is a gain. Otherwise it is a cost.
    """

    value: float
    more_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The measurements of one run, by name.

    Attributes:
        counts: Numbers that do not depend on the machine.
        ratios: Ratios, which depend on the machine less than seconds do.
    """

    counts: Mapping[str, int]
    ratios: Mapping[str, Ratio]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of the history.

    Attributes:
        version: The version of the release.
        date: The date of the run, year-month-day.
        commit: The output of ``git describe`` for the sources.
        machine: The size of the machine: cores, memory in GiB, Python.
        measured: The measurements.
    """

    version: str
    date: str
    commit: str
    machine: Mapping[str, str]
    measured: Measured = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedChange:
    """A count that differs from a release on purpose.

    Attributes:
        since: The release that has another count.
        count: The new count; any other count is still an error.
        reason: The reason, as a clause after "because".
    """

    since: str
    count: int
    reason: str


def history(path: Path) -> list[Record]:
    """Return the records of a file, oldest first. If the file does not exist, return none.

    Raises:
        RecordRefused: A line is not a record.
    """
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            records.append(_record(orjson.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise RecordRefused(f"{path.name}, line {number}: no record of a release ({error!r})") from error
    return records


def _record(document: Mapping[str, object]) -> Record:
    counts, ratios = document["counts"], document["ratios"]
    machine = document["machine"]
    if not (isinstance(counts, dict) and isinstance(ratios, dict) and isinstance(machine, dict)):
        raise TypeError("counts, ratios and machine are objects")
    return Record(
        version=str(document["version"]),
        date=str(document["date"]),
        commit=str(document["commit"]),
        machine={name: str(value) for name, value in machine.items()},
        measured=Measured(
            counts={name: int(value) for name, value in counts.items()},
            ratios={name: Ratio(float(one["value"]), bool(one["more_is_better"])) for name, one in ratios.items()},
        ),
    )


def append(path: Path, record: Record) -> None:
    """Append a record. If the newest record has the same version, replace it.

    Raises:
        RecordRefused: A record of this version is followed by records of newer versions.
    """
    records = history(path)
    if any(one.version == record.version for one in records[:-1]):
        raise RecordRefused(f"{record.version} is in {path.name} already, and there are newer releases behind it")
    lines = path.read_bytes().splitlines(keepends=True) if records else []
    kept = lines[:-1] if records and records[-1].version == record.version else lines
    path.write_bytes(b"".join([*kept, _line(record)]))


def _line(record: Record) -> bytes:
    measured = record.measured
    document = {
        "version": record.version,
        "date": record.date,
        "commit": record.commit,
        "machine": record.machine,
        "counts": measured.counts,
        "ratios": {
            name: {"value": round(ratio.value, 4), "more_is_better": ratio.more_is_better}
            for name, ratio in measured.ratios.items()
        },
    }
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a comparison, as sentences.

    Attributes:
        changed: Counts that have changed.
        lost: Ratios that have lost too much.
        notes: Further remarks.
    """

    changed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether no count has changed and no ratio is lost."""
        return not self.changed and not self.lost


def loss(before: Ratio, now: Ratio) -> float:
    """Return the lost share of a gain, or of the inverse of a cost.

    The result is negative if the ratio has improved.
    """
    worse, better = (now.value, before.value) if before.more_is_better else (before.value, now.value)
    return 1 - worse / better if better else 0.0


def compare(
    before: Record,
    now: Measured,
    machine: Mapping[str, str] | None = None,
    wanted: Mapping[str, WantedChange] = MappingProxyType({}),
) -> Verdict:
    """Compare measurements with a record.

    Args:
        before: The record.
        now: The current measurements.
        machine: The size of the current machine. If it differs from the record's, the verdict has a note.
        wanted: Counts that changed on purpose, by name.
    """
    old = before.measured
    meant = {name: change for name, change in wanted.items() if change.since == before.version}
    expected = {**old.counts, **{name: change.count for name, change in meant.items()}}
    changed = [
        f"{name}: {_number(now.counts.get(name))} instead of {count:,}"
        + ("" if name in meant else f" as in {before.version}")
        for name, count in expected.items()
        if now.counts.get(name) != count
    ]
    lost = []
    for name, ratio in old.ratios.items():
        found = now.ratios.get(name)
        if found is None:
            lost.append(f"{name}: {ratio.value:.2f} in {before.version}, and not measured any more")
        elif (part := round(loss(ratio, found), 9)) >= LOSS:
            better = "more" if ratio.more_is_better else "less"
            lost.append(
                f"{name}: {found.value:.2f} after {ratio.value:.2f} in {before.version}, {part:.0%} lost "
                f"({better} is better)"
            )
    fresh = sorted((now.counts.keys() - old.counts.keys()) | (now.ratios.keys() - old.ratios.keys()))
    notes = [f"{name}: not in {before.version}" for name in fresh]
    notes += [
        f"{name}: {change.count:,} instead of {_number(old.counts.get(name))} as in {before.version}, "
        f"because {change.reason}"
        for name, change in meant.items()
    ]
    if machine is not None and dict(machine) != dict(before.machine):
        notes.insert(
            0, f"{before.version} was measured on another machine: {dict(before.machine)}, now {dict(machine)}"
        )
    return Verdict(changed=tuple(changed), lost=tuple(lost), notes=tuple(notes))


def best(runs: Sequence[Measured]) -> Measured:
    """Return the counts of all runs and the best value of each ratio, for a comparison with a release.

    Raises:
        RecordRefused: The runs do not agree in a count.
    """
    return _chosen(runs, lambda values, more_is_better: max(values) if more_is_better else min(values))


def typical(runs: Sequence[Measured]) -> Measured:
    """Return the counts of all runs and the median of each ratio, for the record of a release.

    Raises:
        RecordRefused: The runs do not agree in a count.
    """
    return _chosen(runs, lambda values, _: median(values))


def _chosen(runs: Sequence[Measured], choose: Callable[[Sequence[float], bool], float]) -> Measured:
    first = runs[0]
    if any(run.counts != first.counts for run in runs):
        raise RecordRefused(f"counts differ from run to run: {[dict(run.counts) for run in runs]}")
    ratios = {
        name: ratio._replace(value=choose([run.ratios[name].value for run in runs], ratio.more_is_better))
        for name, ratio in first.ratios.items()
    }
    return Measured(counts=first.counts, ratios=ratios)


def _number(count: int | None) -> str:
    return "nothing" if count is None else f"{count:,}"


def spreads(runs: Sequence[Measured]) -> dict[str, float]:
    """Return the spread of each ratio over several runs: the largest value over the smallest, minus one."""
    return {
        name: max(run.ratios[name].value for run in runs) / min(run.ratios[name].value for run in runs) - 1
        for name in runs[0].ratios
    }
