"""Several cases of kills at random on one service: each kill is one for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.pipeline_chaos import Case, Outcome, Plan
from service.processes.temporary import TemporaryService
from streams import Event


class Together:
    """Cases whose streams, patterns and joins have different names; their requests are posted in turn.

    Args:
        cases: By name, with how many of the events are theirs, at least.

    Attributes:
        outcomes: What each has and what was found of it, by name; kills are in the outcome of the whole only.
    """

    def __init__(self, cases: Mapping[str, tuple[Case, int]]) -> None:
        self._cases = cases
        self._events: dict[str, list[Event]] = {}
        self._streams: dict[int, str] = {}  # by the object, as events of different cases may have one id
        self.outcomes: dict[str, Outcome] = {}

    def events(self, plan: Plan) -> list[Event]:
        """Those of all cases: a request of one, a request of another, so that all end at the same time."""
        turns: list[tuple[float, list[Event]]] = []
        for name, (case, count) in self._cases.items():
            events = self._events[name] = case.events(replace(plan, events=count))
            self._streams |= {id(event): case.stream_of(event) for event in events}
            starts = range(0, len(events), plan.request)
            turns += [((start + 1) / len(events), events[start : start + plan.request]) for start in starts]
        return [event for _, part in sorted(turns, key=lambda turn: turn[0]) for event in part]

    def stream_of(self, event: Event) -> str:
        """The stream that its case says."""
        return self._streams[id(event)]

    def expected(self, events: Sequence[Event], request: int) -> Outcome:
        """What each case has of its own events."""
        self.outcomes = {name: case.expected(self._events[name], request) for name, (case, _) in self._cases.items()}
        return Outcome()

    def declare(self, service: TemporaryService) -> None:
        """Streams, patterns and joins of all."""
        for case, _ in self._cases.values():
            case.declare(service)

    def look(self, service: TemporaryService, outcome: Outcome, patience_s: float) -> None:
        """What was found of each, and all of it under the name of its case."""
        for name, (case, _) in self._cases.items():
            own = self.outcomes[name]
            case.look(service, own, patience_s)
            outcome.others |= {f"{name}: {what}": pair for what, pair in own.others.items()}
            outcome.others[f"{name}: alerts"] = own.expected, own.found
            outcome.others[f"{name}: early endings"] = own.expected_endings, own.found_endings
            outcome.dead_letters += own.dead_letters
