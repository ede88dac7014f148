"""The open traces of a matcher, with what every lane holds of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.lanes.view import HeldMatches, LaneView, ListedTraces
from nfa.registered import RunningPattern
from nfa.results.open_cases import CasePattern, CaseQuery, Furthest, OpenCase, OpenCases
from streams import key_hash

_MOST_PATTERNS = 20

_Name: TypeAlias = tuple[int, RunningPattern]
_Found: TypeAlias = tuple[int, Furthest]
"""The number of partial matches of a pattern in a trace, and the furthest of them."""


class CaseReading:
    """Answers one query.

    The work is a pass over all open traces and partial matches, by arrays, and the details of at most ``limit`` traces.

    Args:
        main: The lane of the correlation key.
        others: Those of finer keys.
        patterns: Those that are registered, by name; versions on their way out do not count.
    """

    def __init__(self, main: LaneView, others: Sequence[LaneView], patterns: Mapping[str, RunningPattern]) -> None:
        self._main = main
        self._patterns = patterns
        registered = set(patterns.values())
        self._numbers = {pattern: number for number, pattern in enumerate(main.patterns)}
        self._held = [(view, _of_patterns(view, view.held(), registered)) for view in (main, *others)]

    def answer(self, query: CaseQuery, newest_us: int) -> OpenCases:
        """The traces that a query selects.

        Args:
            query: What is asked.
            newest_us: How far time has come.
        """
        traces = self._main.traces()
        if traces is None:
            return OpenCases(cases=(), matching=0, total=0, unnamed=0)
        chosen = np.flatnonzero(self._is_wanted(traces, query, newest_us))
        order = np.lexsort((traces.keys[chosen], traces.first_us[chosen]))
        return OpenCases(
            cases=tuple(self._cases(traces, chosen[order[: query.limit]], query.pattern)),
            matching=len(chosen),
            total=len(traces.keys),
            unnamed=int(traces.is_unnamed.sum()),
        )

    def _is_wanted(self, traces: ListedTraces, query: CaseQuery, newest_us: int) -> NDArray[np.bool_]:
        wanted = ~traces.is_unnamed
        if query.key is not None:
            wanted &= traces.keys == key_hash(query.key)
        if query.state == "deviating":
            wanted &= traces.is_deviating
        if query.state == "matching" or query.pattern is not None:
            wanted &= np.isin(traces.keys, self._holding(query.pattern))
        if query.older_than_us > 0:
            wanted &= traces.first_us < newest_us - query.older_than_us
        return wanted

    def _holding(self, pattern: str | None) -> NDArray[np.uint64]:
        """Hashed keys of the traces in which a pattern, or any, has partial matches."""
        found = [np.zeros(0, np.uint64)]
        for view, held in self._held:
            is_named = np.array([pattern in (None, one.name) for one in view.patterns], np.bool_)
            found.append(held.homes[is_named[held.patterns]])
        return np.concatenate(found)

    def _cases(self, traces: ListedTraces, places: NDArray[np.intp], first: str | None) -> Iterator[OpenCase]:
        opened, view = self._main.state.open, self._main
        assert opened is not None
        held = self._found(traces.keys[places])
        keys = opened.keys_of(traces.numbers[places])
        for key, place in zip(keys, places.tolist(), strict=True):
            monitor, events = int(traces.monitors[place]), int(traces.events[place])
            keeping, guard = view.guard_of(int(traces.numbers[place]), monitor)
            yield OpenCase(
                key=key,
                first_us=int(traces.first_us[place]),
                newest_us=int(traces.newest_us[place]),
                events=events if events > 0 else None,
                keeping=keeping,
                guard=guard,
                patterns=tuple(self._shown(int(traces.keys[place]), monitor, held, first)),
                more_patterns=max(0, len(self._patterns) - _MOST_PATTERNS),
            )

    def _found(self, homes: NDArray[np.uint64]) -> dict[_Name, _Found]:
        """What the lanes hold of some traces; of finer traces of one trace the furthest of all."""
        found: dict[_Name, _Found] = {}
        for view, held in self._held:
            places = np.flatnonzero(np.isin(held.homes, homes)).tolist()
            for place, furthest in zip(places, view.furthest(held, places), strict=True):
                name = int(held.homes[place]), view.patterns[held.patterns[place]]
                count, known = found.get(name, (0, furthest))
                found[name] = count + int(held.counts[place]), max(known, furthest, key=_rank)
        return found

    def _shown(self, home: int, monitor: int, held: Mapping[_Name, _Found], first: str | None) -> Iterator[CasePattern]:
        """Patterns in a trace, those that hold something before others, and the one named ``first`` before all."""
        alive = [pattern for pattern in self._patterns.values() if (home, pattern) in held]
        others = (pattern for pattern in self._patterns.values() if (home, pattern) not in held)
        alive.sort(key=lambda pattern: pattern.name != first)
        for pattern in islice(chain(alive, others), _MOST_PATTERNS):
            yield self._pattern(pattern, monitor, held.get((home, pattern)))

    def _pattern(self, pattern: RunningPattern, monitor: int, held: _Found | None) -> CasePattern:
        if held is not None:
            count, furthest = held
            return CasePattern(
                name=pattern.name, version=pattern.version, state="alive", partial_matches=count, furthest=furthest
            )
        number = self._numbers.get(pattern)  # finer traces follow no guard
        can_match = number is None or self._main.can_match(number, monitor)
        return CasePattern(name=pattern.name, version=pattern.version, state="waiting" if can_match else "ended")


def _of_patterns(view: LaneView, held: HeldMatches, patterns: Collection[RunningPattern]) -> HeldMatches:
    is_wanted = np.array([pattern in patterns for pattern in view.patterns], np.bool_)[held.patterns]
    return HeldMatches(*(getattr(held, name)[is_wanted] for name in HeldMatches.__slots__))


def _rank(furthest: Furthest) -> tuple[int, int]:
    return len(furthest.bound), max(step.time_us for step in furthest.bound)
