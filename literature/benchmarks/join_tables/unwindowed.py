"""J1 to J8: PJoin against XJoin, without windows. All work is counted: key comparisons and scanned events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from literature.benchmarks.join_tables.runs import Shown, SpillingCase, SpillingRun, run_spilling, two
from literature.costs import best_purge_threshold
from tests.builders.joins import GeneratedStream

XJOIN = SpillingCase(purge=None)


def runs_of(
    seconds: float, seeds: int, case: SpillingCase, first: int, second: int | None = None, *, drifts: bool = False
) -> list[SpillingRun]:
    """One run for each seed; ``first`` and ``second`` are events per punctuation of the two streams."""
    streams = [GeneratedStream(spacing=spacing, drifts=drifts) for spacing in (first, second or first)]
    return [run_spilling(two(seconds, seed, *streams), case) for seed in range(seeds)]


def mean_state(runs: list[SpillingRun]) -> float:
    """The mean number of retained events, over time and seeds."""
    return float(np.mean([run.state.sum(axis=1).mean() for run in runs]))


def mean_work(runs: list[SpillingRun]) -> float:
    """The mean number of comparisons and scans of a run."""
    return float(np.mean([run.work[-1] for run in runs]))


def state_tables(seconds: float, seeds: int) -> Iterator[Shown]:
    """J1, J2, J4: sizes of the state."""
    plain, aware = runs_of(seconds, seeds, XJOIN, 40), runs_of(seconds, seeds, SpillingCase(), 40)
    end = np.mean([run.state[-1].sum() for run in plain])
    middle = np.mean([run.state[len(run.state) // 2].sum() for run in plain])
    ends = np.mean([run.state[-1].sum() for run in aware])
    yield "J1", "PJoin-1, mean / end", f"{mean_state(aware):,.0f} / {ends:,.0f}", "460, flat"
    yield "J1", "XJoin, middle / end", f"{middle:,.0f} / {end:,.0f}", "60,000 at the end, linear"
    by_spacing = {spacing: mean_state(runs_of(seconds, seeds, SpillingCase(), spacing)) for spacing in (10, 20, 30)}
    by_spacing[40] = mean_state(aware)
    shown = " < ".join(f"{state:,.0f}" for state in by_spacing.values())
    yield "J2", "PJoin-1, 10, 20, 30, 40 events each", shown, "198 < 279 < 355 < 461"
    lazy = mean_state(runs_of(seconds, seeds, SpillingCase(purge=10), 10))
    yield "J4", "PJoin-1 / PJoin-10", f"{by_spacing[10]:,.0f} / {lazy:,.0f}", "198 / 224"


def work_tables(seconds: float, seeds: int) -> Iterator[Shown]:
    """J3, J5: amounts of work."""
    plain, aware = runs_of(seconds, seeds, XJOIN, 30), runs_of(seconds, seeds, SpillingCase(), 30)
    shown = f"{mean_work(aware) / 1e6:.2f} M / {mean_work(plain) / 1e6:.1f} M"
    yield "J3", "PJoin-1 / XJoin", shown, "1.26 M / 14.0 M"
    for name, runs in (("PJoin-1", aware), ("XJoin", plain)):
        sixth = len(runs[0].work) // 6
        first = np.mean([run.work[sixth] for run in runs])
        last = np.mean([run.work[-1] - run.work[-1 - sixth] for run in runs])
        expected = "about 1" if name == "PJoin-1" else "grows (about 11)"
        yield "J3", f"{name}, last sixth to first", f"{last / first:.1f}", expected
    thresholds = (1, 10, 100, 400, 800)
    works = [mean_work(runs_of(seconds, seeds, SpillingCase(purge=each), 10)) for each in thresholds]
    shown = " / ".join(f"{work / 1e6:.2f}" for work in works) + " M"
    yield "J5", "PJoin-1, -10, -100, -400, -800", shown, "0.85 / 0.44 / 0.35 / 0.77 / 1.33 M"
    for buckets in (4, 16, 64, 256):
        yield from _best_threshold(seconds, seeds, buckets)


def _best_threshold(seconds: float, seeds: int, buckets: int) -> Iterator[Shown]:
    """The purge threshold of the cost model, and of a self-tuning join, against a sweep; keys are scattered."""
    eager = runs_of(seconds, seeds, SpillingCase(buckets=buckets, placement="scattered"), 10)
    events, purged = eager[0].stats.events, eager[0].stats.purged
    spacing = 10  # the same for both inputs together
    garbage = purged / (events / spacing)
    best = best_purge_threshold(mean_state(eager), garbage, spacing, buckets)

    def work(threshold: int) -> float:
        case = SpillingCase(purge=threshold, buckets=buckets, placement="scattered")
        return mean_work(runs_of(seconds, seeds, case, 10))

    sweep = {each: work(each) for each in (1, 2, 5, 10, 20, 50, 100, 200, 400)}
    least = min(sweep, key=lambda each: sweep[each])
    ratio = work(max(1, round(best))) / sweep[least]
    yield (
        "J5",
        f"n* at {buckets} scattered buckets",
        f"n* {best:.1f}, best of sweep {least}, work {ratio:.2f} of it",
        "at most 1.25",
    )
    tuned = SpillingCase(buckets=buckets, placement="scattered", is_tuned=True)
    ratio = mean_work(runs_of(seconds, seeds, tuned, 10)) / sweep[least]
    yield "J5", f"tuned while it runs, {buckets} scattered buckets", f"work {ratio:.2f} of the best", "at most 1.25"


def asymmetric_tables(seconds: float, seeds: int) -> Iterator[Shown]:
    """J6, J7: inputs that close keys at different rates."""
    ends, means, seconds_held = [], [], []
    eager = {second: runs_of(seconds, seeds, SpillingCase(), 10, second) for second in (20, 30, 40)}
    for runs in eager.values():
        ends.append(np.mean([run.state[-1, 0] for run in runs]))
        means.append(np.mean([run.state[:, 0].mean() for run in runs]))
        seconds_held.append(np.mean([run.state[:, 1].mean() for run in runs]))
    yield "J6", "A held, mean, B 20 / 30 / 40", " / ".join(f"{each:,.0f}" for each in means), "larger with asymmetry"
    yield "J6", "A held, end", " / ".join(f"{each:,.0f}" for each in ends), "10.0 k / 13.3 k / 14.9 k"
    yield "J6", "B held, mean", " / ".join(f"{each:,.1f}" for each in seconds_held), "0"
    plain = mean_work(runs_of(seconds, seeds, XJOIN, 10, 20))
    lazy = runs_of(seconds, seeds, SpillingCase(purge=100), 10, 20)
    works = [mean_work(eager[20]), mean_work(eager[40]), plain, mean_work(lazy)]
    shown = " / ".join(f"{work / 1e6:.1f}" for work in works) + " M"
    yield "J7", "PJoin-1 (B 20), PJoin-1 (B 40), XJoin, PJoin-100", shown, "15.0 / 13.9 / 14.0 / 4.0 M"
    yield "J7", "PJoin-1 (10, 20) to XJoin", f"{works[0] / plain:.2f}", "at least 1"
    yield "J7", "PJoin-100 to PJoin-1, work", f"{works[3] / works[0]:.2f}", "at most 0.33"
    more = mean_state(lazy) / mean_state(eager[20]) - 1
    yield "J7", "PJoin-100 to PJoin-1, state", f"{100 * more:+.1f} %", "+1.7 %, below 5 %"


def propagation_table(seconds: float) -> Iterator[Shown]:
    """J8: keys reported over time."""
    (run,) = runs_of(seconds, 1, SpillingCase(propagation="pair"), 40)
    times = np.sort(np.array(list(run.over_us.values()))) / 1e6
    counts = np.histogram(times, bins=6, range=(0, seconds))[0]
    yield "J8", "keys over, by sixth", " ".join(map(str, counts.tolist())), "even; one for each closed pair"


def tables(seconds: float, seeds: int) -> Iterator[Shown]:
    """All tables of J."""
    yield from state_tables(seconds, seeds)
    yield from work_tables(seconds, seeds)
    yield from asymmetric_tables(seconds, seeds)
    yield from propagation_table(seconds)
