"""Queries about the open traces of a matcher, which combine the partial matches of all its per-key matchers (lanes)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.lanes.view import HeldMatches, LaneView, ListedTraces, waiting_states
from nfa.registered import RunningPattern
from nfa.results.open_cases import CasePattern, CaseQuery, Furthest, OpenCase, OpenCases
from streams import key_hash

_MOST_PATTERNS = 20
_MOST_FINER = 100  # maximum number of finer traces that are compared per trace

_Name: TypeAlias = tuple[int, RunningPattern]
_Entry: TypeAlias = tuple[int, int]
"""Index of a lane, and index of an entry of ``HeldMatches`` in this lane."""

_Progress: TypeAlias = tuple[int, Furthest]
"""The number of partial matches of a pattern in a trace, and the furthest partial match."""


class CaseReading:
    """Answers to queries about open traces, read from several lanes.

    ``main`` is the lane of the correlation key. ``others`` are the lanes of finer keys. Draining versions of patterns
    do not count. A query reads the arrays of all open traces and partial matches once. It reads the details of at most
    ``limit`` traces.
    """

    def __init__(self, main: LaneView, others: Sequence[LaneView], patterns: Mapping[str, RunningPattern]) -> None:
        self._main = main
        self._patterns = patterns
        registered = set(patterns.values())
        guarded = [main, *(view for view in others if view.state.home is not None)]  # finer traces follow no guard
        self._views = {pattern: (view, number) for view in guarded for number, pattern in enumerate(view.patterns)}
        self._held = [(view, _of_patterns(view, view.held(), registered)) for view in (main, *others)]

    def answer(self, query: CaseQuery, newest_us: int) -> OpenCases:
        traces = self._main.traces()
        if traces is None:
            return OpenCases(cases=(), matching=0, total=0, unnamed=0, by_last_type={})
        opened = self._main.state.open
        places = np.flatnonzero(self._is_wanted(traces, query, newest_us))
        return OpenCases(
            cases=tuple(self._cases(traces, _oldest(traces, places, query.limit), query.pattern)),
            matching=len(places),
            total=len(traces.keys),
            unnamed=int(traces.is_unnamed.sum()),
            by_last_type={} if opened is None else opened.count_by_last_type(traces.numbers),
        )

    def _is_wanted(self, traces: ListedTraces, query: CaseQuery, newest_us: int) -> NDArray[np.bool_]:
        is_selected = ~traces.is_unnamed
        if query.key is not None:
            is_selected &= traces.keys == key_hash(query.key)
        if query.state == "deviating":
            is_selected &= traces.is_deviating
        if query.state == "matching" or query.pattern is not None or query.waits_for is not None:
            is_selected &= np.isin(traces.keys, self._holding(query.pattern, query.waits_for))
        if query.last_type is not None and self._main.state.open is not None:
            is_selected &= traces.last == self._main.state.open.number_of(query.last_type)
        if query.older_than_us > 0:
            is_selected &= traces.first_us < newest_us - query.older_than_us
        return is_selected

    def _holding(self, pattern: str | None, waits_for: str | None) -> NDArray[np.uint64]:
        """Return the hashed keys of traces in which a partial match waits for an event.

        Only partial matches of ``pattern`` that wait for the type ``waits_for`` count. None means any pattern, or any
        type.
        """
        keys = [np.zeros(0, np.uint64)]
        for view, held in self._held:
            is_wanted = np.array([pattern in (None, candidate.name) for candidate in view.patterns], np.bool_)[
                held.patterns
            ]
            if waits_for is not None:
                waiting = [waiting_states(candidate, waits_for) for candidate in view.patterns]
                places = zip(held.patterns.tolist(), held.states.tolist(), strict=True)
                is_wanted &= np.array([waiting[number][state] for number, state in places], np.bool_)
            keys.append(held.homes[is_wanted])
        return np.concatenate(keys)

    def _cases(self, traces: ListedTraces, places: NDArray[np.intp], first: str | None) -> Iterator[OpenCase]:
        opened, view = self._main.state.open, self._main
        assert opened is not None
        homes = traces.keys[places].tolist()
        entries = self._entries(traces.keys[places])
        pattern_lists = [self._listed_patterns(home, entries, first) for home in homes]
        names = [(home, pattern) for home, patterns in zip(homes, pattern_lists, strict=True) for pattern in patterns]
        furthest = self._furthest({name: entries[name] for name in names if name in entries})
        keys, types = opened.keys_of(traces.numbers[places]), opened.last_types(traces.numbers[places])
        for key, last_type, home, place, patterns in zip(
            keys, types, homes, places.tolist(), pattern_lists, strict=True
        ):
            monitor, events = int(traces.monitors[place]), int(traces.events[place])
            keeping, guard = view.guard_of(int(traces.numbers[place]), monitor)
            yield OpenCase(
                key=key,
                first_us=int(traces.first_us[place]),
                newest_us=int(traces.newest_us[place]),
                last_type=last_type or None,
                events=events if events > 0 else None,
                keeping=keeping,
                guard=guard,
                patterns=tuple(self._pattern(pattern, monitor, furthest.get((home, pattern))) for pattern in patterns),
                more_patterns=len(self._patterns) - len(patterns),
            )

    def _entries(self, homes: NDArray[np.uint64]) -> dict[_Name, list[_Entry]]:
        entries: dict[_Name, list[_Entry]] = {}
        for number, (view, held) in enumerate(self._held):
            for place in np.flatnonzero(np.isin(held.homes, homes)).tolist():
                name = int(held.homes[place]), view.patterns[held.patterns[place]]
                entries.setdefault(name, []).append((number, place))
        return entries

    def _listed_patterns(self, home: int, entries: Collection[_Name], first: str | None) -> list[RunningPattern]:
        alive = [pattern for pattern in self._patterns.values() if (home, pattern) in entries]
        others = (pattern for pattern in self._patterns.values() if (home, pattern) not in entries)
        alive.sort(key=lambda pattern: pattern.name != first)
        return list(islice(chain(alive, others), _MOST_PATTERNS))

    def _furthest(self, entries: Mapping[_Name, Sequence[_Entry]]) -> dict[_Name, _Progress]:
        compared: list[list[tuple[_Name, int]]] = [[] for _ in self._held]
        for name, places in entries.items():
            for number, place in sorted(places, key=self._depth, reverse=True)[:_MOST_FINER]:
                compared[number].append((name, place))
        best: dict[_Name, Furthest] = {}
        for (view, held), chosen in zip(self._held, compared, strict=True):
            candidates = view.furthest(held, [place for _, place in chosen])
            for (name, _), candidate in zip(chosen, candidates, strict=True):
                best[name] = max(best.get(name, candidate), candidate, key=_rank)
        held_by = [held for _, held in self._held]
        return {
            name: (sum(int(held_by[number].counts[place]) for number, place in entries[name]), candidate)
            for name, candidate in best.items()
        }

    def _depth(self, entry: _Entry) -> int:
        number, place = entry
        view, held = self._held[number]
        depths: Sequence[int] = view.patterns[int(held.patterns[place])].automaton.depths
        return depths[int(held.states[place])]

    def _pattern(self, pattern: RunningPattern, monitor: int, held: _Progress | None) -> CasePattern:
        if held is not None:
            count, furthest = held
            return CasePattern(
                name=pattern.name, version=pattern.version, state="alive", partial_matches=count, furthest=furthest
            )
        view, number = self._views.get(pattern, (None, 0))
        can_match = view is None or view.can_match(number, monitor)
        return CasePattern(name=pattern.name, version=pattern.version, state="waiting" if can_match else "ended")


def _oldest(traces: ListedTraces, places: NDArray[np.intp], limit: int) -> NDArray[np.intp]:
    first_us = traces.first_us[places]
    if len(places) > limit:
        is_old = first_us <= np.partition(first_us, limit)[limit]
        places, first_us = places[is_old], first_us[is_old]
    return places[np.lexsort((traces.keys[places], first_us))[:limit]]


def _of_patterns(view: LaneView, held: HeldMatches, patterns: Collection[RunningPattern]) -> HeldMatches:
    is_wanted = np.array([pattern in patterns for pattern in view.patterns], np.bool_)[held.patterns]
    return HeldMatches(*(getattr(held, name)[is_wanted] for name in HeldMatches.__slots__))


def _rank(furthest: Furthest) -> tuple[int, int, list[str]]:
    bound = furthest.bound
    return len(bound), max(step.time_us for step in bound), [step.event_id for step in bound]
