"""A run engine with the minimal environment that it needs, and matches as values, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.automata.pattern_automaton import PatternAutomaton
from nfa.conditions.predicates import PredicateTable
from nfa.guards.rows import KillLists
from nfa.kernels.traces import ALL_LIVE, DEVIANT, EVICT, FAILED, NIL, NONE_LIVE, NOTHING_ENDS, RESERVED, Guards
from nfa.results.found import MatchTable
from nfa.runs.columns import RunInput
from nfa.runs.engine import RUN_LIMIT, RunEngine, RunOutput
from nfa.runs.program import GuardColumns, RunPattern, atoms_to_test
from nfa.syntax import ANY_TYPE, Atom
from nfa.traces.table import Visits
from streams import Event, EventBatch, Ties
from streams.tables import Tables

ResultRecord: TypeAlias = tuple[str, str, tuple[tuple[str, tuple[str, ...]], ...], int]
"""Pattern name, trace key, event ids by alias, detection time."""


DEVIATES, FAILS = DEVIANT - RESERVED, FAILED - RESERVED  # in ``RunHarness.feed``, besides rows of ``live``


class RunHarness:
    """Feeds events of several traces to a run engine and collects its results.

    ``how`` is what decided each match; ``corrections`` contradict matches emitted early. ``released`` counts bound
    events dropped because of a guard, by trace number.
    """

    def __init__(self, *, ties: Ties = "log", match_limit: int = 10_000, run_limit: int = RUN_LIMIT) -> None:
        self._options = (ties, match_limit, run_limit)
        self.engine = RunEngine(ties=ties, match_limit=match_limit, run_limit=run_limit)
        self.tables: Tables | None = None
        self.matches: list[ResultRecord] = []
        self.timeouts: list[ResultRecord] = []
        self.how: list[int] = []
        self.corrections: list[ResultRecord] = []
        self.endings: list[str] = []
        self.released = np.zeros(64, np.int32)
        self.lost = (0, 0)
        self._events: list[Event] = []
        self._traces: dict[str, int] = {}
        self._automata: tuple[PatternAutomaton, ...] = ()
        self._codes: dict[str, int] = {}
        self._predicates = PredicateTable.of(())
        self.negations: list[dict[Atom, int]] = []
        self._kills = KillLists()

    def configure(self, automata: Sequence[PatternAutomaton]) -> None:
        before = {id(automaton): number for number, automaton in enumerate(self.engine.automata)}
        self._automata = tuple(automata)
        atoms = [atom for one in automata for atom in atoms_to_test(one)]
        names = sorted({name for atom in atoms for name in atom.types if name != ANY_TYPE})
        self._codes = {name: code for code, name in enumerate(names)}
        self._predicates = PredicateTable.of(atoms)
        columns = np.cumsum([0, *(len(one.states) for one in automata)])
        self.negations = _negations_of(automata, int(columns[-1]))
        patterns = [
            RunPattern(
                automaton=automaton,
                columns=GuardColumns(first_state=first, negations=negations),
                source=before.get(id(automaton), NIL),
            )
            for automaton, first, negations in zip(automata, columns[:-1].tolist(), self.negations, strict=True)
        ]
        self.engine.configure(patterns, self._codes, self._predicates)

    @property
    def columns(self) -> int:
        """Number of columns of a guard's table: over all states of all patterns, then over their trailing NOTs."""
        return sum(len(one.states) for one in self._automata) + sum(map(len, self.negations))

    def feed(
        self,
        events: Sequence[Event],
        *,
        live: NDArray[np.bool_] | None = None,
        monitors: Sequence[int] = (),
        policy: int = EVICT,
        end_types: Collection[str] = (),
    ) -> None:
        """Process one batch, then let time pass to its last event.

        ``live`` is (monitors, columns): whether a state can complete or a NOT's event can still come; None: all.
        ``monitors`` are the rows of ``live`` for the trace before the first event and after each, or ``DEVIATES`` or
        ``FAILS``; for a single trace.
        """
        if not events:
            return
        batch, first = replace(EventBatch.from_events(events), tables=self.tables), len(self._events)
        self._events += events
        moves = np.array(monitors or [0] * (len(events) + 1), np.int32) + RESERVED
        guards = self._guards(np.ones((1, self.columns), np.bool_) if live is None else live, policy)
        kinds = np.zeros(len(events), np.int32)
        visits = Visits(
            rows=np.arange(len(events), dtype=np.int32),
            traces=np.array([self._traces.setdefault(event.key, len(self._traces)) for event in events], np.int32),
            before=moves[:-1].copy(),
            after=moves[1:].copy(),
            kill=np.array([self._kill(guards, *pair) for pair in itertools.pairwise(moves.tolist())], np.int32),
            column=kinds,
            classes=kinds,
            ends=np.array([event.type in end_types for event in events]),
        )
        types = np.array([self._codes.get(event.type, len(self._codes)) for event in events], np.int32)
        given = RunInput(
            batch=batch,
            visits=visits,
            types=types,
            clocks=np.maximum.accumulate([event.time_us for event in self._events])[first:],
            passed=self._predicates.evaluate(batch),
            cells=np.zeros((0, len(events)), np.int32),
            guards=guards._replace(kill_from=self._kills.ranges, kills=self._kills.columns),
            released=self.released,
            first_sequence=first,
        )
        self._keep(self.engine.process(given, self._id_of))
        self.pass_time(max(event.time_us for event in self._events))

    def pass_time(self, watermark_us: int) -> None:
        self._keep(self.engine.pass_time(watermark_us, self._id_of))

    def finish(self) -> None:
        self._keep(self.engine.finish(self._id_of))

    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Saved state; traces without runs are left out of the numbering."""
        held = self.engine.held_traces(len(self._traces) + 1)
        dense = np.where(held, np.cumsum(held) - 1, NIL).astype(np.int32)
        arrays = self.engine.dump_arrays(dense)
        self._traces = {key: int(dense[number]) for key, number in self._traces.items() if held[number]}
        return arrays

    def reload(self) -> None:
        arrays = self.dump()
        ties, match_limit, run_limit = self._options
        self.engine = RunEngine(ties=ties, match_limit=match_limit, run_limit=run_limit)
        self.configure(self._automata)
        self.engine.load_arrays(arrays, traces=len(self._traces), sequences=len(self._events))

    def _guards(self, live: NDArray[np.bool_], policy: int) -> Guards:
        """The tables of a guard that are derived from ``live`` alone."""
        size = RESERVED + len(live)
        rows = np.zeros((2 + len(live), self.columns), np.uint32)
        rows[ALL_LIVE], rows[2:] = 1, live
        truth = np.full(size, ALL_LIVE, np.int32)
        truth[FAILED], truth[RESERVED:] = NONE_LIVE, np.arange(2, 2 + len(live))
        gate, policies = truth.copy(), np.zeros(size, np.uint8)
        policies[RESERVED:] = policy
        if policy != EVICT:
            gate[RESERVED:] = ALL_LIVE
        return Guards(
            next=np.zeros((size, 1), np.int32),
            kill_of=np.zeros((size, 1), np.int32),
            gate=gate,
            truth=truth,
            policy=policies,
            live=rows,
            kill_from=self._kills.ranges,
            kills=self._kills.columns,
            start=np.array([RESERVED], np.int32),
        )

    def _kill(self, guards: Guards, before: int, after: int) -> int:
        if min(before, after) < RESERVED:
            return NOTHING_ENDS
        return self._kills.number(guards.live[guards.truth[before]], guards.live[guards.truth[after]], by_term=False)

    def _id_of(self, sequence: int) -> str:
        return self._events[sequence].id

    def _keep(self, output: RunOutput) -> None:
        self.matches += self._records(output.matches)
        self.how += output.matches.how.tolist()
        self.corrections += self._records(output.corrections)
        self.timeouts += self._records(output.timeouts)
        self.endings += [self._automata[number].pattern.name for number in output.endings[:, 1].tolist()]
        matches, runs, *_ = output.lost[:, 2:].sum(axis=0).tolist()
        self.lost = self.lost[0] + matches, self.lost[1] + runs

    def _records(self, found: MatchTable) -> list[ResultRecord]:
        records: list[ResultRecord] = []
        start = 0
        for place, end in enumerate(found.ends.tolist()):
            automaton = self._automata[found.patterns[place]]
            bound = [self._events[sequence] for sequence in found.sequences[start:end].tolist()]
            aliases = [automaton.atoms[atom].alias for atom in found.aliases[start:end].tolist()]
            ids = {
                alias: tuple(e.id for e, own in zip(bound, aliases, strict=True) if own == alias) for alias in aliases
            }
            records.append(
                (automaton.pattern.name, bound[0].key, tuple(sorted(ids.items())), int(found.detected_us[place]))
            )
            start = end
        return records


def _negations_of(automata: Sequence[PatternAutomaton], first: int) -> list[dict[Atom, int]]:
    """For each pattern the columns of its trailing NOTs, numbered from ``first`` on."""
    found: list[dict[Atom, int]] = []
    for automaton in automata:
        numbers = {one.number for finishes in automaton.finishes for finish in finishes for one in finish.negations}
        atoms = dict.fromkeys(automaton.outline.negated[number] for number in sorted(numbers))
        found.append({atom: first + place for place, atom in enumerate(atoms)})
        first += len(atoms)
    return found


def matches_of(found: MatchTable) -> list[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """Matches as (row, pattern, ((alias, sequence), ...))."""
    bound = list(zip(found.aliases.tolist(), found.sequences.tolist(), strict=True))
    columns = (found.rows, found.patterns, found.starts, found.ends)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(row, pattern, tuple(bound[start:end])) for row, pattern, start, end in rows]
