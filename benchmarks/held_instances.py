"""Peak held instances with and without constraints, on Q1, Q2 and EP1.

Held instances are (pattern, instance) pairs bound in a kept partial match, as C-CEP counts memory (constraint-aware
CEP, section 8). The peak is taken after as many orders have finished as run concurrently, so that the common start does
not count. Nothing is timed.
"""

from __future__ import annotations

from benchmarks.workload import EP1, Q1, Q2, order_constraints, orders
from constraints import ConstraintSet, Monitor
from nfa import Matcher
from streams import Event, EventBatch
from workflows import OrderSettings

ORDERS = 20_000
CONCURRENT = 1_000
CASES = {
    "Q1, 50% local": (Q1, OrderSettings(reject=0.0, cancel=0.0, local=0.5, invoice_fail=0.0)),
    "Q1, 90% local": (Q1, OrderSettings(reject=0.0, cancel=0.0, local=0.9, invoice_fail=0.0)),
    "Q2, 90% local": (Q2, OrderSettings(reject=0.0, cancel=0.0, local=0.9, quote_fail=0.5)),
    "EP1, 50% local, 10% cancelled": (EP1, OrderSettings(reject=0.0, cancel=0.1, local=0.5)),
}


def main() -> None:
    """Print peaks and what is saved."""
    constraint_set = order_constraints()
    print(f"peak held instances, {ORDERS:,} orders, {CONCURRENT:,} at a time")
    for name, (text, settings) in CASES.items():
        events = orders(ORDERS, concurrent=CONCURRENT, settings=settings)
        without, state_without, matches = _peak(text, events, constraint_set, is_pruning=False)
        pruned, state_pruned, same = _peak(text, events, constraint_set, is_pruning=True)
        if matches != same:
            raise SystemExit(f"{name}: {matches} matches without constraints, {same} with them")
        saved, bytes_saved = 1 - pruned / without, 1 - state_pruned / state_without
        print(f"  {name:30} {without:6,} -> {pruned:6,}  ({-saved:+.0%})   state bytes {-bytes_saved:+.0%}")


def _peak(text: str, events: list[Event], constraint_set: ConstraintSet, *, is_pruning: bool) -> tuple[int, int, int]:
    """Peak held instances, largest state in bytes, matches."""
    matcher = Matcher(end_events=constraint_set.end_events)
    matcher.add_pattern(text)
    if is_pruning:
        matcher.set_guard(1, Monitor(constraint_set))
    finished = peak = state = matches = 0
    batch = 200
    for start in range(0, len(events), batch):
        part = events[start : start + batch]
        matches += matcher.process(EventBatch.from_events(part)).n_matches
        finished += sum(event.type in constraint_set.end_events for event in part)
        if finished >= CONCURRENT:
            peak = max(peak, matcher.stats.held)
            state = max(state, matcher.stats.state_bytes)
    return peak, state, matches


if __name__ == "__main__":
    main()
