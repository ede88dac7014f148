"""Finds names that leave no possible order for a goal once they are certain. Sets of names are bit masks.

A goal is impossible if its nodes are on a cycle of order constraints, together with names that were seen or must still
occur (constraint-aware CEP, section 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from constraints.sets import bits_of, members, union


class Node(NamedTuple):
    """An event that must occur for a goal. The sets of names are masks.

    Attributes:
        later: Names after which the event cannot occur.
        earlier: Names that cannot occur after the event.
        alike: Names of the event's own type.
        is_atom: Whether the event belongs to a match. Two events of a match are always distinct.
        after: Nodes that precede this node in the pattern, as bits of node indices.
    """

    later: int
    earlier: int
    shown: int
    alike: int
    is_atom: bool = False
    after: int = 0

    def precedes(self, other: Node) -> bool:
        """Check whether a constraint orders this node before the other.

        Nodes that may be the same event are unordered.
        """
        is_apart = (self.is_atom and other.is_atom) or not self.shown & other.alike
        return is_apart and self.shown & other.earlier != 0


def conflicts(nodes: Sequence[Node], candidates: Mapping[int, Node], most: int | None) -> list[int]:
    """Return the minimal sets of candidates that close a cycle of orders if all their names occur.

    ``nodes`` always occur. If they have a cycle alone, the only result is the empty set. ``candidates`` maps the bit
    index of each name that may become certain to its node. A set has at most ``most`` names, or any number if ``most``
    is None.
    """
    reach = _reach(nodes)
    if reach is None:
        return [0]
    if most == 0:
        return []
    free = bits_of(candidates)
    behind = [node.later & ~node.alike & free for node in nodes]
    following = {}
    single = 0
    for name, candidate in candidates.items():
        met = [place for place, node in enumerate(nodes) if node.earlier & ~node.alike & 1 << name]
        through = union(behind[place] for place in members(union(reach[place] for place in met)))
        if through >> name & 1:
            single |= 1 << name
        following[name] = through | candidate.later & ~candidate.alike & free
    masks = [1 << name for name in members(single)]
    if most != 1:
        masks += _circles(following, free & ~single, most)
    return least(masks)


def _circles(following: Mapping[int, int], candidates: int, most: int | None) -> Iterator[int]:
    for start in members(candidates):
        higher = candidates & ~((2 << start) - 1)
        waiting = [(start, 1 << start)]
        while waiting:
            name, path = waiting.pop()
            if name != start and following[name] >> start & 1:
                yield path
            elif most is None or path.bit_count() < most:
                waiting += [(other, path | 1 << other) for other in members(following[name] & higher & ~path)]


def least(masks: Iterable[int]) -> list[int]:
    """Return the masks that contain no other mask, in ascending order of size."""
    minimal: list[int] = []
    for mask in sorted(set(masks), key=lambda candidate: (candidate.bit_count(), candidate)):
        if not any(other & ~mask == 0 for other in minimal):
            minimal.append(mask)
    return minimal


def _reach(nodes: Sequence[Node]) -> list[int] | None:
    """Return for each node a mask of the node itself and all nodes that must follow it, or None if there is a cycle."""
    following = [0] * len(nodes)
    for later, node in enumerate(nodes):
        for earlier, other in enumerate(nodes):
            if earlier != later and (node.after >> earlier & 1 or other.precedes(node)):
                following[earlier] |= 1 << later
    reach: list[int] = [0] * len(nodes)
    waiting = (1 << len(nodes)) - 1
    while waiting:
        ready = [place for place in members(waiting) if not following[place] & waiting]
        if not ready:
            return None
        for place in ready:
            reach[place] = 1 << place | union(reach[other] for other in members(following[place]))
            waiting &= ~(1 << place)
    return reach
