"""The experiments of punctuation-aware joins, measured beside the figures of their specification.

J: PJoin (purging by scans, ``PJoin-n``: every n punctuations) against XJoin, without windows. W: PWJoin against the
hash window join WJoin. M: the same for several inputs. H: PJoin whose input announces keys. R: a target recall. Streams
are generated (``tests.builders.joins``), with events of a stream 2 ms apart on average. The expected figures are for
60 s of events and 64 buckets, as means over seeds.

    scripts/literature bench join_tables --seconds=60 --seeds=3 --rounds=5
"""

from __future__ import annotations

from argparse import ArgumentParser
from itertools import chain

from literature.benchmarks.join_tables import hints, recall, tombstones, unwindowed, windows

_PARTS = "J: without windows; W: with windows, W and M; 7: forgotten keys; H: announced keys; R: recall"


def main() -> None:
    """Print a table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="JW7HR", help=_PARTS)
    parser.add_argument("--quick", action="store_true")
    wanted = parser.parse_args()
    seconds, seeds, rounds = (25.0, 1, 1) if wanted.quick else (wanted.seconds, wanted.seeds, wanted.rounds)
    parts = []
    if "J" in wanted.only:
        parts.append(unwindowed.tables(seconds, seeds))
    if "W" in wanted.only:
        parts.append(windows.tables(seconds, seeds, rounds))
    if "7" in wanted.only:
        parts.append(tombstones.tables(200_000 if wanted.quick else 10_000_000))
    if "H" in wanted.only:
        parts.append(hints.tables(10_000 if wanted.quick else 40_000))
    if "R" in wanted.only:
        parts.append(recall.tables(10 if wanted.quick else 100))
    print(f"{seconds:.0f} s of events, {seeds} seeds, {rounds} rounds")
    print("| | | measured | expected |\n|---|---|---|---|", flush=True)
    for table, what, measured, expected in chain.from_iterable(parts):
        print(f"| {table} | {what} | {measured} | {expected} |", flush=True)


if __name__ == "__main__":
    main()
