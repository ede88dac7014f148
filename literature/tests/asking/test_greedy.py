"""RGreedy and its heuristics: the worked examples of the specification (3.7), and random problems."""

from dataclasses import replace

import numpy as np
import pytest

from aggregates.asking.choosing import eprune, polished
from aggregates.asking.costs import CostModel
from literature.asking import EXAMPLES, problem_of
from literature.asking.greedy import by_coverage, by_weight, hybrid, rgreedy

PARTITIONS = CostModel(hashing=1e-9, comparing=1.0)  # the mean number of visited partitions; hashing breaks ties


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
    found = search(replace(problem_of(EXAMPLES[example], 3, rows=16.0, bits=4), model=PARTITIONS))
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
        of = replace(problem_of(shares, attributes, rows=rows, bits=bits, events=events), caps=caps)
        best, first, second, both = eprune(of), owl(of), pcl(of), hybrid(of)
        assert both.cost == min(first.cost, second.cost) >= best.cost * (1 - 1e-9)
        assert both.evaluated <= max(first.evaluated + second.evaluated - 1, 0)
        assert best.cost * (1 - 1e-9) <= polished(of, both).cost <= both.cost
