"""The figures of the experiments as plain values. They are stored together with the plots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one mode on one stream.

    Attributes:
        sweep: The query and the quantity that varies.
        ratio: The value of this quantity, as a label.
        events: The length of the stream.
        seed: The seed of the stream.
        mode: The name of the mode.
        peak: The peak of bound events in the replay.
        matches: The number of matches in the replay.
        scan_probes: The number of scan probes in the replay.
        typed_probes: The number of typed probes in the replay.
        binds: The number of binds in the replay.
        engine_peak: The peak of bound events in the matcher. Like the attributes below, None if not run.
        state_bytes: The peak size of the state.
        pattern_bytes: The peak size without the bytes that each open trace takes in any mode.
        checkpoint_bytes: The mean size of a checkpoint.
        guard_builds: The number of rows of the monitor that were built.
        guard_steps: The number of events that changed the state of a monitor.
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
    """The time of one mode in paired runs.

    Attributes:
        sweep: The query and the quantity that varies.
        ratio: The value of this quantity.
        mode: The name of the mode.
        nanoseconds: The median time per event.
        ratio_to_first: The ratio of the mode's time to the first mode's time, the median over the rounds.
        rounds: The number of rounds.
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
    """All figures. ``disagreements`` names the results that must be equal and differ."""

    rows: list[Row] = field(default_factory=list)
    scale: list[Row] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    early: list[Early] = field(default_factory=list)
    monitor: dict[str, int] = field(default_factory=dict)
    setting: dict[str, str] = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)

    def keep_newest(self) -> None:
        """Keep only the newest figure of each subject."""
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
    """Return the rows of one cell and mode, by seed."""
    found = [row for row in rows if (row.sweep, row.ratio, row.mode) == (sweep, ratio, mode)]
    return sorted(found, key=lambda row: row.seed)


def change(base: list[Row], rows: list[Row], name: str) -> float | None:
    """Return the difference of a column from R-CEP's in percent, the mean over the seeds.

    If not measured, return None.
    """
    pairs = [(getattr(one, name), getattr(other, name)) for one, other in zip(base, rows, strict=False)]
    known = [(one, other) for one, other in pairs if one and other is not None]
    return 100 * mean(other / one - 1 for one, other in known) if known else None
