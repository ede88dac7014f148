"""The matcher of one stream in one shard: patterns and a guard in, batches in, findings out, state as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa import arena, snapshot
from nfa.automaton import compile_automaton
from nfa.errors import PatternRefused, StateFormatError, UnknownPattern
from nfa.event_store import EventStore
from nfa.guard_tables import GuardTables
from nfa.guards import Guard
from nfa.kernels import matching as kernel
from nfa.kernels.matching import MATCH_HEADER, NIL, UNGUARDED, Columns, Output
from nfa.parsing import parse_pattern
from nfa.query import Query
from nfa.query_building import build_query
from nfa.results import MatcherStats, MatchOutput
from streams import EventBatch

MATCH_LIMIT = 10_000

_NO_SEEN: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredPattern:
    """A pattern that the matcher runs; ``text`` is what was registered."""

    name: str
    version: int
    text: str
    query: Query


class Matcher:
    """Runs patterns over the batches of one stream.

    Every event of the stream must pass through, also those that no pattern listens to: a guard judges whole traces.

    Args:
        end_events: Types that end a trace; a later event of the key opens a new one.
        match_limit: Most matches reported per trace, pattern and event; the rest is counted as overflow.
    """

    def __init__(self, *, end_events: Iterable[str] = (), match_limit: int = MATCH_LIMIT) -> None:
        if match_limit < 1:
            raise ValueError(f"match_limit is {match_limit}: at least 1")
        self._end_events = frozenset(end_events)
        self._match_limit = match_limit
        self._patterns: dict[str, RegisteredPattern] = {}
        self._guards = GuardTables({})
        self._guard_version: int | None = None
        self._automaton = compile_automaton((), frozenset(), self._end_events)
        self._compiled: tuple[RegisteredPattern, ...] = ()
        self._state = arena.new_state(patterns=0, states=0)
        self._events = EventStore()
        self._output = _new_output(0)
        self._is_stale = True
        self._is_midway = False

    @property
    def patterns(self) -> Mapping[str, RegisteredPattern]:
        """The registered patterns by name."""
        return MappingProxyType(self._patterns)

    def add_pattern(self, text: str, *, version: int = 1) -> Query:
        """Register a pattern from here on; one of the same name is replaced and its partial matches go.

        Raises:
            PatternRefused: The text is refused.
        """
        pattern = parse_pattern(text)
        query = build_query(pattern)
        self._patterns.pop(pattern.name, None)
        self._patterns[pattern.name] = RegisteredPattern(name=pattern.name, version=version, text=text, query=query)
        self._is_stale = True
        return query

    def remove_pattern(self, name: str) -> None:
        """Forget a pattern and its partial matches.

        Raises:
            UnknownPattern: No pattern of that name is registered.
        """
        if name not in self._patterns:
            known = ", ".join(sorted(self._patterns)) or "none"
            raise UnknownPattern(f"no pattern {name!r} is registered here; registered: {known}", name=name)
        del self._patterns[name]
        self._is_stale = True

    def set_guard(self, version: int, guard: Guard) -> None:
        """Let traces that begin from here on follow a guard; open traces keep theirs."""
        self._guards.guards[version] = guard
        self._guard_version = version
        self._is_stale = True

    @property
    def guard_versions_in_use(self) -> frozenset[int]:
        """Versions that open traces follow or new traces will."""
        monitors = np.unique(self._state.trace_monitor[arena.open_traces(self._state)]).tolist()
        states = (self._guards.states[monitor] for monitor in monitors)
        versions = {state[0] for state in states if state is not None}
        return frozenset(versions if self._guard_version is None else versions | {self._guard_version})

    @property
    def stats(self) -> MatcherStats:
        """Counts so far."""
        if self._is_stale:
            self._compile()
        counters = self._state.counters
        return MatcherStats(
            events=int(counters[kernel.EVENTS]),
            matches=int(counters[kernel.MATCHES]),
            endings=int(counters[kernel.ENDINGS]),
            deviations=int(counters[kernel.DEVIATIONS]),
            overflow=int(counters[kernel.OVERFLOW]),
            out_of_order=int(counters[kernel.OUT_OF_ORDER]),
            open_traces=int(counters[kernel.TRACES]),
            held=int(counters[kernel.INSTANCES]),
            peak_held=int(counters[kernel.PEAK_INSTANCES]),
            nodes=int(counters[kernel.NODES]),
            state_bytes=arena.state_bytes(self._state),
            guard_steps=int(counters[kernel.GUARD_STEPS]),
            guard_builds=self._guards.builds,
            guard_refusals=self._guards.refused,
        )

    def process(self, batch: EventBatch) -> MatchOutput:
        """Match one batch; rows are taken in their order.

        Raises:
            RuntimeError: An earlier batch was interrupted, so that the state is half advanced; load saved state.
        """
        self._check_whole()
        if self._is_stale:
            self._compile()
        first_sequence = int(self._state.counters[kernel.EVENTS])
        columns = self._columns(batch)
        self._is_midway = True
        matches, endings = self._run(columns)
        times_us = columns.times
        bound = matches[:, MATCH_HEADER:]
        sequences = np.unique(bound[bound != NIL])
        ids, found_times = self._identify(sequences, first_sequence, batch, times_us)
        matches[:, MATCH_HEADER:] = np.where(bound == NIL, NIL, np.searchsorted(sequences, bound))
        matches = self._without_repeats(matches)
        self._remember(first_sequence, batch, times_us)
        self._is_midway = False
        numbers = np.unique(endings[endings[:, 4] != kernel.DROPPED, 2:4]).tolist()
        states = {number: self._guards.states[number] for number in numbers}
        return MatchOutput(
            names=tuple((pattern.name, pattern.version) for pattern in self._compiled),
            automaton=self._automaton,
            batch=batch,
            match_rows=matches,
            event_ids=ids,
            event_times_us=found_times,
            ending_rows=endings,
            monitors={number: state for number, state in states.items() if state is not None},
        )

    def dump(self) -> bytes:
        """The whole state as bytes; ``load`` continues from them as if nothing had happened.

        Raises:
            RuntimeError: A batch was interrupted, so that the state is half advanced.
        """
        self._check_whole()
        if self._is_stale:
            self._compile()
        self._events.compact(np.unique(self._held_sequences()))
        header = snapshot.Header(
            end_events=sorted(self._end_events),
            match_limit=self._match_limit,
            patterns=[(pattern.name, pattern.version, pattern.text) for pattern in self._compiled],
            guard_version=self._guard_version,
            monitors=[],
        )
        return snapshot.dump(header, self._state, self._guards.states, self._events)

    @classmethod
    def load(cls, body: bytes, guards: Mapping[int, Guard]) -> Matcher:
        """A matcher that continues from dumped state.

        Args:
            body: What ``dump`` returned.
            guards: At least the guards of ``guard_versions_in_use`` at the time of the dump.

        Raises:
            StateFormatError: The bytes are damaged, of another version, or name a guard that is not given.
        """
        header, state, events = snapshot.load(body, guards.keys())
        matcher = cls(end_events=header.end_events, match_limit=header.match_limit)
        try:
            for _, version, text in header.patterns:
                matcher.add_pattern(text, version=version)
        except PatternRefused as error:
            raise StateFormatError(f"saved state holds a pattern that is refused now: {error.message}") from error
        matcher._guards = GuardTables(guards)
        matcher._guard_version = header.guard_version
        for version, seen in header.monitors:
            matcher._guards.intern(version, frozenset(seen))
        matcher._compiled = tuple(matcher._patterns.values())
        matcher._state, matcher._events = state, events
        snapshot.check_layout(state, [pattern.query for pattern in matcher._compiled])
        return matcher

    def _compile(self) -> None:
        """Tables for the patterns and guards of now; what open traces hold moves to its new columns."""
        self._forget_unused_guards()
        patterns = tuple(self._patterns.values())
        queries = [pattern.query for pattern in patterns]
        automaton = compile_automaton(queries, self._guards.types, self._end_events)
        old = [pattern.query for pattern in self._compiled]
        sources = [next((i for i, other in enumerate(self._compiled) if other is pattern), NIL) for pattern in patterns]
        self._state = arena.migrated(self._state, old, queries, sources)
        start = UNGUARDED if self._guard_version is None else self._guards.intern(self._guard_version, _NO_SEEN)
        self._guards.compile(automaton, start)
        self._automaton, self._compiled = automaton, patterns
        self._output = _new_output(automaton.width)
        self._is_stale = False

    def _columns(self, batch: EventBatch) -> Columns:
        codes = {name: code for code, name in enumerate(self._automaton.types)}
        lookup = [codes.get(name, self._automaton.other_type) for name in batch.type_names]
        return Columns(
            types=np.array(lookup, np.int32)[batch.type_codes] if lookup else np.zeros(0, np.int32),
            keys=np.array(batch.key_hashes, np.uint64),
            times=np.array(batch.time_us, np.int64),
            passed=self._automaton.predicates.evaluate(batch),
        )

    def _run(self, columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Drive the kernel over a batch and supply what it stops for."""
        matches: list[NDArray[np.int64]] = []
        endings: list[NDArray[np.int64]] = []
        row: kernel.Int = 0
        while True:
            status, row = kernel.match_batch(
                self._automaton.program,
                self._guards.tables,
                self._state,
                columns,
                self._output,
                row,
                self._match_limit,
            )
            if status in (kernel.DONE, kernel.MATCHES_FULL, kernel.ENDINGS_FULL):
                filled = self._output.filled.tolist()
                matches.append(self._output.matches[: filled[0]].copy())
                endings.append(self._output.endings[: filled[1]].copy())
                self._output.filled[:] = 0
            if status == kernel.DONE:
                self._state.counters[kernel.EVENTS] += row
                return np.concatenate(matches), np.concatenate(endings)
            self._supply(status, columns, row, is_drained=filled == [0, 0] if status >= kernel.MATCHES_FULL else False)

    def _supply(self, status: kernel.Int, columns: Columns, row: kernel.Int, *, is_drained: bool) -> None:
        if status == kernel.MISSING_GUARD:
            monitor = int(self._state.counters[kernel.STOP_MONITOR])
            self._guards.build(monitor, int(columns.types[row]))
        elif status == kernel.NODES_FULL:
            self._state = arena.with_more_nodes(self._state, len(self._automaton.program.pattern))
        elif status == kernel.TRACES_FULL:
            self._state = arena.with_more_traces(self._state)
        elif is_drained:
            self._output = _larger_output(self._output)

    def _identify(
        self, sequences: NDArray[np.int64], first_sequence: int, batch: EventBatch, times_us: NDArray[np.int64]
    ) -> tuple[pa.Array, NDArray[np.int64]]:
        """Ids and times of events by sequence number (ascending), from the store and from the batch at hand."""
        border = int(np.searchsorted(sequences, first_sequence))
        stored = self._events.find(sequences[:border])
        rows = sequences[border:] - first_sequence
        ids = pa.concat_arrays(
            [self._events.ids.take(pa.array(stored)), batch.columns.column("id").take(pa.array(rows))]
        )
        return ids, np.concatenate([self._events.times_us[stored], times_us[rows]])

    def _remember(self, first_sequence: int, batch: EventBatch, times_us: NDArray[np.int64]) -> None:
        """Keep identity and time of what the batch left bound."""
        held = self._held_sequences()
        rows = np.unique(held[held >= first_sequence]) - first_sequence
        self._events.append(rows + first_sequence, batch.columns.column("id").take(pa.array(rows)), times_us[rows])
        if self._events.is_worth_compacting(len(held)):
            self._events.compact(np.unique(held))

    def _held_sequences(self) -> NDArray[np.int64]:
        """Of the instances in use, in any order; one event may be several instances."""
        return self._state.instance_sequence[self._state.instance_references > 0]

    def _check_whole(self) -> None:
        if self._is_midway:
            raise RuntimeError("an earlier batch was interrupted: this matcher is half advanced, load saved state")

    def _forget_unused_guards(self) -> None:
        """Monitor states and guard versions that neither an open trace nor a new one can be in are given up."""
        old = self._guards
        traces = arena.open_traces(self._state)
        fresh = GuardTables({version: old.guards[version] for version in self.guard_versions_in_use})
        fresh.builds, fresh.refused = old.builds, old.refused
        numbers = np.arange(len(old.states), dtype=np.int32)
        for number in np.unique(self._state.trace_monitor[traces]).tolist():
            if (state := old.states[number]) is not None:
                numbers[number] = fresh.intern(*state)
        self._state.trace_monitor[traces] = numbers[self._state.trace_monitor[traces]]
        self._guards = fresh

    def _without_repeats(self, matches: NDArray[np.int64]) -> NDArray[np.int64]:
        """Alternatives of an OR may bind the same events to the same aliases: that is one match."""
        repeating = [number for number, pattern in enumerate(self._compiled) if _may_repeat(pattern.query)]
        if not repeating or not len(matches):
            return matches
        seen: set[tuple[int, int, frozenset[tuple[str, int]]]] = set()
        keep = np.ones(len(matches), np.bool_)
        for index in np.flatnonzero(np.isin(matches[:, 1], repeating)).tolist():
            row, pattern, term, *bound = matches[index].tolist()
            atoms = self._compiled[pattern].query.terms[term].atoms
            binding = frozenset((atom.alias, event) for atom, event in zip(atoms, bound, strict=False))
            keep[index] = (row, pattern, binding) not in seen
            seen.add((row, pattern, binding))
        self._state.counters[kernel.MATCHES] -= int((~keep).sum())
        return matches[keep]


def _may_repeat(query: Query) -> bool:
    aliases = [frozenset(atom.alias for atom in term.atoms) for term in query.terms]
    return len(set(aliases)) < len(aliases)


def _new_output(width: int, matches: int = 4_096, endings: int = 4_096) -> Output:
    return Output(
        matches=np.zeros((matches, MATCH_HEADER + width), np.int64),
        endings=np.zeros((endings, kernel.ENDING_WIDTH), np.int64),
        filled=np.zeros(2, np.int64),
        binding=np.zeros(width, np.int64),
    )


def _larger_output(output: Output) -> Output:
    return _new_output(len(output.binding), 2 * len(output.matches), 2 * len(output.endings))
