"""Flattens process trees: inner blocks before outer blocks, over leaves that are numbered from left to right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workflows.tree import Activity, InclusiveChoice, Instances, Loop, Parallel, ProcessTree, Sequence, parts_of

NO_BLOCK = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A node of a process tree, with its position in an ``Outline``.

    Attributes:
        parts: Indices of the inner blocks in the outline, from left to right. A loop has its body, then its redo part.
        parent: Index of the block that contains this block; ``NO_BLOCK`` for the whole tree.
        first: The index of the block's first leaf.
        last: The index of the block's last leaf, plus 1.
    """

    node: ProcessTree
    parts: tuple[int, ...]
    parent: int
    first: int
    last: int

    @property
    def leaves(self) -> slice:
        return slice(self.first, self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """All nodes of a process tree as a list of blocks, inner blocks before outer ones.

    Leaves are numbered from the left. ``labels`` and ``leaf_blocks`` have one entry per leaf: its event type, and the
    index of its block.
    """

    blocks: tuple[Block, ...]
    labels: tuple[str, ...]
    leaf_blocks: tuple[int, ...]

    @classmethod
    def of(cls, tree: ProcessTree) -> Outline:
        blocks: list[Block] = []
        labels: list[str] = []
        leaf_blocks: list[int] = []
        waiting: list[tuple[ProcessTree, int | None]] = [(tree, None)]
        finished: list[int] = []
        while waiting:
            node, first = waiting.pop()
            if first is None:
                waiting.append((node, len(labels)))
                waiting.extend((part, None) for part in reversed(parts_of(node)))
                if isinstance(node, Activity):
                    leaf_blocks.append(NO_BLOCK)
                    labels.append(node.name)
                continue
            count = len(parts_of(node))
            parts = tuple(finished[len(finished) - count :])
            del finished[len(finished) - count :]
            if isinstance(node, Activity):
                first = len(labels) - 1
                leaf_blocks[first] = len(blocks)
            finished.append(len(blocks))
            blocks.append(Block(node=node, parts=parts, parent=NO_BLOCK, first=first, last=len(labels)))
        return cls(blocks=_with_parents(blocks), labels=tuple(labels), leaf_blocks=tuple(leaf_blocks))

    def ancestors(self, leaf: int) -> Iterator[int]:
        """Yield the indices of the blocks around a leaf, from the leaf itself to the whole tree."""
        place = self.leaf_blocks[leaf]
        while place != NO_BLOCK:
            yield place
            place = self.blocks[place].parent

    def orders(self) -> NDArray[np.bool_]:
        """Return a mask (leaves, leaves), true if some trace has an event of the second leaf after one of the first.

        The result is exact, because choices in different blocks are independent, and every leaf occurs in some trace.
        """
        follows = np.zeros((len(self.labels), len(self.labels)), np.bool_)
        for block in self.blocks:
            match block.node:
                case Sequence():
                    self._in_turn(block, follows)
                case Parallel() | InclusiveChoice():
                    self._in_turn(block, follows)
                    self._in_turn(block, follows.T)
                case Instances():
                    follows[block.leaves, block.leaves] = True
                case Loop(repetitions=count) if count != 1:
                    redo = self.blocks[block.parts[1]].leaves
                    once = follows[redo, redo].copy()
                    follows[block.leaves, block.leaves] = True
                    if count == 2:
                        follows[redo, redo] = once
        return follows

    def _in_turn(self, block: Block, follows: NDArray[np.bool_]) -> None:
        for part in (self.blocks[place] for place in block.parts):
            follows[block.first : part.first, part.leaves] = True


def _with_parents(blocks: list[Block]) -> tuple[Block, ...]:
    parents = {part: place for place, block in enumerate(blocks) for part in block.parts}
    return tuple(replace(block, parent=parents.get(place, NO_BLOCK)) for place, block in enumerate(blocks))
