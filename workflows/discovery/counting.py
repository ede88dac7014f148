"""Counts how many traces activate a constraint and how many break it, for all types and pairs of types at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workflows.discovery.log import ABSENT_FIRST, Counts, EncodedLog, Occurrences

MAX_CELLS = 4_000_000
"""Largest number of cells in a table of variants by types. A larger log is counted in several blocks."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tally:
    """The counts of one kind of constraint over a log, for all types or pairs of types.

    ``tested`` counts the traces that activate a constraint. ``broken`` counts the activating traces that break it. Both
    are int64 arrays with an axis for each event type of the constraint: (types,) or (types, types).
    """

    tested: Counts
    broken: Counts


def count_plain(log: EncodedLog) -> Mapping[str, Tally]:
    """Return the tallies of orders, occurrence constraints and end events over the traces of a log.

    The traces that activate a constraint:

    - ``prior(A, B)``: traces with both types.
    - ``prior(A, A)``, ``require(A, B)`` and ``end(A)``: traces with an A.
    - ``existence(A)``: all traces.
    - ``exclusive(A, B)``: the number of traces with the rarer type. If all traces counted, a rare type would seem to
      exclude a frequent one even if both always occurred together.
    """
    width = len(log.types)
    both, ordered = np.zeros((width, width), np.int64), np.zeros((width, width), np.int64)
    followed = np.zeros(width, np.int64)
    for block in log.blocks(MAX_CELLS):
        seen = Occurrences.of(block)
        present = (seen.counts > 0).astype(np.float64)
        both += np.rint(present.T @ (present * block.weights[:, None])).astype(np.int64)
        ordered += _orders(block, seen)
        is_followed = (seen.first != ABSENT_FIRST) & (seen.first < block.lengths[:, None] - 1)
        followed += block.weights @ is_followed
    having = both.diagonal().copy()
    return {
        "prior": Tally(tested=both, broken=ordered),
        "exclusive": Tally(tested=np.minimum.outer(having, having), broken=both),
        "require": Tally(tested=np.broadcast_to(having[:, None], both.shape), broken=having[:, None] - both),
        "existence": Tally(tested=np.full(width, log.traces), broken=log.traces - having),
        "end": Tally(tested=having, broken=followed),
    }


def count_rules(log: EncodedLog) -> Mapping[str, Tally]:
    """Return the tallies of DECLARE rules (``response``, ``precedence``, ...) over the traces of a log.

    Traces with the first type activate a response. Traces with the second type activate a precedence. All traces
    activate ``init`` and ``last``.
    """
    width = len(log.types)
    kept = {kind: np.zeros((width, width), np.int64) for kind in _KEPT}
    ends = {kind: np.zeros(width, np.int64) for kind in ("init", "last")}
    having = np.zeros(width, np.int64)
    for block in log.blocks(MAX_CELLS):
        seen = Occurrences.of(block)
        having += block.weights @ (seen.counts > 0)
        ends["init"] += block.weights @ (seen.first == 0)
        ends["last"] += block.weights @ ((seen.counts > 0) & (seen.last == block.lengths[:, None] - 1))
        for kind, count in _KEPT.items():
            kept[kind] += count(block, seen)
    tallies = {
        kind: Tally(tested=np.full(width, log.traces), broken=log.traces - count) for kind, count in ends.items()
    }
    for kind, kept_by in kept.items():
        tested = np.broadcast_to(having[:, None] if kind.endswith("response") else having[None, :], kept_by.shape)
        tallies[kind] = Tally(tested=tested, broken=tested - kept_by)
    return tallies


def _per_first(
    seen: Occurrences, weights: Counts, holds: Callable[[int, NDArray[np.intp]], NDArray[np.bool_]]
) -> Counts:
    """Count, for each pair of types, the traces that have the first type and for which ``holds`` is true.

    ``holds`` takes the first type and the variants that have it, and returns a mask (variants, types).
    """
    counts = np.zeros((seen.counts.shape[1],) * 2, np.int64)
    for first in range(len(counts)):
        rows = np.flatnonzero(seen.counts[:, first])
        counts[first] = weights[rows] @ holds(first, rows)
    return counts


