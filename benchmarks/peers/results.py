"""Results of runs: saved as JSON lines as soon as they are available, compared, and shown as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import orjson

Status: TypeAlias = Literal["done", "failed", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One finished run.

    Attributes:
        case: The name of the case.
        system: The name of the engine.
        source: ``memory`` or ``file``.
        threads: The number of matching threads.
        variant: A further difference of the mode.
        events: The number of events.
        status: ``failed`` if the run did not finish, ``unavailable`` if the engine could not be set up.
        reason: The reason why there is no result.
        version: The version of the engine.
        start_up_s: The time from the start of the process until the engine is ready.
        warm_up_s: The duration of the warm-up before the clock started.
        seconds: The measured time without start-up, or 0 if the run was mostly start-up.
        cpu_s: The CPU seconds of all threads in the measured time, or 0 if the driver does not report them.
        whole_s: The time from the start of the process to the end of the measurement, without the warm-up.
        matches: The number of matches.
        digest: The digest of the matches, independent of their order.
        peak_bytes: The peak memory of the process and its descendants.
        lines: The number of lines of the query.
        pinned: Whether the run was pinned to one core.
    """

    case: str
    system: str
    source: str
    threads: int
    variant: str
    events: int
    status: Status = "done"
    reason: str = ""
    version: str = ""
    start_up_s: float = 0.0
    warm_up_s: float = 0.0
    seconds: float = 0.0
    cpu_s: float = 0.0
    whole_s: float = 0.0
    matches: int = 0
    digest: str = ""
    peak_bytes: int = 0
    lines: int = 0
    pinned: bool = False

    @property
    def run(self) -> tuple[str, str, str, int, str, int]:
        """The identity of the run."""
        return self.case, self.system, self.source, self.threads, self.variant, self.events

    @property
    def label(self) -> str:
        """The engine's name in rows of tables."""
        threads = f", {self.threads} threads" if self.threads > 1 else ""
        return f"{self.system}{', ' + self.variant if self.variant else ''}{threads}"

    @property
    def rate(self) -> float:
        """Events/s without start-up."""
        return self.events / self.seconds if self.seconds else 0.0

    @property
    def cpu_rate(self) -> float:
        """Events per CPU second without start-up. Other load on the machine changes this rate little."""
        return self.events / self.cpu_s if self.cpu_s else 0.0

    @property
    def cold_rate(self) -> float:
        """Events/s with start-up and without warm-up."""
        return self.events / self.whole_s if self.whole_s else 0.0


def kept_in(path: Path) -> list[Record]:
    """Return the records of a file, the last record of each run. If the file does not exist, return none."""
    if not path.exists():
        return []
    found = {record.run: record for record in (Record(**orjson.loads(line)) for line in path.read_bytes().splitlines())}
    return list(found.values())


def keep(path: Path, record: Record) -> None:
    """Append a record to a file at once, so that an interruption loses none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(orjson.dumps(asdict(record), option=orjson.OPT_APPEND_NEWLINE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of comparing answers.

    Attributes:
        disagreements: Unexpected differences, a sentence each.
        notes: Known differences that occurred: (case, engine, key of the difference).
        alone: Runs whose answers could not be compared with others.
    """

    disagreements: tuple[str, ...]
    notes: tuple[tuple[str, str, str], ...]
    alone: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A known difference: its key, and the resulting number of matches by number of events."""

    difference: str
    matches: Mapping[int, int]

    def covers(self, record: Record) -> bool:
        """Return whether the difference explains the answer of a run."""
        return self.matches.get(record.events, record.matches) == record.matches


def judge(
    records: Iterable[Record],
    expected: Mapping[str, Mapping[int, int]],
    allowed: Mapping[tuple[str, str], Allowance],
) -> Judgement:
    """Compare answers. All runs of a case with the same number of events must bind the same events.

    Args:
        records: Runs; unfinished runs are skipped.
        expected: Agreed numbers of matches by case and number of events.
        allowed: Known differences by case and engine.
    """
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record.status == "done":
            groups.setdefault((record.case, record.events), []).append(record)
    wrong: list[str] = []
    notes: dict[tuple[str, str, str], None] = {}
    alone: list[str] = []
    for (case, events), group in groups.items():
        ours = [record for record in group if record.system == "library"] or group
        right = ours[0]
        agreed = expected.get(case, {}).get(events)
        if agreed is not None and right.matches != agreed:
            wrong.append(
                f"{case}, {events:,} events: {right.label} finds {right.matches:,} matches instead of {agreed:,}"
            )
        if len({record.system for record in group}) == 1:
            alone.append(f"{case}, {events:,} events: {right.label}")
        for record in group:
            if record.digest == right.digest and record.matches == right.matches:
                continue
            allowance = allowed.get((case, record.system))
            if allowance is not None and allowance.covers(record):
                notes[(case, record.system, allowance.difference)] = None
            else:
                wrong.append(
                    f"{case}, {events:,} events: {record.label} from {record.source} finds {record.matches:,} matches "
                    f"({record.digest}), {right.label} {right.matches:,} ({right.digest})"
                )
    return Judgement(disagreements=tuple(wrong), notes=tuple(notes), alone=tuple(alone))


def table(records: Sequence[Record], titles: Mapping[str, str]) -> str:
    """Return the records as Markdown, with a table for each case."""
    parts = []
    for case, title in titles.items():
        own = [record for record in records if record.case == case]
        if own:
            parts.append(f"### {case}\n\n{title}\n\n{_rows(own)}")
    return "\n".join(parts)


_COLUMNS = (
    "engine",
    "events",
    "in memory, events/s",
    "per CPU second",
    "whole job, events/s",
    "with start-up",
    "start-up, s",
    "peak, MB",
    "lines",
    "matches",
)


def _rows(records: Sequence[Record]) -> str:
    rows: dict[tuple[str, int], dict[str, Record]] = {}
    for record in records:
        rows.setdefault((record.label, record.events), {})[record.source] = record
    lines = [_COLUMNS, ("---",) * len(_COLUMNS)]
    lines += [_row(label, events, by_source) for (label, events), by_source in rows.items()]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _row(label: str, events: int, by_source: Mapping[str, Record]) -> tuple[str, ...]:
    done = {source: record for source, record in by_source.items() if record.status == "done"}
    if not done:
        record = next(iter(by_source.values()))
        told = f"{record.status}: {record.reason}".replace("|", "/")
        return (label, f"{events:,}", told, *[""] * (len(_COLUMNS) - 3))
    one = next(iter(done.values()))
    return (
        label,
        f"{events:,}",
        _number(done["memory"].rate) if "memory" in done else "",
        _number(done["memory"].cpu_rate) if "memory" in done and done["memory"].cpu_s else "",
        _number(done["file"].rate) if "file" in done else "",
        _number(done["file"].cold_rate) if "file" in done else "",
        f"{max(record.start_up_s for record in done.values()):.1f}",
        f"{max(record.peak_bytes for record in done.values()) / 1e6:,.0f}",
        str(one.lines),
        f"{one.matches:,}",
    )


def _number(rate: float) -> str:
    """Return events/s to about three digits, or "-" if the measured time was mostly start-up."""
    if not rate:
        return "-"
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:,.1f} k"
