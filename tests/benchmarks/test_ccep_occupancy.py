"""The replay of occupied states, compared with an enumeration of all partial matches."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.ccep.knowledge import NAMED, ConstraintOracle, LanguageOracle, extracted
from benchmarks.ccep.modes import all_modes
from benchmarks.ccep.occupancy import live_row, replayed, states_of
from benchmarks.ccep.queries import QUERIES, cell_of, table_cells
from benchmarks.ccep.stream import TYPES, order_stream
from nfa import Prune, build_query, parse_pattern
from workflows import OrderSettings

MIXED = OrderSettings(reject=0.1, cancel=0.3, local=0.4, quote_fail=0.5, invoice_fail=0.3)
MODES = all_modes()
Match = tuple[int, frozenset[tuple[int, int]]]  # term, (atom, event)


class Naive:
    """Every partial match of one trace as a set of (atom, event) pairs."""

    def __init__(self, graph, oracle, prune, known):
        self.graph, self.known = graph, known
        self.oracle, self.prune = oracle, prune
        self.monitor = oracle.start if oracle else None
        self.partial: set[Match] = {(number, frozenset()) for number in range(len(self.graph.terms))}
        self.completed: Counter[int] = Counter()
        self.drop()

    def is_live(self, match):
        number, bound = match
        place = (number, frozenset(atom for atom, _ in bound))
        asked = (self.monitor, place)
        if asked not in self.known:
            self.known[asked] = self.oracle.can_complete(self.monitor, self.graph, place)
        return self.known[asked]

    def drop(self):
        if self.oracle is None:
            return
        if self.prune is Prune.STATE:
            self.partial = {match for match in self.partial if self.is_live(match)}
        for number in {number for number, _ in self.partial}:
            own = {match for match in self.partial if match[0] == number}
            if not self.completed[number] and not any(map(self.is_live, own)):
                self.partial -= own

    def take(self, event, name, passes):
        grown = set()
        for number, bound in self.partial if passes else ():
            term, done = self.graph.terms[number], {atom for atom, _ in bound}
            for atom, one in enumerate(term.atoms):
                if one.type == name and atom not in done and term.before[atom] <= done:
                    grown.add((number, bound | {(atom, event)}))
        complete = {match for match in grown if len(match[1]) == len(self.graph.terms[match[0]].atoms)}
        self.completed.update(number for number, _ in complete)
        self.partial |= grown - complete
        if self.oracle is not None:
            self.monitor = self.oracle.step(self.monitor, name)
            assert self.monitor is not None
        self.drop()

    def held(self):
        return len({event for _, bound in self.partial for _, event in bound})


def enumerated(query, stream, oracle, prune):
    """Held instances after each event, and the number of matches."""
    passes, graph = stream.passes(query.priced), build_query(parse_pattern(query.text))
    traces: dict[int, Naive] = {}
    known: dict[tuple, bool] = {}  # what the oracle has answered
    own: Counter[int] = Counter()
    held, total, matches = [], 0, 0
    for event, (order, code, is_last) in enumerate(
        zip(stream.orders.tolist(), stream.types.tolist(), stream.ends.tolist(), strict=True)
    ):
        if order not in traces:
            traces[order] = Naive(graph, oracle, prune, known)
        trace = traces[order]
        trace.take(event, TYPES[code], passes[event])
        if is_last:
            matches += sum(trace.completed.values())
        now = 0 if is_last else trace.held()
        total += now - own[order]
        own[order] = now
        held.append(total)
    return held, matches


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", QUERIES)
def test_replay_holds_and_finds_what_enumeration_does(name, mode):
    chosen, query = MODES[mode], QUERIES[name]
    stream = order_stream(MIXED, orders=60, concurrent=9, seed=11)
    wanted, matches = enumerated(query, stream, chosen.oracle, chosen.prune)
    found = replayed(query, stream, chosen.oracle, chosen.prune)
    assert found.held.tolist() == wanted
    assert found.matches == matches > 0
    assert found.peak == max(wanted[stream.settled :])
    assert found.deviations == 0


@pytest.mark.parametrize("name", QUERIES)
def test_each_mode_holds_no_more_than_the_one_before_at_any_moment(name):
    stream = order_stream(MIXED, orders=400, concurrent=50, seed=4)
    found = [replayed(QUERIES[name], stream, mode.oracle, mode.prune) for mode in MODES.values()]
    for less, more in zip(found[1:], found, strict=False):
        assert np.all(less.held <= more.held)
        assert less.scan_probes <= more.scan_probes
        assert less.typed_probes <= more.typed_probes
    assert all(one.typed_probes <= one.scan_probes for one in found)


def test_probes_of_one_order_by_hand():
    """Q1 on one order: without constraints the empty state asks for a c at every event; then u, then i."""
    cell = cell_of("Q1 early", (0,))
    stream = order_stream(cell.orders, orders=1, concurrent=1, seed=1)
    stock = int(np.flatnonzero(stream.types == TYPES.index("UseRemoteStock"))[0])
    found = replayed(cell.query, stream)
    assert found.scan_probes == 20 + (20 - 3) + (20 - stock - 1)
    assert found.typed_probes == found.binds == 3
    invoice = int(np.flatnonzero(stream.types == TYPES.index("GenerateInvoice"))[0])
    pruned = replayed(cell.query, stream, MODES["state"].oracle, Prune.STATE)
    assert pruned.scan_probes == invoice + 1, "one atom is asked for at a time, and nothing after the invoice"


def test_workflow_reaches_54_sets_and_11_rows_of_32_states():
    words, oracle = LanguageOracle().start, ConstraintOracle(extracted())
    prefixes = {frozenset(word[:length]) for word in words for length in range(len(word) + 1)}
    graphs = [build_query(parse_pattern(query.text)) for query in QUERIES.values()]
    rows = {tuple(live_row(oracle, seen, graph) for graph in graphs) for seen in prefixes}
    assert (len(prefixes), len(rows), sum(len(states_of(graph)) for graph in graphs)) == (54, 11, 32)


def test_oracles_call_impossible_what_breaks_them():
    named, everything, words = ConstraintOracle(NAMED), ConstraintOracle(extracted()), LanguageOracle()
    assert named.step(frozenset({"UseLocalStock"}), "UseRemoteStock") is None
    assert named.step(frozenset({"UseLocalStock"}), "RejectOrder") == frozenset({"UseLocalStock"})
    assert everything.step(frozenset({"ReceiveOrder"}), "ReceiveOrder") is None
    after = words.step(words.start, "ReceiveOrder")
    assert after is not None
    assert words.step(after, "ReceiveOrder") is None


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("cell", table_cells(), ids=lambda cell: f"{cell.sweep} {cell.label}")
def test_cells_of_the_table_are_met_within_three_points(cell):
    changes: dict[str, list[tuple[float, float]]] = {name: [] for name in cell.wanted}
    for seed in (1, 2, 3):
        stream = order_stream(cell.orders, orders=20_000, concurrent=1_000, seed=seed)
        base = replayed(cell.query, stream)
        for name, both in changes.items():
            found = replayed(cell.query, stream, MODES[name].oracle, MODES[name].prune)
            assert found.matches == base.matches
            both.append((found.peak / base.peak - 1, found.scan_probes / base.scan_probes - 1))
    for name, figure in cell.wanted.items():
        memory, probes = 100 * np.mean(changes[name], axis=0)
        assert memory == pytest.approx(figure.memory, abs=3), name
        assert probes == pytest.approx(figure.probes, abs=3), name
