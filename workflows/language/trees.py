"""Builds the automaton of a process tree, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from constraints import ProcessAutomaton
from workflows.language.blocks import (
    NOTHING,
    again_and_again,
    any_of,
    interleaved,
    many_at_once,
    one_after_another,
    one_event,
    one_of,
    repetition,
)
from workflows.language.subsets import check_size
from workflows.limits import CompileLimits
from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
)

Progress: TypeAlias = Callable[[int], None]

_SLACK = 4  # a block may have more states than the final automaton if events repeat


def automaton_of_tree(tree: ProcessTree, limits: CompileLimits, progress: Progress | None = None) -> ProcessAutomaton:
    """Return the minimal automaton of a tree's language. Activities may share names.

    Every block is determinised and minimised before it becomes part of an outer block, so sizes depend on languages,
    not on markings. ``progress`` is called after each block with the total number of states of all blocks so far.
    """
    automaton = _Builder(limits.max_states * _SLACK, progress).build(tree)
    check_size(len(automaton), limits.max_states)
    return automaton


class _Builder:
    def __init__(self, most: int, progress: Progress | None) -> None:
        self._most, self._progress = most, progress
        self._done = 0

    def build(self, tree: ProcessTree) -> ProcessAutomaton:
        built = self._block(tree)
        self._done += len(built)
        if self._progress is not None:
            self._progress(self._done)
        return built

    def _block(self, tree: ProcessTree) -> ProcessAutomaton:
        match tree:
            case Activity():
                return one_event(tree.name)
            case Silent():
                return NOTHING
            case Sequence(parts):
                return one_after_another([self.build(part) for part in parts], self._most)
            case ExclusiveChoice(branches):
                return one_of([self.build(branch) for branch in branches], self._most)
            case Parallel(branches):
                return interleaved([self.build(branch) for branch in branches], self._most)
            case InclusiveChoice(branches):
                return any_of([self.build(branch) for branch in branches], self._most)
            case Instances():
                return many_at_once(self.build(tree.body), self._most)
            case Loop():
                return self._loop(tree)

    def _loop(self, loop: Loop) -> ProcessAutomaton:
        body, redo = self.build(loop.body), self.build(loop.redo)
        if loop.repetitions is None:
            return again_and_again(body, redo, self._most)
        return repetition(body, redo, loop.repetitions, self._most)
