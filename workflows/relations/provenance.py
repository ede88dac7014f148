"""Explains the constraints of a tree by the blocks that order activities or make them alternatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, islice, product

from constraints import Clause, Constraint, Exclusive, Prior, Require
from workflows.relations.extraction import Extraction
from workflows.relations.outline import Block, Outline
from workflows.tree import Activity, ExclusiveChoice, InclusiveChoice, Instances, Loop, Parallel, Sequence, Silent

MOST_NAMED = 3  # largest number of blocks named in one text
_MOST_EXAMINED = 64  # largest number of pairs of leaves to examine; a repeated label has many


class Origins(Mapping[Constraint, str]):
    """The origin of each constraint of an extraction, in words. ``explain`` computes an origin when it is requested.

    A constraint for which ``explain`` returns an empty text has no origin.
    """

    def __init__(self, extraction: Extraction, explain: Callable[[Constraint], str]) -> None:
        self._extraction = extraction
        self._explain = explain

    def __getitem__(self, constraint: Constraint) -> str:
        words = self._explain(constraint)
        if not words:
            raise KeyError(constraint)
        return words

    def __iter__(self) -> Iterator[Constraint]:
        return (constraint for constraint in self._extraction.constraints if self._explain(constraint))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class TreeExplanation:
    """Explains why constraints hold, by the blocks of a process tree."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._leaves: dict[str, list[int]] = {}
        for leaf, label in enumerate(outline.labels):
            self._leaves.setdefault(label, []).append(leaf)
        self._certain: list[frozenset[str]] = []

    def of(self, constraint: Constraint) -> str:
        """Return why a constraint holds, in words, or an empty text for types that the tree does not have."""
        if not all(name in self._leaves for name in constraint.names):
            return ""
        match constraint:
            case Prior(earlier, later) if earlier == later:
                return self._at_most_once(earlier)
            case Prior(earlier, later):
                return self._meeting([earlier, later])
            case Exclusive():
                return self._meeting(list(constraint.names))
            case Require(trigger, required):
                return self._requirement(trigger, required)
            case Clause(body, head) if not body and head is not None:
                return self._certainty(head)
            case Clause():
                return self._meeting(list(constraint.names))

    def _meeting(self, names: list[str]) -> str:
        """Describe, for each pair of the names, the smallest block with both, and how the block relates them."""
        pairs = (
            pair
            for first, second in combinations(names, 2)
            for pair in product(self._leaves[first], self._leaves[second])
        )
        reasons = dict.fromkeys(self._between(*pair) for pair in islice(pairs, _MOST_EXAMINED))
        return _listed(list(reasons))

    def _between(self, leaf: int, other_leaf: int) -> str:
        block = self._common(leaf, other_leaf)
        first, second = self._outline.labels[min(leaf, other_leaf)], self._outline.labels[max(leaf, other_leaf)]
        match block.node:
            case Sequence():
                return f"{first} comes before {second} in {described(block)}"
            case ExclusiveChoice():
                return f"{first} and {second} are alternatives of {described(block)}"
            case _:
                return f"{first} and {second} meet in {described(block)}"

    def _common(self, leaf: int, other_leaf: int) -> Block:
        for place in self._outline.ancestors(leaf):
            block = self._outline.blocks[place]
            if block.first <= other_leaf < block.last:
                return block
        raise ValueError("the whole tree has both")

    def _at_most_once(self, name: str) -> str:
        leaves = self._leaves[name]
        if len(leaves) > 1:
            return self._meeting_places(leaves)
        around = [self._outline.blocks[place] for place in self._outline.ancestors(leaves[0])]
        loops = [block for block in around if isinstance(block.node, Loop) and block.node.repetitions == 2]
        return (
            f"{name} comes once, between the two rounds of {described(loops[0])}" if loops else f"{name} is in no loop"
        )

    def _meeting_places(self, leaves: list[int]) -> str:
        pairs = ((leaf, other_leaf) for place, leaf in enumerate(leaves) for other_leaf in leaves[place + 1 :])
        blocks = dict.fromkeys(described(self._common(*pair)) for pair in islice(pairs, _MOST_EXAMINED))
        return f"the places of {self._outline.labels[leaves[0]]} are alternatives of {_listed(list(blocks))}"

    def _requirement(self, trigger: str, required: str) -> str:
        reasons = dict.fromkeys(self._companion(leaf, required) for leaf in self._leaves[trigger][:_MOST_EXAMINED])
        return _listed([words for words in reasons if words])

    def _companion(self, leaf: int, required: str) -> str:
        """Describe the smallest block around a leaf that always has the required type, or return an empty text."""
        for place in self._outline.ancestors(leaf):
            if required in self._certain_of(place):
                label, block = self._outline.labels[leaf], self._outline.blocks[place]
                return f"no {label} without {required} in {described(block)}"
        return ""

    def _certainty(self, name: str) -> str:
        """Describe the smallest block that has all leaves of a type. The type occurs whenever the block runs."""
        leaves = self._leaves[name]
        block = self._common(leaves[0], leaves[-1])
        if isinstance(block.node, Activity):
            return f"{name} is in no choice"
        return f"every way through {described(block)} has {name}"

    def _certain_of(self, place: int) -> frozenset[str]:
        """Return the types that occur whenever the block at index ``place`` runs."""
        if not self._certain:
            for block in self._outline.blocks:
                self._certain.append(self._certain_in(block))
        return self._certain[place]

    def _certain_in(self, block: Block) -> frozenset[str]:
        parts = [self._certain[part] for part in block.parts]
        match block.node:
            case Activity(name):
                return frozenset({name})
            case ExclusiveChoice() | InclusiveChoice():
                return frozenset.intersection(*parts)
            case Loop(repetitions=count):
                return parts[0] if count is None or count == 1 else parts[0] | parts[1]
            case Silent():
                return frozenset()
            case Sequence() | Parallel() | Instances():
                return frozenset().union(*parts)


def described(block: Block) -> str:
    """Describe a block in words: the element from which it was read, or its kind."""
    node = block.node
    if isinstance(node, Silent):
        return "a silent step"
    if node.origin:
        return node.origin
    return node.name if isinstance(node, Activity) else _KINDS[type(node)]


_KINDS: Mapping[type, str] = {
    Sequence: "a sequence",
    ExclusiveChoice: "an exclusive choice",
    InclusiveChoice: "an inclusive choice",
    Parallel: "a parallel block",
    Loop: "a loop",
    Instances: "a block of several instances",
}


def _listed(reasons: list[str]) -> str:
    more = len(reasons) - MOST_NAMED
    return "; ".join(reasons[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
