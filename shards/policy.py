"""Policies: what is matched next. Any policy gives the same results."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from shards.derivation import Derivation, PlaceKey
from shards.entries import Entry
from streams import BatchFormatError, EventBatch, position_order

Key = TypeVar("Key", bound=Hashable)
Decoded: TypeAlias = tuple[Entry, EventBatch | BatchFormatError]


class Policy(Protocol):
    """Chooses among shards that have entries, and within the step of a shard among places that have some.

    Policies that choose alike are equal: a process keeps its states as long as its options are.
    """

    name: ClassVar[str]

    def choose(self, waiting: Mapping[Key, Sequence[Entry]]) -> Key:
        """The shard or place that is next; ``waiting`` has the next entries of each, and is not empty."""
        ...


@dataclass(frozen=True)
class OldestFirst:
    """The one whose first entry is the oldest: least latency. Within a shard that is the order of the log."""

    name: ClassVar[str] = "oldest-first"

    def choose(self, waiting: Mapping[Key, Sequence[Entry]]) -> Key:
        return min(waiting, key=lambda one: position_order(waiting[one][0].position))


def in_turns(decoded: Sequence[Decoded], derivation: Derivation, policy: Policy) -> Iterator[Sequence[Decoded]]:
    """Blocks of entries of one place, each to be matched together, in the order of a policy.

    A block has consecutive entries. If streams are derived from some of the places, entries of other streams may be in
    between. A stream that is derived from several ones depends on the order of their places only if an event comes
    later than its stream has promised; then the blocks come in the order of the log.
    """
    blocks = [list(block) for _, block in groupby(decoded, _place_of)]
    waiting: dict[PlaceKey, list[list[Decoded]]] = {}
    for block in blocks:
        waiting.setdefault(_place_of(block[0]), []).append(block)
    related = derivation.related(waiting) if len(waiting) > 1 else ()
    if len(waiting) == 1 or not derivation.is_in_order({key: _batches(waiting[key]) for key in related}):
        yield from blocks
        return
    if related:
        waiting = {key: [[pair for block in own for pair in block]] for key, own in waiting.items()}
    heads = {key: [entry for entry, _ in own[0]] for key, own in waiting.items()}
    while heads:
        key = policy.choose(heads)
        yield waiting[key].pop(0)
        if waiting[key]:
            heads[key] = [entry for entry, _ in waiting[key][0]]
        else:
            del heads[key]


def _place_of(decoded: Decoded) -> PlaceKey:
    return decoded[0].stream, decoded[0].route


def _batches(blocks: Sequence[Sequence[Decoded]]) -> list[EventBatch]:
    return [batch for block in blocks for _, batch in block if isinstance(batch, EventBatch) and len(batch)]
