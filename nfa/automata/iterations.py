"""Which iterations of a repetition a guard reasons about.

What a guard works out grows with the third power of the steps that it knows of. Of a pattern that has many, repetitions
written out, it knows the last iteration of each repetition only: a match must have that, too. So nothing is terminated
that could complete; something may be terminated later than it could be.
"""

from __future__ import annotations

from nfa.syntax import Atom, Node, Repeat

MAX_REASONED = 100  # steps, repetitions written out


def count_steps(node: Node) -> int:
    """Number of steps of a part that a match must have, its repetitions written out."""
    match node:
        case Atom():
            return 1
        case Repeat():
            return node.min * count_steps(node.of)
        case _:
            return sum(count_steps(part) for part in node.parts)


def is_coarse(event: Node) -> bool:
    """Whether a guard knows the last iterations only."""
    return count_steps(event) > MAX_REASONED


def reasoned(node: Repeat, *, coarse: bool) -> range:
    """The iterations that a guard knows, from 0."""
    return range(max(node.min - 1, 0) if coarse else 0, node.min)
