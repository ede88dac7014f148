"""Inputs of joins that constraints finish (``closed_by: workflow``).

An input is finished in a trace once the constraints of the stream allow no more of its events there. The decision is
that of early termination for a pattern. After each event, ``RuledOut`` asks whether an event of these types can still
occur in any continuation that keeps the constraints (constraint-aware CEP, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa import ANY_TYPE, OTHER, Atom, EventClass, MonitorState
from shards.kinds.patterns.rules import Rules, rules_of
from streams import ConstraintsOn, Ties, key_hash

_RELEASED = -1  # the trace deviates or needs too many monitor states, so any event may occur


@dataclass(slots=True)
class _Trace:
    version: int
    state: int
    finished: frozenset[str]
    last_us: int


class _Version:
    def __init__(self, name: str, document: Any, ties: Ties, states: Sequence[MonitorState] = ()) -> None:
        self.name, self.document = name, document
        self.rules: Rules = rules_of(document, ties)
        monitor = self.rules.monitor
        self.is_usable = ties == "log" and not monitor.symbols
        self.states: list[MonitorState] = list(states) or [monitor.start]
        self._numbers = {state: number for number, state in enumerate(self.states)}
        self._moves: dict[tuple[int, str], int] = {}
        self._answers: dict[tuple[int, tuple[str, ...]], bool] = {}

    def moved(self, state: int, event_type: str) -> int:
        """Return the index of the state after an event, or ``_RELEASED`` if the trace is no longer monitored."""
        number = self._moves.get((state, event_type))
        if number is None:
            number = self._moves[state, event_type] = self._move(state, event_type)
        return number

    def can_come(self, state: int, types: tuple[str, ...]) -> bool:
        answer = self._answers.get((state, types))
        if answer is None:
            atom = Atom(types or (ANY_TYPE,), "x")
            answer = self._answers[state, types] = self.rules.monitor.can_occur(self.states[state], atom)
        return answer

    def _move(self, state: int, event_type: str) -> int:
        monitor = self.rules.monitor
        known_type = event_type if event_type in monitor.types else OTHER
        after = monitor.step(self.states[state], EventClass(type=known_type))
        if after is None:
            return _RELEASED
        if after not in self._numbers:
            if len(self.states) >= monitor.policy.max_monitor_states:
                return _RELEASED
            self._numbers[after] = len(self.states)
            self.states.append(after)
        return self._numbers[after]


class RuledOut:
    """Finds the inputs of joins whose events the constraints no longer allow in a trace (``closed_by: workflow``).

    Every open trace of the stream has a monitor state.

    Args:
        ties: How events with equal timestamps are ordered. Constraints finish inputs only if the log orders such
            events.
        begun: Hashed keys of traces that are already open. They are not monitored, because their events were not seen.
    """

    def __init__(self, ties: Ties, begun: Iterable[int] = ()) -> None:
        self._ties = ties
        self._begun = set(begun)
        self._versions: dict[int, _Version] = {}
        self._traces: dict[str, _Trace] = {}

    def follow(self, record: ConstraintsOn) -> None:
        """Follow these constraints in all traces that begin from now on."""
        if record.version not in self._versions:
            self._versions[record.version] = _Version(record.name, record.document, self._ties)

    def restart(self, name: str) -> None:
        """Forget in which traces an input is finished, so that the next event of each trace may report this again."""
        for trace in self._traces.values():
            trace.finished -= {name}

    def see(self, key: str, event_type: str, time_us: int, inputs: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
        """Process an event of a trace, and yield the inputs that the event finishes in this trace.

        ``inputs`` has the event types of each input, by name of the input. Empty types mean all types.
        """
        trace = self._traces.get(key)
        if trace is None:
            trace = self._traces[key] = self._new(key, time_us)
        trace.last_us = max(trace.last_us, time_us)
        if trace.state == _RELEASED:
            return
        version = self._versions[trace.version]
        trace.state = version.moved(trace.state, event_type)
        if trace.state == _RELEASED:
            return
        for name, types in inputs.items():
            if name not in trace.finished and not version.can_come(trace.state, types):
                trace.finished |= {name}
                yield name

    def _new(self, key: str, time_us: int) -> _Trace:
        """Create a trace, unmonitored if it was open when the inputs started or the constraints cannot be used."""
        newest = max(self._versions, default=0)
        is_known = bool(self._versions) and self._versions[newest].is_usable
        if self._begun and (hashed := key_hash(key)) in self._begun:
            self._begun.discard(hashed)
            is_known = False
        return _Trace(newest, 0 if is_known else _RELEASED, frozenset(), time_us)

    def ends(self, event_type: str) -> bool:
        """Return whether events of a type end traces under the newest constraints."""
        return bool(self._versions) and event_type in self._versions[max(self._versions)].rules.trace_ends

    def end(self, key: str) -> None:
        self._traces.pop(key, None)
        if self._begun:
            self._begun.discard(key_hash(key))

    def end_idle(self, key: str, until_us: int) -> None:
        """End the trace of a key if its newest event is at or before a time."""
        trace = self._traces.get(key)
        if trace is not None and trace.last_us <= until_us:
            del self._traces[key]

    def pass_time(self, until_us: int) -> None:
        """End all traces whose newest event is at or before a time."""
        for key in [key for key, trace in self._traces.items() if trace.last_us <= until_us]:
            del self._traces[key]

    def keep(self, is_kept: Callable[[NDArray[np.uint64]], NDArray[np.bool_]]) -> None:
        """Keep the traces of the chosen keys, and drop all others."""
        keys = list(self._traces)
        are_kept = is_kept(np.array([key_hash(key) for key in keys], np.uint64))
        self._traces = {key: self._traces[key] for key, stays in zip(keys, are_kept.tolist(), strict=True) if stays}
        begun = np.array(sorted(self._begun), np.uint64)
        self._begun = set(begun[is_kept(begun)].tolist())

    def dump(self) -> dict[str, Any]:
        """Return the traces, and the versions of constraints that they use, as plain JSON.

        Other versions of constraints are dropped.
        """
        newest = max(self._versions, default=0)
        used_states: dict[int, list[int]] = {newest: [0]} if self._versions else {}
        for trace in self._traces.values():
            if trace.state != _RELEASED:
                used_states.setdefault(trace.version, [0]).append(trace.state)
        self._versions = {number: version for number, version in self._versions.items() if number in used_states}
        states = {number: sorted(set(state_numbers)) for number, state_numbers in used_states.items()}
        versions = []
        for number, state_numbers in sorted(states.items()):
            version = self._versions[number]
            versions.append(
                [
                    number,
                    version.name,
                    version.document,
                    [_state_form(version.states[state]) for state in state_numbers],
                ]
            )
        return {
            "begun": sorted(self._begun),
            "versions": versions,
            "traces": [
                [
                    key,
                    trace.version,
                    _RELEASED if trace.state == _RELEASED else states[trace.version].index(trace.state),
                    sorted(trace.finished),
                    trace.last_us,
                ]
                for key, trace in self._traces.items()
            ],
        }

    @classmethod
    def load(cls, saved: Mapping[str, Any], ties: Ties) -> RuledOut:
        """Restore the traces that ``dump`` saved."""
        restored = cls(ties, saved["begun"])
        for number, name, document, states in saved["versions"]:
            restored._versions[number] = _Version(name, document, ties, [_state_of(form) for form in states])
        for key, version, state, finished, last_us in saved["traces"]:
            restored._traces[key] = _Trace(version, state, frozenset(finished), last_us)
        return restored


def _state_form(state: MonitorState) -> list[Any]:
    return [sorted(state.seen), list(state.places)]


def _state_of(form: Sequence[Any]) -> MonitorState:
    seen, places = form
    return MonitorState(seen=frozenset(seen), places=tuple(places))
