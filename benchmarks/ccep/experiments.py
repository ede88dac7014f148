"""The experiments as a list of small tasks, so that a progress bar can show the progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from benchmarks.ccep.early import ABSENCES, Absence, expected, measured
from benchmarks.ccep.engine import held_by, matcher_for, paired
from benchmarks.ccep.figures import Early, Figures, Row, Timing
from benchmarks.ccep.knowledge import ConstraintOracle, LanguageOracle, extracted
from benchmarks.ccep.modes import R_CEP, Mode
from benchmarks.ccep.occupancy import Replayed, live_row, replayed, states_of
from benchmarks.ccep.queries import QUERIES, Cell, cell_of, sweep_cells, table_cells
from benchmarks.ccep.stream import TYPES, OrderStream, order_stream
from nfa import Prune, build_query, parse_pattern
from streams import EventBatch
from workflows import OrderSettings

SCALE_CELLS: Mapping[tuple[str, tuple[int, ...]], int] = {
    ("Q1 early", (90,)): -64,
    ("Q1 late", (90,)): -54,
    ("Q2", (90,)): -76,
    ("Q3", (90, 90)): -29,
}
LEAN, WATCHED = "R-CEP, untracked", "watched"
SECTIONS = ("monitor", "early", "table", "sweeps", "time", "scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of the experiments.

    Attributes:
        orders: The number of orders in a stream, about 20 events each.
        concurrent: The number of open orders at a time.
        seeds: The seeds of the streams for each cell of the table. Sweeps use the first seed.
        step: The step of the sweeps, in percent.
        rows: The number of rows in a batch, if memory is read between batches.
        scale_orders: The number of orders in the long stream.
        scale_concurrent: The number of open orders at a time in the long stream.
        scale_rows: The number of rows in a batch of the long stream.
        rounds: The number of paired timings.
    """

    orders: int
    concurrent: int
    seeds: tuple[int, ...]
    step: int
    rows: int
    scale_orders: int
    scale_concurrent: int
    scale_rows: int
    rounds: int


FULL = Size(
    orders=20_000,
    concurrent=1_000,
    seeds=(1, 2, 3, 4),
    step=10,
    rows=2_000,
    scale_orders=200_000,
    scale_concurrent=10_000,
    scale_rows=5_000,
    rounds=15,
)
QUICK = Size(
    orders=240,
    concurrent=40,
    seeds=(1,),
    step=90,
    rows=200,
    scale_orders=480,
    scale_concurrent=80,
    scale_rows=500,
    rounds=1,
)


