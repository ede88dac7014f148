"""Baselines and workloads of the parameterised group-by.

Purpose: what the index of questions is compared with, and the frequencies of questions of the published experiments.
Promises: an index of a baseline finds the events that ``aggregates.asking`` finds.
"""

from literature.asking.baselines import FixedIndex, hash_of_all, hash_of_one, imp
from literature.asking.workloads import EXAMPLES, extreme, layered, permuted, problem_of, zipf

__all__ = [
    "EXAMPLES",
    "FixedIndex",
    "extreme",
    "hash_of_all",
    "hash_of_one",
    "imp",
    "layered",
    "permuted",
    "problem_of",
    "zipf",
]
