"""Throughput of ten thousand patterns, each with a constant of its own, compared with one such pattern.

Events are as in workload W (``matcher_speed``: one a millisecond, 20 types), with the attributes ``customer``, a text,
and ``amount``, a number below a million. There are 10,000 watched customers, each with one pattern. In the stream
*all*, every event belongs to a watched customer; in *few*, one in a hundred does. Thresholds are chosen so that the
median event exceeds none of them, and one event in 10,000 exceeds half of them.

Each line has the events per second of the whole ``Matcher`` (columns in memory to match columns, thread time, one core)
in three cases: with 10,000 patterns; with one of them, which is relevant to few events; and with the pattern without a
constant, which is relevant to every event. Rounds take turns, and the figures are medians.

``scripts/bench constants_speed [--quick]``
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Mapping
from statistics import median

import pyarrow as pa

from benchmarks.matcher_speed import ROWS, matches_in
from nfa import Matcher
from streams import Event, EventBatch

WATCHED, MOST_AMOUNT, ROUNDS = 10_000, 1_000_000, 3
STREAMS: Mapping[str, int] = {"all": WATCHED, "few": 100 * WATCHED}
EQUALITY, THRESHOLD = "customer = 'customer-{}'", "amount > {}"
FORMS: Mapping[str, tuple[str, str]] = {
    "one step": ("T0 a [{}]", EQUALITY),
    "two steps": ("SEQ(T0 a [{}], T1 b [{}]) WITHIN 600 s", EQUALITY),
    "condition between steps": ("SEQ(T0 a [{}], T1 b [{} AND amount > a.amount]) WITHIN 600 s", EQUALITY),
    "threshold": ("T0 a [{}]", THRESHOLD),
}


def events_of(size: int, customers: int) -> EventBatch:
    """Return random events, with one trace per customer."""
    rng = random.Random(42)
    owners = [rng.randrange(customers) for _ in range(size)]
    plain = EventBatch.from_events(
        [
            Event(id=str(number), type=f"T{rng.randrange(20)}", time_us=number * 1_000, key=str(owner), data={})
            for number, owner in enumerate(owners)
        ]
    )
    names = pa.array([f"customer-{owner}" for owner in owners])
    amounts = pa.array([rng.randrange(MOST_AMOUNT) for _ in owners], pa.int64())
    return EventBatch(plain.columns, {("customer",): names, ("amount",): amounts})


def matcher_of(form: str, number: int) -> Matcher:
    """Return a matcher of ``number`` patterns. For 0, return a matcher of one pattern without a constant."""
    shape, test = FORMS[form]
    matcher = Matcher(tracks="bound")
    for place in range(max(number, 1)):
        constant: object = place if test == EQUALITY else MOST_AMOUNT - 100 + place / 100
        text = test.format(constant) if number else "amount >= 0"
        matcher.add_pattern(f"PATTERN p{place} EVENT {shape.format(text, text)}")
    return matcher


def seconds_of(form: str, number: int, batch: EventBatch) -> tuple[float, int]:
    """Return thread time and matches of a fresh matcher. Its tables are built before the clock starts."""
    matcher = matcher_of(form, number)
    matches_in(matcher, batch.slice(0, 1))
    start = time.thread_time()
    found = matches_in(matcher, batch.slice(1, len(batch) - 1))
    return time.thread_time() - start, found


def main() -> None:
    """Print the table."""
    size, numbers = 4 * ROWS if "--quick" in sys.argv else 1_000_000, (WATCHED, 1, 0)
    print("| form | events watched | 10,000, M/s | one, M/s | without, M/s | matches | time to one | to without |")
    print("|---|---|---|---|---|---|---|---|")
    for stream, customers in STREAMS.items():
        batch = events_of(size, customers)
        for form in FORMS:
            taken: dict[int, list[float]] = {number: [] for number in numbers}
            found: dict[int, int] = {}
            for _ in range(ROUNDS):
                for number in numbers:
                    seconds, found[number] = seconds_of(form, number, batch)
                    taken[number].append(seconds)
            many, one, bare = (median(taken[number]) for number in numbers)
            rates = " | ".join(f"{size / seconds / 1e6:.1f}" for seconds in (many, one, bare))
            print(
                f"| {form} | {stream} | {rates} | {found[WATCHED]:,} | {many / one:.2f} | {many / bare:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
