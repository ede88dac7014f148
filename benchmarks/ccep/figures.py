"""The figures of the experiments, as plain values that are kept beside the plots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One mode on one stream.

    Attributes:
        sweep: The query and what varies.
        ratio: The value of what varies, as a label.
        events: Length of the stream.
        seed: Seed of the stream.
        mode: Name of the mode.
        peak: Peak of bound events, replayed.
        matches: Replayed.
        scan_probes: Replayed.
        typed_probes: Replayed.
        binds: Replayed.
        engine_peak: Peak of bound events in the matcher; None where it was not run, like all below.
        state_bytes: Peak.
        pattern_bytes: Peak, without the bytes that each open trace takes in any mode.
        checkpoint_bytes: Mean.
        guard_builds: Rows of the monitor that were built.
        guard_steps: Events that moved a monitor.
    """

    sweep: str
    ratio: str
    events: int
    seed: int
    mode: str
    peak: int
    matches: int
    scan_probes: int
    typed_probes: int
    binds: int
    engine_peak: int | None = None
    state_bytes: int | None = None
    pattern_bytes: int | None = None
    checkpoint_bytes: int | None = None
    guard_builds: int | None = None
    guard_steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One mode's time in paired runs.

    Attributes:
        sweep: The query and what varies.
        ratio: The value of what varies.
        mode: Name of the mode.
        nanoseconds: Per event, median.
        ratio_to_first: Median over the rounds of the ratio of its time to the first mode's.
        rounds: Number of rounds.
    """

    sweep: str
    ratio: str
    mode: str
    nanoseconds: float
    ratio_to_first: float
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """The delay until an absence is certain, in one mode."""

    pattern: str
    mode: str
    alerts: int
    events: float
    expected: float
    wanted: float | None


@dataclass(slots=True, kw_only=True)
class Figures:
    """All figures; ``disagreements`` names results that must be equal and are not."""

    rows: list[Row] = field(default_factory=list)
    scale: list[Row] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    early: list[Early] = field(default_factory=list)
    monitor: dict[str, int] = field(default_factory=dict)
    setting: dict[str, str] = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)

    def keep_newest(self) -> None:
        """Keep only the last of several figures of the same subject."""
        self.rows = list({(one.sweep, one.ratio, one.seed, one.mode): one for one in self.rows}.values())
        self.scale = list({(one.sweep, one.ratio, one.seed, one.mode): one for one in self.scale}.values())
        self.timings = list({(one.sweep, one.ratio, one.mode): one for one in self.timings}.values())
        self.early = list({(one.pattern, one.mode): one for one in self.early}.values())

    def write(self, path: Path) -> None:
        """Write the figures as JSON."""
        path.write_bytes(orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2) + b"\n")

    @classmethod
    def read(cls, path: Path) -> Figures:
        """Read the figures that ``write`` wrote."""
        found: dict[str, Any] = orjson.loads(path.read_bytes())
        return cls(
            rows=[Row(**row) for row in found["rows"]],
            scale=[Row(**row) for row in found["scale"]],
            timings=[Timing(**row) for row in found["timings"]],
            early=[Early(**row) for row in found["early"]],
            monitor=found["monitor"],
            setting=found["setting"],
            disagreements=found["disagreements"],
        )


def select(rows: Iterable[Row], sweep: str, ratio: str, mode: str) -> list[Row]:
    """The rows of one cell and mode, by seed."""
    found = [row for row in rows if (row.sweep, row.ratio, row.mode) == (sweep, ratio, mode)]
    return sorted(found, key=lambda row: row.seed)


def change(base: list[Row], rows: list[Row], name: str) -> float | None:
    """Difference of a column from R-CEP's in percent, the mean over the seeds; None: not measured."""
    pairs = [(getattr(one, name), getattr(other, name)) for one, other in zip(base, rows, strict=False)]
    known = [(one, other) for one, other in pairs if one and other is not None]
    return 100 * mean(other / one - 1 for one, other in known) if known else None
