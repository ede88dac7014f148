"""Converts lark's trees to the syntax tree of row patterns. Permutations become alternations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from math import factorial

from nfa.errors import PatternRefused
from nfa.language.expression_building import Branch, position_of, tokens_of, trees_of
from nfa.sql.expression_building import name_of
from nfa.sql.syntax import Alternation, Anchor, Concatenation, Exclusion, Labelled, Node, Repetition

MAX_REPETITIONS = 1_000  # n of {n}
MAX_SIZE = 10_000  # maximum result of ``size_of`` for a pattern
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Variables:
    """The variables of a pattern, in the order of their first occurrence."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.has_exclusion = False

    def label_of(self, name: str) -> int:
        """Return the label of a variable. A new variable gets the next label."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)


class PatternReader:
    """Reads the pattern of one clause and collects its variables."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def pattern(self, tree: Branch) -> Node:
        node = self._alternatives(tree)
        if not self._variables.names:
            raise PatternRefused("no-variable", "the pattern names no variable", position_of(tree))
        if (size := size_of(node)) > MAX_SIZE:
            raise PatternRefused(
                "too-large", f"the pattern has {size} steps with its repetitions; at most {MAX_SIZE}", position_of(tree)
            )
        return node

    def _alternatives(self, tree: Branch) -> Node:
        parts = tuple(map(self._sequence, trees_of(tree)))
        return parts[0] if len(parts) == 1 else Alternation(parts)

    def _sequence(self, tree: Branch) -> Node:
        words = [tokens_of(part)[0].upper() if part.data == "variable" else "" for part in trees_of(tree)]
        for place, part in enumerate(trees_of(tree)):
            if words[place : place + 3] == ["AFTER", "MATCH", "SKIP"]:
                raise PatternRefused(
                    "skip", "AFTER MATCH SKIP is inside PATTERN (...); write it before PATTERN", position_of(part)
                )
        parts = tuple(map(self._part, trees_of(tree)))
        return parts[0] if len(parts) == 1 else Concatenation(parts)

    def _part(self, tree: Branch) -> Node:
        match tree.data:
            case "variable":
                return Labelled(self._variables.label_of(name_of(tree, is_label=True)))
            case "empty":
                return Concatenation(())
            case "partition_start" | "partition_end":
                return Anchor(tree.data == "partition_start")
            case "alternation":
                return self._alternatives(tree)
            case "exclusion":
                self._variables.has_exclusion = True
                return Exclusion(self._alternatives(tree))
            case "permutation":
                return _permuted([self._alternatives(member) for member in trees_of(tree)], tree)
        part, quantifier = trees_of(tree)
        return _repetition(self._part(part), quantifier)


def size_of(node: Node) -> int:
    """Return the size that the program of a pattern will have: rows and branches, with repetitions expanded."""
    match node:
        case Concatenation() | Alternation():
            return 1 + sum(map(size_of, node.parts))
        case Exclusion():
            return size_of(node.part)
        case Repetition():
            return 1 + (size_of(node.part) + 1) * max(node.least + 1, node.most or 0)
        case _:
            return 1


def _permuted(parts: list[Node], tree: Branch) -> Node:
    """Return PERMUTE as an alternation of all orders. Orders that begin with earlier parts are preferred."""
    if factorial(len(parts)) * sum(map(size_of, parts)) > MAX_SIZE:
        raise PatternRefused("too-large", f"PERMUTE of {len(parts)} parts has too many orders", position_of(tree))
    orders: Iterable[tuple[Node, ...]] = permutations(parts)
    return Alternation(tuple(Concatenation(order) for order in orders))


def _repetition(part: Node, quantifier: Branch) -> Repetition:
    tokens = tokens_of(quantifier)
    if quantifier.data == "sign":
        least, most = _SIGNS[tokens[0][0]]
        return Repetition(part, least, most, is_greedy=len(tokens[0]) == 1)
    numbers = [int(token[:9]) for token in tokens if token.type == "INT"]
    least = 0 if quantifier.data in ("at_most", "any_number") else numbers[0]
    most = None if quantifier.data in ("at_least", "any_number") else numbers[-1]
    _check_bounds(least, most, quantifier)
    return Repetition(part, least, most, is_greedy=tokens[-1].type != "RELUCTANT" if tokens else True)


def _check_bounds(least: int, most: int | None, tree: Branch) -> None:
    if max(least, most or 0) > MAX_REPETITIONS:
        raise PatternRefused("too-large", f"at most {MAX_REPETITIONS} repetitions are allowed", position_of(tree))
    if most == 0 or (most is not None and least > most):
        raise PatternRefused(
            "quantifier", "the upper bound is at least 1, and not below the lower one", position_of(tree)
        )
