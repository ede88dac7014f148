"""Events per second of each language construct that the run engine supports, on input like workload W.

W is 1,000,000 events, one a millisecond, 1,000 keys, 20 types with an attribute ``value`` (``matcher_speed``). Every
query has bounded output: at most a few matches per event. Each line has the events per second of the whole ``Matcher``
(columns in memory to match columns, thread time, one core), the matches, and the ratio to the plain sequence of the
same steps in the same run, which the shared-node engine runs. Rounds take turns, and the figures are medians.

``scripts/bench constructs [--quick]``
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from statistics import median

from benchmarks.matcher_speed import matches_in, unguarded, workload_w

PLAIN = "SEQ(T0 a, T1 b, T2 c) WITHIN 60 s"
CONSTRUCTS: Mapping[str, str] = {
    "plain sequence, ALL": PLAIN,
    "condition between steps, ALL": "SEQ(T0 a, T1 b [value >= a.value OR value < a.value], T2 c) WITHIN 60 s",
    "condition between steps, NEXT": (
        "SEQ(T0 a, T1 b [value >= a.value OR value < a.value], T2 c) WITHIN 60 s SELECT NEXT"
    ),
    "equality between steps": "SEQ(T0 a, T1 b [value = a.value], T2 c) WITHIN 600 s",
    "inequality between steps": "SEQ(T0 a, T1 b [value > a.value], T2 c [value > b.value]) WITHIN 60 s",
    "NOT with a condition between": "SEQ(T0 a, NOT T3 n [value > a.value], T1 b) WITHIN 60 s",
    "NOT between": "SEQ(T0 a, NOT T3, T1 b, T2 c) WITHIN 60 s",
    "NOT at the end": "SEQ(T0 a, T1 b, NOT T2) WITHIN 20 s",
    "AND of 3 with a condition": "SEQ(AND(T0 a, T1 b, T2 c), T4 d [value > a.value]) WITHIN 30 s",
    "Kleene with prev": "SEQ(T0 a, T1+ b [value > coalesce(prev(value), -1)], T2 c) WITHIN 20 s SELECT NEXT",
    "Kleene with an aggregate": "SEQ(T0 a, T1+ b [sum(value) <= 200], T2 c) WITHIN 20 s SELECT NEXT",
    "GREEDY": "SEQ(T0 a, T1+ b GREEDY, T2 c) WITHIN 30 s SELECT NEXT",
    "{3} UNTIL": "SEQ(T0{3} a UNTIL T5, T1 b) WITHIN 60 s SELECT NEXT",
    "STRICT": "SEQ(T0 a, T1 b, T2 c) SELECT STRICT",
    "limit of a gap": "SEQ(T0 a, WITHIN 10 s T1 b, WITHIN 10 s T2 c)",
    "SKIP PAST LAST": "SEQ(T0 a, T1 b, T2 c) WITHIN 60 s SELECT SKIP PAST LAST",
    "SKIP TO NEXT": "SEQ(T0 a, T1 b, T2 c) WITHIN 60 s SELECT NEXT SKIP TO NEXT",
    "SKIP TO LAST b": "SEQ(T0 a, T1 b, T2 c) WITHIN 60 s SELECT SKIP TO LAST b",
    "ONCE PER KEY": "SEQ(T0 a, T1 b, T2 c) WITHIN 60 s SELECT ONCE PER KEY",
    "LIMIT 1": "SEQ(T0 a, T1 b, T2 c) WITHIN 60 s LIMIT 1",
    "WHERE over the match": "SEQ(T0 a, T1 b, T2 c) WHERE a.value < c.value AND b.value > 50 WITHIN 60 s",
    "EMIT TIMEOUTS": "SEQ(T0 a, T1 b, T2 c) WITHIN 20 s SELECT NEXT EMIT TIMEOUTS",
}


def main() -> None:
    """Print the table."""
    is_quick, rounds = "--quick" in sys.argv, 3
    chosen = [word for word in sys.argv[1:] if not word.startswith("--")]
    texts = {name: text for name, text in CONSTRUCTS.items() if not chosen or name in chosen}
    batch = workload_w(100_000 if is_quick else 1_000_000)
    for text in texts.values():  # compiles the kernels
        matches_in(unguarded(f"PATTERN w EVENT {text}"), batch.slice(0, 5_000))
    taken: dict[str, list[float]] = {name: [] for name in texts}
    found: dict[str, int] = {}
    for _ in range(rounds):
        for name, text in texts.items():
            matcher = unguarded(f"PATTERN w EVENT {text}")
            start = time.thread_time()
            found[name] = matches_in(matcher, batch)
            taken[name].append(time.thread_time() - start)
    rates = {name: len(batch) / median(times) / 1e6 for name, times in taken.items()}
    first = next(iter(rates.values()))
    print("| construct | M events/s | matches | to the plain sequence |\n|---|---|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate:.2f} | {found[name]:,} | {rate / first:.2f} |")


if __name__ == "__main__":
    main()