def _orders(log: EncodedLog, seen: Occurrences) -> Counts:
    """Return, for each pair of types, the number of traces in which the first type occurs after the second.

    On the diagonal, it is the number of traces with at least two events of the type.
    """
    return _per_first(seen, log.weights, lambda own, rows: seen.last[rows, own, None] > seen.first[rows])


def _chains(log: EncodedLog, seen: Occurrences, *, is_response: bool) -> Counts:
    """Return, for each pair of types, the number of traces that keep a chain rule.

    With ``is_response`` the rule is chain response: an event of the second type directly follows every event of the
    first. Otherwise it is chain precedence: an event of the first type directly precedes every event of the second.
    """
    width = len(log.types)
    follows = np.flatnonzero(seen.place[1:] > 0)  # events that have a next event in their variant
    pairs, often = np.unique(
        (seen.variant[follows] * width + log.codes[follows]) * width + log.codes[follows + 1], return_counts=True
    )
    variant, first, second = pairs // width**2, pairs // width % width, pairs % width
    is_kept = often == seen.counts[variant, first if is_response else second]
    counts = np.zeros((width, width), np.int64)
    np.add.at(counts, (first[is_kept], second[is_kept]), log.weights[variant[is_kept]])
    return counts


def _alternations(log: EncodedLog, seen: Occurrences, *, is_response: bool) -> Counts:
    """Return, for each pair of types, the number of traces that keep an alternate rule.

    With ``is_response`` the rule is alternate response, otherwise alternate precedence. Every gap (``_gaps``) of the
    activating type must contain an event of the other type.
    """
    width = len(log.types)
    groups, group, often = np.unique(seen.variant * width + log.codes, return_inverse=True, return_counts=True)
    opens, closes = _gaps(log, seen, group, is_response=is_response)
    first_types, weight = groups % width, log.weights[groups // width]
    counts = np.zeros((width, width), np.int64)
    for other in range(width):
        before = np.concatenate(([0], np.cumsum(log.codes == other)))
        is_met = before[closes] > before[opens]
        is_kept = np.bincount(group, weights=is_met, minlength=len(groups)) == often
        counts[:, other] = np.bincount(first_types, weights=weight * is_kept, minlength=width).astype(np.int64)
    return counts if is_response else counts.T


def _gaps(log: EncodedLog, seen: Occurrences, group: Counts, *, is_response: bool) -> tuple[Counts, Counts]:
    """Return where the gap of each event in ``group`` begins and ends, as indices into ``log.codes``.

    If ``is_response``, a gap follows its event, up to the next event of the same type or the end of the trace.
    Otherwise a gap precedes its event, from the previous event of the same type or the beginning of the trace.
    """
    events = np.arange(len(log.codes))
    order = np.argsort(group, kind="stable")
    is_alike = group[order][1:] == group[order][:-1]
    earlier, later = order[:-1][is_alike], order[1:][is_alike]
    if is_response:
        closes = log.starts[seen.variant + 1].copy()
        closes[earlier] = later
        return events + 1, closes
    opens = log.starts[seen.variant].copy()
    opens[later] = earlier + 1
    return opens, events


_KEPT: Mapping[str, Callable[[EncodedLog, Occurrences], Counts]] = {
    "response": lambda log, seen: _per_first(
        seen, log.weights, lambda own, rows: seen.last[rows] > seen.last[rows, own, None]
    ),
    "precedence": lambda log, seen: (
        _per_first(seen, log.weights, lambda own, rows: seen.first[rows] < seen.first[rows, own, None]).T
    ),
    "alternate response": lambda log, seen: _alternations(log, seen, is_response=True),
    "alternate precedence": lambda log, seen: _alternations(log, seen, is_response=False),
    "chain response": lambda log, seen: _chains(log, seen, is_response=True),
    "chain precedence": lambda log, seen: _chains(log, seen, is_response=False),
}
