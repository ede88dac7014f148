"""Memory, results and delays of unsynchronised joins, beside the expectations of their specification.

Generated streams (50 arrivals per second, factors up to 500, keys up to twice, 120 s, one stream slowed to an eighth
from 10 s to 40 s); figures are means over runs with other seeds. Memory is counted in arrivals, delays in the time of
the streams; thread time is noisy, and only its ratios count.

    scripts/literature bench join_waiting --runs=10
"""

from __future__ import annotations

from argparse import ArgumentParser

from literature.benchmarks.join_waiting.experiments import (
    congested,
    e1,
    e2,
    e3,
    e4_e5,
    e6_e7,
    e8,
    e9,
    rates_form,
    speed,
    unprepared,
)
from literature.unsynchronised import Strategy


def main() -> None:
    """Print a table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one run of each")
    wanted = parser.parse_args()
    runs = 1 if wanted.quick else wanted.runs
    print(f"{runs} runs of each")
    print("| | expected | measured | |\n|---|---|---|---|")
    for experiment in (e1, e2, unprepared, congested, rates_form, e3, e4_e5, e6_e7, e8, e9):
        for one in experiment(runs):
            print(
                f"| {one.experiment} | {one.expected} | {one.measured} | {'yes' if one.holds else 'NO'} |", flush=True
            )
    strategies: tuple[Strategy, ...] = ("plain", "sort")
    for strategy in strategies:
        print(f"{strategy}, batches of 10,000: {speed(strategy) / 1e6:.2f} M arrivals per second of thread time")


if __name__ == "__main__":
    main()
