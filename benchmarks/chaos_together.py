"""Several cases of random kills on one service: each kill affects all of them.

scripts/bench chaos_together --kills=30 --events=20000 --pause=1 --seed=11
scripts/bench chaos_together --kills=50 --events=60000 --request=20 --every=0.2 --patient --master='local[2]'
scripts/bench chaos_together --kills=3 --events=10000 --only=paused --patient --master='local[2]'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.aggregate_chaos import Sentences
from benchmarks.derived_chaos import Chain
from benchmarks.join_chaos import Joins
from benchmarks.pipeline_chaos import Case, Orders, Outcome, Plan, main
from service.processes.temporary import TemporaryService
from streams import Event
from tests.builders.service import HandReceiver, receiving


class Together(Case):
    """Several cases as one. The names of all their streams and operators differ, and their requests are posted in turn.

    Args:
        cases: The cases by name, each with its share of the events.

    Attributes:
        outcomes: The expected and found results of each case, by name. Only the outcome of the whole contains kills.
    """

    def __init__(self, cases: Mapping[str, tuple[Case, float]]) -> None:
        self._cases = cases
        self._events: dict[str, list[Event]] = {}
        # Keyed by object identity, because events of different cases may have the same id.
        self._streams: dict[int, str] = {}
        self.outcomes: dict[str, Outcome] = {}

    def events(self, plan: Plan) -> list[Event]:
        """Return the events of all cases. The requests are interleaved so that all cases finish at the same time."""
        turns: list[tuple[float, list[Event]]] = []
        for name, (case, share) in self._cases.items():
            events = self._events[name] = case.events(replace(plan, events=round(share * plan.events)))
            self._streams |= {id(event): case.stream_of(event) for event in events}
            starts = range(0, len(events), plan.request)
            turns += [((start + 1) / len(events), events[start : start + plan.request]) for start in starts]
        return [event for _, part in sorted(turns, key=lambda turn: turn[0]) for event in part]

    def stream_of(self, event: Event) -> str:
        """Return the stream of an event, as its case defines it."""
        return self._streams[id(event)]

    def expected(self, events: Sequence[Event], request: int) -> Outcome:
        """Compute the expected results of each case, and store them in ``outcomes``."""
        self.outcomes = {name: case.expected(self._events[name], request) for name, (case, _) in self._cases.items()}
        return Outcome()

    def declare(self, service: TemporaryService) -> None:
        """Declare the streams, patterns, joins and aggregates of all cases."""
        for case, _ in self._cases.values():
            case.declare(service)

    def ask(self, service: TemporaryService, posted: Mapping[str, Sequence[Event]], outcome: Outcome) -> None:
        """Ask the question of each case."""
        for name, (case, _) in self._cases.items():
            case.ask(service, posted, self.outcomes[name])

    def look(self, service: TemporaryService, outcome: Outcome, patience_s: float) -> None:
        """Collect the results of each case. In ``outcome``, the results are listed under the name of their case."""
        for name, (case, _) in self._cases.items():
            own = self.outcomes[name]
            case.look(service, own, patience_s)
            outcome.others |= {f"{name}: {what}": pair for what, pair in own.others.items()}
            outcome.others[f"{name}: alerts"] = own.expected, own.found
            outcome.others[f"{name}: early endings"] = own.expected_endings, own.found_endings
            outcome.dead_letters += own.dead_letters


def all_cases(folder: Path, receiver: HandReceiver) -> Together:
    """Return four cases: orders, a chain over two other keys, joins with webhooks, and aggregates.

    The projects of the cases are written to ``folder``.
    """
    joins, sentences = Joins(folder / "joins", receiver), Sentences(folder / "aggregates")
    parts = {"orders": (Orders(), 0.5), "chain": (Chain(), 0.2), "joins": (joins, 0.2), "aggregates": (sentences, 0.1)}
    return Together(parts)


if __name__ == "__main__":
    with TemporaryDirectory(prefix="forestall-together-") as name, receiving() as receiver:
        main(all_cases(Path(name), receiver), __doc__)
