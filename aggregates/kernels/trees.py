"""Kernels of trees: the distinct values of a group in their order, with their counts, as a treap of ``Groups`` nodes.

A value is a pair of a float and an integer, compared in this order. The float is infinite for texts, and minus infinity
for booleans. The integer distinguishes whole numbers that are the same float. Texts are ordered by their bytes, or by
their codes. The first word of a tree is its root plus one, the second the number of its nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggregates.kernels.sums import LOW
from aggregates.kernels.tables import BOOLEAN, FALSE, FLOAT, FREE, INTEGER, INTEGRAL, SKETCHED, SPARE, TEXT, Groups, log
from streams.kernels.compiling import apart, inlined, routine

_GREATEST = 2.0**63 - 1_024  # float below 2**63, which is greater than every integer


@inlined
def whole_of(real: float) -> np.int64:
    """Return a float as an integer, or 0 if the float is not whole or exceeds the range of integers."""
    return np.int64(real) if -(2.0**63) <= real < 2.0**63 and real == np.floor(real) else np.int64(0)


@inlined
def real_of(bits: np.int64) -> np.float64:
    """Return the float with the given bits."""
    return np.int64(bits).view(np.float64)  # numba needs the dtype here


@inlined
def pair_of(kind: np.int64, number: np.int64) -> tuple[float, np.int64]:
    """Return the pair (float, integer) by which trees order a value other than null.

    ``number`` has the bits of a float.
    """
    if kind in (INTEGER, INTEGRAL):
        return min(float(number), _GREATEST), number
    if kind == FLOAT:
        real = real_of(number)
        return real, whole_of(real)
    if kind == TEXT:
        return np.inf, number
    return -np.inf, np.int64(kind == BOOLEAN)


@apart
def is_text_less(groups: Groups, left: np.int64, right: np.int64) -> bool:
    """Check whether a text, given by its code, comes before another text."""
    texts, ends = groups.texts, groups.text_ends
    if ends.shape[0] == 0:
        return bool(left < right)
    begin, other = ends[left], ends[right]
    size, other_size = ends[left + 1] - begin, ends[right + 1] - other
    for place in range(min(size, other_size)):
        if texts[begin + place] != texts[other + place]:
            return bool(texts[begin + place] < texts[other + place])
    return bool(size < other_size)


@inlined
def is_less(groups: Groups, real: float, integer: np.int64, other: float, other_integer: np.int64) -> bool:
    """Check whether the value with the pair (``real``, ``integer``) comes before the value with the other pair."""
    if real != other:
        return real < other
    if real == np.inf:
        return is_text_less(groups, integer, other_integer)
    return bool(integer < other_integer)


@inlined
def take_node(groups: Groups, state: NDArray[np.int64]) -> np.int64:
    """Remove a node from the list of free nodes and return it."""
    node = state[FREE]
    state[FREE] = groups.newer[node]
    state[SPARE] -= 1
    return np.int64(node)


@inlined
def free_node(groups: Groups, state: NDArray[np.int64], node: np.int64) -> None:
    """Add a node to the list of free nodes."""
    groups.reals[node] = 0.0
    groups.newer[node] = state[FREE]
    state[FREE] = node
    state[SPARE] += 1


@inlined
def priority(node: np.int64) -> np.int64:
    """Return the priority of a node in the heap order of the treap: a hash of its index."""
    mixed = (node * 0x9E3779B1) & LOW
    mixed ^= mixed >> 15
    return (mixed * 0x2C1B3C6D) & LOW


@inlined
def hang(groups: Groups, code: np.int64, offset: np.int64, parent: np.int64, is_after: bool, node: np.int64) -> None:
    """Make ``node`` the greater (``is_after``) or lesser child of ``parent``. If ``parent`` is -1, make it the root.

    The tree is at ``offset`` in the words of the group ``code``.
    """
    if parent < 0:
        groups.words[code, offset] = node + 1
    elif is_after:
        groups.newer[parent] = node
    else:
        groups.older[parent] = node


@inlined
def size_of(groups: Groups, node: np.int64) -> np.int64:
    """Return the number of values in the subtree of a node, with repeats. Node -1 is an empty subtree."""
    return np.int64(groups.sizes[node]) if node >= 0 else np.int64(0)


@inlined
def is_node_less(groups: Groups, node: np.int64, real: float, integer: np.int64) -> bool:
    """Check whether the value of a node comes before the value with the pair (``real``, ``integer``)."""
    return is_less(groups, groups.reals[node], groups.integers[node], real, integer)


@inlined
def find_node(groups: Groups, code: np.int64, offset: np.int64, real: float, integer: np.int64) -> np.int64:
    """Return the node of the value with the pair (``real``, ``integer``), or -1 if the tree does not have the value."""
    node = groups.words[code, offset] - 1
    while node >= 0 and (groups.reals[node] != real or groups.integers[node] != integer):
        is_less_than = is_node_less(groups, node, real, integer)
        node = np.int64(groups.newer[node] if is_less_than else groups.older[node])
    return np.int64(node)


@routine
def enter_tree(
    groups: Groups, state: NDArray[np.int64], code: np.int64, offset: np.int64, real: float, integer: np.int64
) -> None:
    """Add an occurrence of the value with the pair (``real``, ``integer``) to a tree of the group ``code``."""
    known = find_node(groups, code, offset, real, integer)
    fresh, parent, is_after, node = state[FREE], np.int64(-1), False, groups.words[code, offset] - 1
    while node >= 0 and node != known and (known >= 0 or priority(node) > priority(fresh)):
        groups.sizes[node] += 1
        parent, is_after = node, is_node_less(groups, node, real, integer)
        node = np.int64(groups.newer[node] if is_after else groups.older[node])
    if known >= 0:
        groups.counts[known] += 1
        groups.sizes[known] += 1
        return
    fresh = take_node(groups, state)
    groups.reals[fresh], groups.integers[fresh], groups.counts[fresh] = real, integer, 1
    groups.sizes[fresh] = size_of(groups, node) + 1
    groups.words[code, offset + 1] += 1
    hang(groups, code, offset, parent, is_after, fresh)
    split(groups, fresh, node)


@inlined
def split(groups: Groups, fresh: np.int64, node: np.int64) -> None:
    """Split the subtree of ``node`` at the value of ``fresh``.

    Lesser values become the lesser child of ``fresh``, greater values its greater child.
    """
    real, integer = groups.reals[fresh], groups.integers[fresh]
    below, at = np.int64(0), node
    while at >= 0:
        if is_node_less(groups, at, real, integer):
            below += groups.counts[at] + size_of(groups, np.int64(groups.older[at]))
            at = np.int64(groups.newer[at])
        else:
            at = np.int64(groups.older[at])
    low, high, is_low_after, is_high_after = fresh, fresh, False, True
    none = np.int64(0)  # a child of a node needs no group
    while node >= 0:
        if is_node_less(groups, node, real, integer):
            rest = below - groups.counts[node] - size_of(groups, np.int64(groups.older[node]))
            groups.sizes[node], below = below, rest
            hang(groups, none, none, low, is_low_after, node)
            low, is_low_after, node = node, True, np.int64(groups.newer[node])
        else:
            groups.sizes[node] -= below
            hang(groups, none, none, high, is_high_after, node)
            high, is_high_after, node = node, False, np.int64(groups.older[node])
    hang(groups, none, none, low, is_low_after, np.int64(-1))
    hang(groups, none, none, high, is_high_after, np.int64(-1))


@routine
def leave_tree(
    groups: Groups, state: NDArray[np.int64], code: np.int64, offset: np.int64, real: float, integer: np.int64
) -> None:
    """Remove an occurrence of the value with the pair (``real``, ``integer``) from a tree of the group ``code``."""
    known = find_node(groups, code, offset, real, integer)
    parent, is_after, node = np.int64(-1), False, groups.words[code, offset] - 1
    while node != known:
        groups.sizes[node] -= 1
        parent, is_after = node, is_node_less(groups, node, real, integer)
        node = np.int64(groups.newer[node] if is_after else groups.older[node])
    groups.counts[known] -= 1
    groups.sizes[known] -= 1
    if groups.counts[known] > 0:
        return
    left, right = np.int64(groups.older[known]), np.int64(groups.newer[known])
    while left >= 0 and right >= 0:
        if priority(left) > priority(right):
            groups.sizes[left] += groups.sizes[right]
            hang(groups, code, offset, parent, is_after, left)
            parent, is_after, left = left, True, np.int64(groups.newer[left])
        else:
            groups.sizes[right] += groups.sizes[left]
            hang(groups, code, offset, parent, is_after, right)
            parent, is_after, right = right, False, np.int64(groups.older[right])
    hang(groups, code, offset, parent, is_after, max(left, right))
    free_node(groups, state, known)
    groups.words[code, offset + 1] -= 1


@inlined
def node_at(groups: Groups, code: np.int64, offset: np.int64, place: np.int64) -> np.int64:
    """Return the node of the value with the index ``place`` in sorted order. A value that occurs twice counts twice."""
    node = groups.words[code, offset] - 1
    while True:
        before = size_of(groups, np.int64(groups.older[node]))
        if place < before:
            node = np.int64(groups.older[node])
        elif place < before + groups.counts[node]:
            return np.int64(node)
        else:
            place -= before + groups.counts[node]
            node = np.int64(groups.newer[node])


@apart
def clear_tree(
    groups: Groups,
    state: NDArray[np.int64],
    logs: NDArray[np.int64],
    code: np.int64,
    value: np.int64,
    offset: np.int64,
    most: np.int64,
) -> None:
    """Free the nodes of a tree, and write its values to the log in order, each at most ``most`` times."""
    node = groups.words[code, offset] - 1
    while node >= 0:
        while groups.older[node] >= 0:
            left = np.int64(groups.older[node])
            groups.older[node] = groups.newer[left]
            groups.newer[left] = node
            node = left
        real, integer, rest = groups.reals[node], groups.integers[node], np.int64(groups.newer[node])
        for _ in range(min(np.int64(groups.counts[node]), most)):
            if np.isinf(real):
                kind = TEXT if real > 0 else BOOLEAN if integer == 1 else FALSE
                log(logs, state, SKETCHED, code, value, kind, integer)
            elif integer != 0 or real == 0.0:
                log(logs, state, SKETCHED, code, value, INTEGER, integer)
            else:
                log(logs, state, SKETCHED, code, value, FLOAT, groups.real_bits[node])
        groups.counts[node] = 0
        free_node(groups, state, node)
        node = rest
    groups.words[code, offset] = groups.words[code, offset + 1] = 0
