"""Programs of row patterns, which the kernel runs.

A loop without an upper bound ends after an iteration that consumes no row, because it would never end otherwise. The
search then continues after the loop. Bounded repetitions are expanded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.row_patterns.tables import CHECK, END, JUMP, MARK, MATCHED, NIL, ROW, SPLIT, START
from nfa.sql.syntax import Alternation, Anchor, Concatenation, Exclusion, Labelled, Node, Repetition


@dataclass(frozen=True, slots=True)
class Program:
    """A program: instructions, each of which has an operation and two operands.

    ``splits`` numbers the ``SPLIT`` instructions (branches) from 0. Other instructions have ``NIL``.
    """

    instructions: NDArray[np.int32]
    splits: NDArray[np.int32]
    registers: int

    @property
    def branches(self) -> int:
        return int(self.splits.max(initial=-1)) + 1


def build_program(pattern: Node) -> Program:
    """Compile a pattern to a program."""
    writer = _Writer()
    writer.write(pattern)
    writer.add(MATCHED)
    instructions = np.array(writer.instructions, np.int32).reshape(-1, 3)
    is_split = instructions[:, 0] == SPLIT
    splits = np.where(is_split, np.cumsum(is_split) - 1, NIL).astype(np.int32)
    return Program(instructions, splits, writer.registers)


@dataclass
class _Writer:
    instructions: list[tuple[int, int, int]] = field(default_factory=list)
    registers: int = 0
    exclusions: int = 0

    def add(self, operation: int, first: int = 0, second: int = 0) -> int:
        self.instructions.append((operation, first, second))
        return len(self.instructions) - 1

    def write(self, node: Node) -> None:
        match node:
            case Labelled():
                self.add(ROW, node.label, int(self.exclusions > 0))
            case Anchor():
                self.add(START if node.is_start else END)
            case Concatenation():
                for part in node.parts:
                    self.write(part)
            case Exclusion():
                self.exclusions += 1
                self.write(node.part)
                self.exclusions -= 1
            case Alternation():
                self._alternatives(node.parts)
            case Repetition():
                for _ in range(node.least):
                    self.write(node.part)
                if node.most is None:
                    self._loop(node)
                else:
                    self._options(node, node.most - node.least)

    def _alternatives(self, parts: tuple[Node, ...]) -> None:
        jumps = []
        for part in parts[:-1]:
            split = self.add(SPLIT)
            self.write(part)
            jumps.append(self.add(JUMP))
            self.instructions[split] = (SPLIT, split + 1, len(self.instructions))
        self.write(parts[-1])
        for jump in jumps:
            self.instructions[jump] = (JUMP, len(self.instructions), 0)

    def _loop(self, node: Repetition) -> None:
        is_checked = takes_no_row(node.part)
        register = self.registers
        self.registers += is_checked
        split = self.add(SPLIT)
        if is_checked:
            self.add(MARK, register)
        self.write(node.part)
        check = self.add(CHECK) if is_checked else -1
        self.add(JUMP, split)
        end = len(self.instructions)
        if is_checked:
            self.instructions[check] = (CHECK, register, end)
        self._branch(split, end, node)

    def _options(self, node: Repetition, number: int) -> None:
        splits = []
        for _ in range(number):
            splits.append(self.add(SPLIT))
            self.write(node.part)
        for split in splits:
            self._branch(split, len(self.instructions), node)

    def _branch(self, split: int, end: int, node: Repetition) -> None:
        self.instructions[split] = (SPLIT, split + 1, end) if node.is_greedy else (SPLIT, end, split + 1)


def takes_no_row(node: Node) -> bool:
    """Check whether a pattern can match without a row."""
    match node:
        case Labelled():
            return False
        case Anchor():
            return True
        case Concatenation():
            return all(map(takes_no_row, node.parts))
        case Alternation():
            return any(map(takes_no_row, node.parts))
        case Repetition():
            return node.least == 0 or takes_no_row(node.part)
        case Exclusion():
            return takes_no_row(node.part)
