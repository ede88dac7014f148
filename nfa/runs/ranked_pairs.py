"""Ranking of matches before emission, for (trace, pattern) entries with an after-match rule, LIMIT or timeouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nfa.kernels.runs import tables
from nfa.kernels.runs.tables import EARLIEST, LATEST, NIL, RunMatches, RunState
from nfa.results.found import MatchTable
from nfa.runs import state as run_state
from nfa.runs.output import Chains, Collected, unrolled
from nfa.runs.program import CompiledRuns
from nfa.runs.upkeep import deadline, forget, free_run, time_out
from nfa.syntax import After


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPairs:
    """Ranks and emits the decided matches of (trace, pattern) pairs. ``state`` is changed in place.

    Attributes:
        found: Receives timeouts, and must have room for all runs of a pair.
        match_limit: Maximum number of matches per detection time, for a pattern without LIMIT.
        is_input_over: Whether traces end because the input ends.
    """

    state: RunState
    compiled: CompiledRuns
    found: RunMatches
    id_of: Callable[[int], str]
    is_simultaneous: bool
    match_limit: int
    is_input_over: bool

    def flush(
        self, pair: int, time_us: tables.Int, collected: Collected, row: tables.Int, *, is_last: bool = False
    ) -> None:
        """Rank and emit the matches of a pair that were decided before ``time_us``.

        All events before ``time_us`` must have been processed. Timeouts up to this time are reported. With ``is_last``
        no more events of this time can arrive, so matches decided at this time are emitted, too. If ``time_us`` is
        ``LATEST``, the trace has ended. If the pair has no data left, it is closed.
        """
        state, number = self.state, int(self.state.pair_pattern[pair])
        every = run_state.runs_of(state, pair)
        runs = {run: self._ranked(run, number) for run in every if state.run_kind[run] != tables.REPORTED}
        decided = self._decided(runs, time_us, is_last=is_last)
        if decided and state.pair_told[pair] == tables.NOT_REPORTED_YET:
            state.pair_told[pair] = tables.HAS_REPORTED
        emitted = self._emitted(pair, runs, decided, collected, row)
        self._collect(collected.parts, pair, [(run, runs[run].detected_us) for run in emitted], row)
        has_timeouts = self.compiled.automata[number].pattern.timeouts
        self._settle(pair, decided, set(emitted), is_kept=has_timeouts)
        if has_timeouts:
            time_out(self.compiled.program, state, self.found, pair, time_us)
        if time_us == LATEST:
            return
        if not has_timeouts:
            gone = self._gone(pair, runs, time_us).union(decided)
            early = {run for run in every if state.run_kind[run] == tables.REPORTED}
            self._remove(pair, (gone - early).union(run for run in early if state.run_due[run] <= time_us))
        forget(self.compiled.program, state, pair, time_us)

    def _gone(self, pair: int, runs: Mapping[int, Ranked], time_us: tables.Int) -> set[int]:
        state = self.state
        if state.pair_finished[pair]:
            return set(runs)
        return {
            run
            for run in runs
            if state.run_muted[run]
            or (state.run_kind[run] == tables.ACTIVE and state.run_end[run] != LATEST and time_us >= state.run_end[run])
        }

    def _decided(self, runs: Iterable[int], time_us: tables.Int, *, is_last: bool) -> list[int]:
        """Return the runs that are decided at ``time_us``.

        These are the runs that were decided before ``time_us``, and the runs whose deadline is ``time_us``. With
        ``is_last``, all other runs decided at this time are included, too.
        """
        state, decided = self.state, []
        for run in runs:
            is_before = state.run_due[run] < time_us
            is_reached = state.run_due[run] == time_us and not self._is_waited(run)
            if state.run_kind[run] == tables.PENDING and (is_before or is_reached):
                state.run_kind[run] = tables.DECIDED
                state.run_how[run] = state.run_how[run] or tables.BY_WINDOW
            is_at_once = is_reached or (is_last and state.run_due[run] == time_us)
            if state.run_kind[run] == tables.DECIDED and (is_before or is_at_once):
                decided.append(run)
        return decided

    def _is_waited(self, run: int) -> bool:
        """Return whether a match is decided only after all events of its detection time."""
        state = self.state
        is_otherwise = state.run_kind[run] == tables.DECIDED and state.run_how[run] != tables.BY_WINDOW
        return bool(state.run_lead[run] != EARLIEST or is_otherwise)

    def _settle(self, pair: int, decided: Iterable[int], emitted: Container[int], *, is_kept: bool) -> None:
        """Retain the decided matches that may still be needed.

        A match that was emitted before its deadline is retained, because it can be retracted until then. With
        ``is_kept``, all matches are retained for the search for timeouts.
        """
        state = self.state
        state.now[tables.PATTERN] = state.pair_pattern[pair]
        for run in decided:
            latest = deadline(self.compiled.program, state, run)
            is_early = run in emitted and latest > state.run_due[run]
            if is_kept:
                state.run_kind[run], state.run_lead[run] = tables.SPENT, tables.WAS_MATCH
                state.run_due[run] = latest if is_early else EARLIEST
            elif is_early:
                state.run_kind[run], state.run_due[run] = tables.REPORTED, latest

    def _emitted(
        self, pair: int, runs: Mapping[int, Ranked], decided: Sequence[int], collected: Collected, row: tables.Int
    ) -> list[int]:
        state = self.state
        number = int(state.pair_pattern[pair])
        pattern = self.compiled.automata[number].pattern
        limit = self.match_limit if pattern.limit is None else pattern.limit
        emitted: list[int] = []
        seen: set[frozenset[tuple[str, tuple[Rank, ...]]]] = set()
        counts: Counter[tuple[bool, int, bool]] = Counter()
        for run in sorted(decided, key=lambda run: emission_order(runs[run])):
            match = runs[run]
            if state.run_muted[run] or match.identity in seen or state.pair_finished[pair]:
                continue
            seen.add(match.identity)
            counts[match.decision] += 1
            if counts[match.decision] <= limit:
                emitted.append(run)
            else:
                collected.lost.append(np.array([[row, number, 1, 0, 0, 0]], np.int64))
            for other, ranked in runs.items():
                is_twin = state.run_kind[other] == tables.PENDING and ranked.identity == match.identity
                if other != run and (
                    is_twin or rules_out(pattern.after, match, ranked, is_simultaneous=self.is_simultaneous)
                ):
                    state.run_muted[other] = True
            state.pair_finished[pair] = pattern.after.rule == "once_per_key"
        return emitted

    def _ranked(self, run: int, pattern: int) -> Ranked:
        state = self.state
        atoms = self.compiled.automata[pattern].atoms
        bindings: dict[str, tuple[Rank, ...]] = {}
        times, node = [], int(state.run_node[run])
        while node != NIL:
            event = int(state.node_event[node])
            time_us, sequence = int(state.event_time[event]), int(state.event_sequence[event])
            rank: Rank = (time_us, self.id_of(sequence) if self.is_simultaneous else sequence)
            alias = atoms[int(state.node_atom[node])].alias
            bindings[alias] = (rank, *bindings.get(alias, ()))
            times.append(time_us)
            node = int(state.node_parent[node])
        due = int(state.run_due[run])
        is_at_end = self.is_input_over and bool(state.run_how[run] == tables.BY_TRACE_END)
        return Ranked(
            run=run,
            bindings=bindings,
            is_at_end=is_at_end,
            is_waited=self._is_waited(run),
            detected_us=due,
            start_us=min(times),
            end_us=max(times),
        )

    def _collect(self, parts: list[MatchTable], pair: int, runs: Sequence[tuple[int, int]], row: tables.Int) -> None:
        if not runs:
            return
        state, run_numbers = self.state, [run for run, _ in runs]
        chains = Chains(
            nodes=state.run_node[run_numbers],
            patterns=np.full(len(runs), state.pair_pattern[pair], np.int32),
            rows=np.full(len(runs), row, np.int64),
            detected_us=np.array([detected_us for _, detected_us in runs], np.int64),
            how=state.run_how[run_numbers],
            traces=np.full(len(runs), state.pair_trace[pair], np.int32),
        )
        parts.append(unrolled(state, chains, releases=False))

    def _remove(self, pair: int, gone: Iterable[int]) -> None:
        state, leaving = self.state, set(gone)
        remaining = [run for run in run_state.runs_of(state, pair) if run not in leaving]
        for run in leaving:
            free_run(state, run)
        for run, following in zip(remaining, [*remaining[1:], int(NIL)], strict=False):
            state.run_next[run] = following
        state.pair_runs[pair] = remaining[0] if remaining else NIL
        state.pair_count[pair] = len(remaining)


Rank: TypeAlias = tuple[int, int | str]  # (time, log position), or (time, id) under ties: simultaneous


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A match or partial match in a form that can be ranked.

    ``bindings`` has, for each alias, a pair for each bound event: the event's time and its sequence number, or its id
    if events with equal timestamps are simultaneous.

    Attributes:
        is_at_end: Whether the end of the input decides the match. Such a match is emitted after all others.
        is_waited: Whether the match is decided only when no other event of its time can arrive. A match with a deadline
            at the same time is decided earlier.
    """

    run: int
    bindings: Mapping[str, tuple[Rank, ...]]
    is_at_end: bool
    is_waited: bool
    detected_us: int
    start_us: int
    end_us: int

    @property
    def decision(self) -> tuple[bool, int, bool]:
        """The moment at which the match is decided, as a sort key.

        A LIMIT counts matches separately for each moment.
        """
        return self.is_at_end, self.detected_us, self.is_waited

    @property
    def events(self) -> list[Rank]:
        return sorted(rank for ranks in self.bindings.values() for rank in ranks)

    @property
    def identity(self) -> frozenset[tuple[str, tuple[Rank, ...]]]:
        """The bindings of the match. Two matches with equal bindings are the same match."""
        return frozenset(self.bindings.items())


