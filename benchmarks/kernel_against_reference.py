"""Speed of the matcher on Q1, compared with its reference, the enumeration that defines matches.

Both run in this process on the same events and take turns; the ratio is that of the medians. The matcher reads columns
in memory (its input form) and is warmed up. Since every order ends, a round starts with empty state and filled guard
tables. The reference reads events (its input form). The results must be equal, or the run fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from benchmarks.workload import Q1, decoded, order_constraints, orders
from constraints import Monitor
from nfa import Matcher, parse_pattern
from tests.references.patterns.outcome import reference_matches

ORDERS = 5_000
ROUNDS = 5


def main() -> None:
    """Print the ratio."""
    events = orders(ORDERS)
    batch = decoded(events, ["price"])
    constraint_set = order_constraints()
    pattern = parse_pattern(Q1)

    plain, guarded = Matcher(end_events=constraint_set.end_events), Matcher(end_events=constraint_set.end_events)
    plain.add_pattern(Q1)
    guarded.add_pattern(Q1)
    guarded.set_guard(1, Monitor(constraint_set))

    def reference() -> int:
        return len(reference_matches([pattern], events, constraint_set.end_events))

    runs: dict[str, Callable[[], int]] = {
        "matcher": lambda: plain.process(batch).n_matches,
        "matcher, guarded": lambda: guarded.process(batch).n_matches,
        "reference": reference,
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    answers = {name: run() for name, run in runs.items()}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    slow = median(seconds["reference"])
    print(f"Q1, {len(events):,} events of {ORDERS:,} orders, {answers['reference']:,} matches, {ROUNDS} rounds")
    for name, taken in seconds.items():
        fast = median(taken)
        print(f"  {name:18} {len(events) / fast:14,.0f} events/s   {slow / fast:8.1f} x the reference")
    if len(set(answers.values())) != 1:
        raise SystemExit(f"the answers differ: {answers}")


if __name__ == "__main__":
    main()
