"""RGreedy and its heuristics: the worked examples of the specification (3.7), and random problems."""

import numpy as np
import pytest

from aggregates.asking.choosing import Problem, eprune, polished
from aggregates.asking.costs import CostModel, Workload
from literature.asking.greedy import by_coverage, by_weight, hybrid, rgreedy

A, B, C = 1, 2, 4
EXAMPLES = {
    1: {A: 0.4, A | B: 0.1, B: 0.3, C: 0.2},
    2: {A: 0.3, A | B: 0.4, C: 0.3},
    3: {A: 0.3, A | B: 0.4, B | C: 0.25, C: 0.05},
}
PARTITIONS = CostModel(hashing=1e-9, comparing=1.0)  # the mean number of visited partitions; hashing breaks ties


def problem(frequencies, bits=4, caps=(16, 16, 16), model=PARTITIONS, events=1.0, rows=16.0):
    patterns = np.array(list(frequencies), np.int64)
    shares = np.array(list(frequencies.values()), np.float64)
    workload = Workload(len(caps), events, patterns, shares, np.full(len(patterns), rows))
    return Problem(workload, model, bits, np.array(caps, np.int64))


def owl(of):
    return rgreedy(of, by_weight(of), "owl")


def pcl(of):
    return rgreedy(of, by_coverage(of, is_extended=False), "pcl")


GOLDEN = [
    (1, owl, (2, 1, 1), 5.8, 7),
    (1, pcl, (2, 1, 1), 5.8, 7),
    (1, hybrid, (2, 1, 1), 5.8, 7),
    (2, owl, (4, 0, 0), 5.5, 4),
    (2, pcl, (3, 0, 1), 3.8, 4),
    (2, hybrid, (3, 0, 1), 3.8, 7),
    (3, owl, (2, 2, 0), 3.4, 7),
    (3, pcl, (3, 0, 1), 3.8, 4),
    (3, hybrid, (2, 2, 0), 3.4, 10),
]


@pytest.mark.parametrize(("example", "search", "configuration", "cost", "evaluated"), GOLDEN)
def test_the_worked_examples(example, search, configuration, cost, evaluated):
    found = search(problem(EXAMPLES[example]))
    assert (found.configuration, found.evaluated) == (configuration, evaluated)
    assert found.cost == pytest.approx(cost, abs=0.01)


def test_heuristics_cost_no_less_than_the_optimum_and_the_hybrid_is_the_cheaper_of_both():
    rng = np.random.default_rng(11)
    for _ in range(400):
        attributes, bits = int(rng.integers(1, 5)), int(rng.integers(0, 7))
        patterns = rng.permutation(2**attributes)[: rng.integers(1, 2**attributes + 1)]
        shares = {int(pattern): float(rng.random() * (rng.random() < 0.8)) for pattern in patterns}
        caps = rng.integers(0, 7, attributes) if rng.random() < 0.6 else np.full(attributes, 16)
        rows, events = float(rng.choice([1, 15, 100, 1000])), float(rng.choice([0.1, 1, 10]))
        of = problem(shares, bits, caps, CostModel(1.0, 1.0), events, rows)
        best, first, second, both = eprune(of), owl(of), pcl(of), hybrid(of)
        assert both.cost == min(first.cost, second.cost) >= best.cost * (1 - 1e-9)
        assert both.evaluated <= max(first.evaluated + second.evaluated - 1, 0)
        assert best.cost * (1 - 1e-9) <= polished(of, both).cost <= both.cost