def emission_order(match: Ranked) -> tuple[object, ...]:
    """Return the key by which matches are sorted in the order of emission."""
    events = match.events
    bindings = sorted((alias, list(ranks)) for alias, ranks in match.bindings.items())
    return *match.decision, match.end_us, match.start_us, events[0], -len(events), events, bindings


def rules_out(after: After, kept: Ranked, other: Ranked, *, is_simultaneous: bool) -> bool:
    """Return whether an emitted match excludes another match or partial match by the after-match rule.

    ``kept`` is the emitted match.
    """
    first, kept_first = other.events[0], kept.events[0]
    match after.rule:
        case "none":
            return False
        case "once_per_key":
            return True
        case "skip_to_next":
            return first == kept_first
        case "skip_past_last":
            return not _is_before(kept.events[-1], first, is_simultaneous=is_simultaneous)
        case "skip_to_first" | "skip_to_last":
            ranks = kept.bindings.get(after.alias or "", ())
            target = (ranks[0] if after.rule == "skip_to_first" else ranks[-1]) if ranks else kept_first
            if target == kept_first:
                return first == kept_first
            return first != target and not _is_before(target, first, is_simultaneous=is_simultaneous)


def _is_before(rank: Rank, other: Rank, *, is_simultaneous: bool) -> bool:
    return rank[0] < other[0] if is_simultaneous else rank[1] < other[1]  # type: ignore[operator]