@dataclass(frozen=True, slots=True)
class Task:
    """A part of the experiments: its label, its approximate cost, and a function that adds its figures."""

    label: str
    weight: int
    run: Callable[[Figures], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One cell on one stream.

    Attributes:
        cell: The query and the workload.
        stream: The events.
        seed: The seed of the stream.
        rows: The number of rows in the matcher's batches. For 0, there is only the replay.
    """

    cell: Cell
    stream: OrderStream
    seed: int
    rows: int

    def __str__(self) -> str:
        return f"{self.cell.sweep} {self.cell.label}, {len(self.stream):,} events, seed {self.seed}"


def tasks(size: Size, modes: Mapping[str, Mode], sections: Iterable[str] = SECTIONS) -> list[Task]:
    """Return the tasks of the chosen sections, in the order of ``SECTIONS``."""
    makers = {
        "monitor": _monitor_tasks,
        "early": _early_tasks,
        "table": _table_tasks,
        "sweeps": _sweep_tasks,
        "time": _time_tasks,
        "scale": _scale_tasks,
    }
    chosen = set(sections)
    return [task for section in SECTIONS if section in chosen for task in makers[section](size, modes)]


def compare(compared: Comparison, modes: Mapping[str, Mode], figures: Figures) -> list[Row]:
    """Replay a cell in all modes, and run it on the matcher.

    Violations of the following rules are added to ``figures.disagreements``. The matches of all modes are equal, and
    there are no deviations. Each mode retains at most as many bound events as the mode before it, at any time. The
    matcher retains the same number as the replay.
    """
    cell, stream = compared.cell, compared.stream
    replays = {name: replayed(cell.query, stream, mode.oracle, mode.prune) for name, mode in modes.items()}
    for (name, less), (other, more) in pairwise(replays.items()):
        if more.matches != less.matches or more.deviations:
            figures.disagreements.append(f"{compared}: {other} has {more.matches} matches, {name} {less.matches}")
        if np.any(more.held > less.held):
            figures.disagreements.append(f"{compared}: {other} holds more than {name} at some moment")
    batch = stream.batch() if compared.rows else None
    found = []
    for name, mode in modes.items():
        row = _replayed_row(compared, name, replays[name])
        if batch is not None and mode.is_run:
            row = _with_matcher(compared, mode, batch, replays[name], row, figures)
        found.append(row)
    return found


def _replayed_row(compared: Comparison, name: str, replay: Replayed) -> Row:
    return Row(
        sweep=compared.cell.sweep,
        ratio=compared.cell.label,
        events=len(compared.stream),
        seed=compared.seed,
        mode=name,
        peak=replay.peak,
        matches=replay.matches,
        scan_probes=replay.scan_probes,
        typed_probes=replay.typed_probes,
        binds=replay.binds,
    )


def _with_matcher(
    compared: Comparison, mode: Mode, batch: EventBatch, replay: Replayed, row: Row, figures: Figures
) -> Row:
    held = held_by(compared.cell.query, mode, compared.stream, batch, rows=compared.rows)
    found = {
        "matches": (held.matches, replay.matches),
        "peak": (held.peak, replay.peak),
        "moments at which it holds another number": (int(np.sum(held.held != replay.held[held.borders])), 0),
        "deviations": (held.stats.deviations, 0),
    }
    figures.disagreements += [
        f"{compared}: the matcher has {one:,} {what} in {mode.name}, the replay {other:,}"
        for what, (one, other) in found.items()
        if one != other
    ]
    return replace(
        row,
        engine_peak=held.peak,
        state_bytes=held.state_bytes,
        pattern_bytes=held.pattern_bytes,
        checkpoint_bytes=held.checkpoint_bytes,
        guard_builds=held.stats.guard_builds,
        guard_steps=held.stats.guard_steps,
    )


def _stream(cell: Cell, size: Size, seed: int) -> OrderStream:
    return order_stream(cell.orders, orders=size.orders, concurrent=size.concurrent, seed=seed)


def _table_tasks(size: Size, modes: Mapping[str, Mode]) -> list[Task]:
    """Return the tasks for each cell of the table with all seeds, which also run on the matcher."""

    def run(cell: Cell, seed: int, figures: Figures) -> None:
        compared = Comparison(cell=cell, stream=_stream(cell, size, seed), seed=seed, rows=size.rows)
        figures.rows += compare(compared, modes, figures)

    return [
        Task(f"{cell.sweep} {cell.label}, seed {seed}", 4 * size.orders, partial(run, cell, seed))
        for cell in table_cells()
        for seed in size.seeds
    ]


def _sweep_tasks(size: Size, modes: Mapping[str, Mode]) -> list[Task]:
    """Return the tasks for the cells of the sweeps that are not in the table, with the first seed."""

    def run(cell: Cell, figures: Figures) -> None:
        seed = size.seeds[0]
        compared = Comparison(cell=cell, stream=_stream(cell, size, seed), seed=seed, rows=size.rows)
        figures.rows += compare(compared, modes, figures)

    done = {(cell.sweep, cell.ratio) for cell in table_cells()}
    cells = [cell for cell in sweep_cells(size.step) if (cell.sweep, cell.ratio) not in done]
    return [Task(f"{cell.sweep} {cell.label}", 4 * size.orders, partial(run, cell)) for cell in cells]


def _scale_tasks(size: Size, modes: Mapping[str, Mode]) -> list[Task]:
    """Return the tasks for the long stream at 90 percent, in the modes that the matcher runs."""
    run_modes = {name: mode for name, mode in modes.items() if mode.is_run}

    def run(cell: Cell, figures: Figures) -> None:
        seed = size.seeds[0]
        stream = order_stream(cell.orders, orders=size.scale_orders, concurrent=size.scale_concurrent, seed=seed)
        compared = Comparison(cell=cell, stream=stream, seed=seed, rows=size.scale_rows)
        figures.scale += compare(compared, run_modes, figures)

    cells = [cell_of(sweep, ratio) for sweep, ratio in SCALE_CELLS]
    return [
        Task(f"long stream, {cell.sweep} {cell.label}", 2 * size.scale_orders, partial(run, cell)) for cell in cells
    ]


def _time_tasks(size: Size, modes: Mapping[str, Mode]) -> list[Task]:
    """Return the tasks for paired runs of each sweep. For Q3, only cells of the table are timed."""
    in_table = {cell.ratio for cell in table_cells() if cell.sweep == "Q3"}
    cells = [cell for cell in sweep_cells(size.step) if cell.sweep != "Q3"]
    cells += [cell_of("Q3", ratio) for ratio in sorted(in_table)]

    def run(cell: Cell, figures: Figures) -> None:
        figures.timings += timings(cell, _stream(cell, size, size.seeds[0]), modes, size.rounds, figures)

    return [Task(f"time, {cell.sweep} {cell.label}", 6 * size.orders, partial(run, cell)) for cell in cells]


def timings(cell: Cell, stream: OrderStream, modes: Mapping[str, Mode], rounds: int, figures: Figures) -> list[Timing]:
    """Time in turn: all modes that the matcher runs, a guard without pruning, and R-CEP without tracked traces."""
    text = cell.query.text
    runs = {name: partial(matcher_for, text, mode) for name, mode in modes.items() if mode.is_run}
    runs[LEAN] = partial(matcher_for, text, modes[R_CEP], knows_traces=False)
    watching = replace(modes["state"], prune=Prune.OFF)
    runs[WATCHED] = partial(matcher_for, text, watching)
    first = stream.settled + 1
    seconds, ratios, matches = paired(runs, stream.batch(), first, rounds)
    if len(set(matches.values())) > 1:
        figures.disagreements.append(f"time, {cell.sweep} {cell.label}: matches differ: {matches}")
    return [
        Timing(
            sweep=cell.sweep,
            ratio=cell.label,
            mode=name,
            nanoseconds=1e9 * seconds[name] / (len(stream) - first),
            ratio_to_first=ratios[name],
            rounds=rounds,
        )
        for name in runs
    ]


def _early_tasks(size: Size, modes: Mapping[str, Mode]) -> list[Task]:
    def run(absence: Absence, figures: Figures) -> None:
        stream = order_stream(absence.orders, orders=size.orders, concurrent=size.concurrent, seed=size.seeds[0])
        batch = stream.batch()
        for place, name in enumerate(("state", R_CEP)):
            wanted = expected(absence, stream, is_guarded=name != R_CEP)
            found = measured(absence, stream, batch, modes[name])
            figures.early.append(
                Early(
                    pattern=absence.label,
                    mode=name,
                    alerts=found.alerts,
                    events=found.events,
                    expected=wanted.events,
                    wanted=absence.wanted[place] if absence.wanted else None,
                )
            )
            if (found.alerts, round(found.events, 6)) != (wanted.alerts, round(wanted.events, 6)):
                figures.disagreements.append(f"{absence.label}, {name}: {found}, by definition {wanted}")

    return [Task(absence.label, 2 * size.orders, partial(run, absence)) for absence in ABSENCES]


def _monitor_tasks(size: Size, modes: Mapping[str, Mode]) -> list[Task]:
    def run(figures: Figures) -> None:
        stream = order_stream(OrderSettings(), orders=size.orders, concurrent=size.concurrent, seed=size.seeds[0])
        figures.monitor = monitor_figures(stream, modes["state"])

    return [Task("monitor", size.orders, run)]


def monitor_figures(stream: OrderStream, mode: Mode) -> dict[str, int]:
    """Return the size of the monitor and its number of queries, with all four patterns on one matcher."""
    prefixes = {frozenset(word[:length]) for word in LanguageOracle().start for length in range(len(word) + 1)}
    graphs = [build_query(parse_pattern(query.text)) for query in QUERIES.values()]
    oracle = ConstraintOracle(extracted())
    matcher = matcher_for(QUERIES["Q1"].text, mode)
    for query in QUERIES.values():
        matcher.add_pattern(query.text)
    matcher.process(stream.batch())
    return {
        "distinct sets of seen types that the workflow allows": len(prefixes),
        "pattern states of Q1, Q2, Q3 and EP1": sum(len(states_of(graph)) for graph in graphs),
        "distinct rows of live states": len(
            {tuple(live_row(oracle, seen, one) for one in graphs) for seen in prefixes}
        ),
        "events": len(stream),
        "first events of their type in a trace": first_occurrences(stream),
        "monitor steps that the matcher counted": matcher.stats.guard_steps,
        "distinct pairs of seen types and next event in the stream": distinct_steps(stream),
        "monitor steps that the matcher built": matcher.stats.guard_builds,
    }


def first_occurrences(stream: OrderStream) -> int:
    """Return the number of events whose type is new in their trace."""
    return len(np.unique(stream.orders.astype(np.int64) * len(TYPES) + stream.types))


def distinct_steps(stream: OrderStream) -> int:
    """Return the number of distinct pairs: the set of types seen in a trace, and the type of the next event."""
    seen = np.zeros(int(stream.orders.max()) + 1, np.int64)
    pairs: set[tuple[int, int]] = set()
    for place in range(int(stream.places.max()) + 1):
        rows = np.flatnonzero(stream.places == place)
        owners, types = stream.orders[rows], stream.types[rows].astype(np.int64)
        pairs.update(zip(seen[owners].tolist(), types.tolist(), strict=True))
        seen[owners] |= np.int64(1) << types
    return len(pairs)
