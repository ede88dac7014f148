"""What is extracted from models of the size of real ones holds on their simulated traces, and by every method."""

from collections.abc import Iterable
from random import Random

import pytest

from house.examples import Draws
from tests.builders.nets import tree_to_net
from tests.builders.workflows import random_tree
from workflows import CompileLimits, Extraction, activity_names, sample_trace
from workflows.language.trees import automaton_of_tree
from workflows.nets.tree_nets import can_be_net
from workflows.relations.compositional import extraction_of_tree
from workflows.relations.regular import extraction_of_automaton
from workflows.relations.structural import extraction_of_structure

MODELS = range(30)
NAMES = tuple(f"task {number:02}" for number in range(14))


class Observed:
    """What some traces show, types as bits."""

    def __init__(self, extraction: Extraction) -> None:
        self._bits = {name: 1 << place for place, name in enumerate(extraction.events)}
        self.before = dict.fromkeys(extraction.events, 0)
        self.shown: set[int] = set()

    def add(self, trace: Iterable[str]) -> None:
        """Another trace."""
        seen = 0
        for name in trace:
            self.before[name] |= seen
            seen |= self._bits[name]
        self.shown.add(seen)

    def violations(self, extraction: Extraction) -> list[object]:
        """What was extracted and does not hold."""
        bits, found = self._bits, list[object]()
        found += [(one, other) for one, other in extraction.prior if self.before[one] & bits[other]]
        for one, other in extraction.exclusive:
            both = bits[one] | bits[other]
            found += [(one, other, types) for types in self.shown if types & both == both]
        for one, other in extraction.require:
            found += [(one, other, types) for types in self.shown if types & bits[one] and not types & bits[other]]
        for clause in extraction.horn:
            body = sum(bits[name] for name in clause.body)
            head = bits[clause.head] if clause.head is not None else 0
            found += [(clause, types) for types in self.shown if types & body == body and not types & head]
        ends = sum(bits[name] for name in extraction.end)
        return found + [name for name, before in self.before.items() if before & ends]


@pytest.mark.slow
def test_extracted_constraints_hold_on_simulated_traces(draws: Draws) -> None:
    for number in MODELS:
        tree = random_tree(Random(number), NAMES)
        extraction, rng = extraction_of_tree(tree), Random(number)
        observed = Observed(extraction)
        for _ in draws(10_000):
            observed.add([activity.name for activity in sample_trace(tree, rng)])
        assert not observed.violations(extraction)
        assert extraction.events == tuple(sorted(activity_names(tree)))


@pytest.mark.parametrize("number", MODELS)
def test_all_methods_agree_as_far_as_they_promise(number: int) -> None:
    tree = random_tree(Random(number), NAMES)
    exact = extraction_of_tree(tree)
    if can_be_net(tree):
        document = extraction_of_automaton(automaton_of_tree(tree, CompileLimits())).to_document()
        assert {**document, "method": "compositional"} == exact.to_document()
        sound = extraction_of_structure(tree_to_net(tree))
        assert sound.events == exact.events
        for kind in ("prior", "exclusive", "require", "horn", "end"):
            assert set(getattr(sound, kind)) <= set(getattr(exact, kind))
