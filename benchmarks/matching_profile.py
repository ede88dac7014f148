"""A profile of matching without Spark: the shards of an event log in this process.

The log is that of ``pipeline_against_empty``, but in memory: Q1, Q2 and EP1 with the order workflow's constraints. Each
shard decodes its entries, matches them, explains early terminations and writes its rows as JSON. Its state is saved
once at the end. First, the time of this thread is measured. Then the run is repeated under cProfile, which shows each
package's share of the time spent in its own functions. The time of C functions and compiled kernels counts for their
callers. Profiling slows down code with many small calls most, so the shares of such code are somewhat too large.
``--modules`` shows shares of modules.

    scripts/bench matching_profile --events=200000 --modules
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from cProfile import Profile
from pathlib import Path
from pstats import Stats
from statistics import median
from typing import Any

from benchmarks.filled_log import STREAM, order_batches
from benchmarks.workload import EP1, Q1, Q2, order_constraints
from constraints import to_document
from shards import OutputRow, ShardState
from streams import ConstraintsOn, LogEntry, PatternOn, RecordKind, StreamDeclaration, StreamOn
from tests.builders.shards import Step, log_of

_ROOT = Path(__file__).resolve().parents[1]
_PATTERNS = {"Q1": Q1, "Q2": Q2, "EP1": EP1}
_SHOWN_SHARE = 0.005


def order_log(events: int, *, request: int, shards: int) -> dict[int, list[LogEntry]]:
    """Return the entries of each shard: control records, then about ``events`` events of orders."""
    constraint_set = order_constraints()
    controls: list[Step] = [
        StreamOn(StreamDeclaration(name=STREAM, end_events=tuple(sorted(constraint_set.end_events)))),
        ConstraintsOn(name=STREAM, version=1, document=to_document(constraint_set)),
        *(PatternOn(name=name, version=1, text=text) for name, text in _PATTERNS.items()),
    ]
    logs = log_of(controls, stream=STREAM, shards=shards)
    for number, batch in enumerate(order_batches(events, request=request)):
        for shard, part in batch.split_by_shard(shards).items():
            entry = LogEntry(position=f"2-{number}", kind=RecordKind.EVENTS, stream=STREAM, body=part.to_bytes())
            logs[shard].append(entry)
    return logs


def matched(logs: Mapping[int, Sequence[LogEntry]], at_once: int) -> tuple[list[OutputRow], int]:
    """Match the logs, ``at_once`` entries at a time.

    Return the rows of all shards, and the bytes of the saved states.
    """
    rows: list[OutputRow] = []
    saved = 0
    for shard, entries in logs.items():
        state = ShardState(shard)
        for start in range(0, len(entries), at_once):
            rows += state.apply(entries[start : start + at_once])
        saved += len(state.dump())
    return rows, saved


def shares_of(stats: Mapping[Any, Any], *, is_by_module: bool) -> Counter[str]:
    """Return the seconds by package or module.

    ``stats`` are the entries of ``pstats.Stats``, which map (file, line, name) to calls and times.
    """
    spent: Counter[str] = Counter()
    for (file, _, _), (_, _, own_s, _, callers) in stats.items():
        if not is_c(file):
            spent[name_of(file, is_by_module=is_by_module)] += own_s
            continue
        for (calling, _, _), (_, _, part_s, _) in callers.items():
            spent[name_of(calling, is_by_module=is_by_module)] += part_s
    return spent


def is_c(file: str) -> bool:
    """Return whether a function in the profile is written in C, so that it has no source file."""
    return file == "~"


def name_of(file: str, *, is_by_module: bool) -> str:
    """Return the package or module of a source file.

    For a library, return its name. For C functions that call other functions, return ``C``.
    """
    path = Path(file)
    if "site-packages" in path.parts:  # checked first, because .venv is in the project's folder
        return path.parts[path.parts.index("site-packages") + 1].removesuffix(".py")
    if path.is_relative_to(_ROOT):
        parts = path.relative_to(_ROOT).with_suffix("").parts
        return ".".join(parts if is_by_module else parts[:1])
    return "C" if is_c(file) else "Python's library"


def main() -> None:
    """Print times and shares."""
    wanted = _arguments()
    logs = order_log(wanted.events, request=wanted.request, shards=wanted.shards)
    matched(order_log(2_000, request=wanted.request, shards=wanted.shards), wanted.entries)  # loads the kernels
    seconds = []
    for _ in range(wanted.rounds):
        begun = time.thread_time()
        rows, saved = matched(logs, wanted.entries)
        seconds.append(time.thread_time() - begun)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in Counter(row.kind for row in rows).most_common())
    print(
        f"{wanted.events:,} events in requests of {wanted.request:,}, {wanted.shards} shards, {wanted.entries} entries "
        f"at once: {median(seconds):.2f} s, median of {wanted.rounds}; rows: {kinds}; states: {saved:,} bytes"
    )
    profile = Profile()
    profile.runcall(matched, logs, wanted.entries)
    spent = shares_of(Stats(profile).stats, is_by_module=wanted.modules)  # type: ignore[attr-defined]
    print(f"| {'module' if wanted.modules else 'package'} | share of {spent.total():.2f} s under the profiler |")
    print("|---|---|")
    for name, part_s in spent.most_common():
        if part_s >= _SHOWN_SHARE * spent.total():
            print(f"| {name} | {part_s / spent.total():.1%} |")


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--request", type=int, default=10_000, help="events of a request")
    parser.add_argument("--entries", type=int, default=1, help="of a shard at once")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modules", action="store_true", help="shares of modules")
    return parser.parse_args()


if __name__ == "__main__":
    main()
