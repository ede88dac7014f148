"""The experiments of the parameterised group-by, as far as they do not depend on a clock."""

import numpy as np
import pytest

from aggregates.asking.choosing import candidates, eprune, polished
from literature.asking import EXAMPLES, extreme, hash_of_all, hash_of_one, imp, layered, permuted, problem_of, zipf
from literature.asking.greedy import by_coverage, by_weight, hybrid, rgreedy
from literature.benchmarks.question_index.__main__ import asked

ROWS = 50_000


def filled(index):
    codes = np.random.default_rng(1).integers(0, 2_048, (ROWS + 5_000, 3)).astype(np.int32)
    index.insert(codes, ROWS)
    index.insert(codes[:100], ROWS)
    return index


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_imp_index_compares_less_than_half_of_what_both_hash_indexes_do(example):
    frequencies = EXAMPLES[example]
    makers = (imp(frequencies, 3, ROWS), hash_of_one(frequencies, 3, ROWS), hash_of_all(frequencies, 3))
    ours, *others = indexes = [filled(index) for index in (*makers, imp(frequencies, 3, ROWS, is_measured=True))]
    compared = [0] * len(indexes)
    for where in asked(frequencies, 300, 2):
        found = [index.find(where) for index in indexes]
        assert all(sorted(one.slots) == sorted(found[0].slots) for one in found)
        compared = [count + one.compared for count, one in zip(compared, found, strict=True)]
    share = compared[0] / 300 / ROWS
    assert share == pytest.approx({1: 0.0219, 2: 0.00371, 3: 0.00332}[example], rel=0.1)
    assert all(compared[0] * 2 < count for count in compared[1:3])
    assert ours.bits == eprune(problem_of(frequencies, 3, rows=ROWS)).configuration
    assert others


def missed(choose, problems):
    return sum(choose(of).cost > eprune(of).cost * 1.0005 for of in problems)


def owl(of):
    return rgreedy(of, by_weight(of), "owl")


def pcl(of):
    return rgreedy(of, by_coverage(of, is_extended=False), "pcl")


def test_all_heuristics_find_the_optimum_of_the_extreme_workloads():
    problems = [problem_of(one, size, rows=1e6, events=10.0) for size in (3, 5) for one in extreme(size).values()]
    assert [missed(choose, problems) for choose in (owl, pcl, hybrid)] == [0, 0, 0]


def test_in_layers_by_number_owl_misses_and_pcl_does_not():
    problems = [problem_of(layered(6, 2.0**one), 6, rows=1e6, events=10.0) for one in range(1, 6)]
    assert missed(owl, problems) >= 3
    assert missed(pcl, problems) == missed(hybrid, problems) == 0


def test_of_permuted_patterns_the_polished_result_is_within_a_tenth_of_the_optimum():
    problems = [
        problem_of(permuted(frequencies, 6, seed), 6, rows=1e6, events=10.0)
        for seed in range(6)
        for frequencies in (layered(6, 4.0), layered(6, 16.0), zipf(6, 0.9))
    ]
    assert missed(pcl, problems) > 2
    for of in problems:
        found = polished(of, hybrid(of, is_extended=True))
        assert found.cost <= 1.1 * eprune(of).cost


def test_the_greatest_search_space_is_enumerated_once():
    caps = np.full(10, 16)
    found = candidates(caps, 16, is_full=True)
    assert len(found) == 2_042_975 + 1  # and the empty configuration
    assert len(np.unique(found @ 17 ** np.arange(10, dtype=np.int64))) == len(found)
    problem = problem_of(dict.fromkeys((1, 2, 4, 8, 16, 32, 64, 128), 1 / 8), 10, rows=1e6)
    assert eprune(problem).evaluated == 245_157  # two attributes in no question are pruned
