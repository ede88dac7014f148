"""Comparison of the results of two sets of rules over the same events, in one shard.

Equal results of two sets of rules are in the same shard and round, because the compared members include the key of the
source. So only counts and differing results leave the shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import orjson
import pyarrow as pa

from shards.operators import Likeness
from shards.results import ResultKind
from shards.rows import RowBlock
from shards.runs.plan import Variant

HELD_DIFFERENCES = 100_000

_DIGEST_BYTES = 16


@dataclass(slots=True, kw_only=True)
class ComparisonCounts:
    """Numbers of equal and of differing results, between the first variant and another one. Counts of shards add up.

    Attributes:
        added: Results of the first variant only.
        lost: Results of the other variant only.
        same: Results of both.
        unlisted: Results in ``added`` or ``lost`` that are not listed, because a shard retains at most
            ``HELD_DIFFERENCES``.
    """

    added: int = 0
    lost: int = 0
    same: int = 0
    unlisted: int = 0

    def __add__(self, other: ComparisonCounts) -> ComparisonCounts:
        return ComparisonCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})

    def to_document(self) -> dict[str, int]:
        return asdict(self)


class Comparison:
    """Compares the results of a variant with results of the first variant, and finds the differences.

    A result is retained until the other variant makes an equal result.
    """

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._waiting: dict[str, dict[bytes, list[tuple[ResultKind, bytes]]]] = {"added": {}, "lost": {}}
        self._held = 0
        self._unlisted = 0
        self._same = 0

    @property
    def counts(self) -> ComparisonCounts:
        sizes = {label: sum(map(len, waiting.values())) for label, waiting in self._waiting.items()}
        return ComparisonCounts(same=self._same, unlisted=self._unlisted, **sizes)

    def take(self, blocks: Sequence[RowBlock], *, is_first: bool) -> None:
        """Compare new rows with the other variant's retained rows. ``is_first``: new rows are of the first variant."""
        label, names = ("added", {}) if is_first else ("lost", self._variant.counterparts)
        for block in blocks:
            if (kind := block.found.kind).same_by:
                for body in block.found.bodies.to_pylist():
                    self._wait(kind, body, label, names)

    def differences(self) -> Iterator[tuple[str, pa.Array]]:
        """Return the results that only one variant has, by label.

        A label is ``added`` or ``lost``, followed by ``-<kind>`` unless the kind is main.
        """
        by_label: dict[str, list[bytes]] = {}
        for label, waiting in self._waiting.items():
            for kind, body in (entry for entries in waiting.values() for entry in entries):
                if body:
                    by_label.setdefault(label if kind.is_main else f"{label}-{kind.name}", []).append(body)
        return ((label, pa.array(bodies, pa.binary())) for label, bodies in by_label.items())

    def _wait(self, kind: ResultKind, body: bytes, label: str, names: Mapping[str, str]) -> None:
        identity = identity_of(kind, orjson.loads(body), names, self._variant.alike)
        opposite = self._waiting["lost" if label == "added" else "added"]
        if identity in opposite:
            self._let_go(opposite, identity)
            return
        held_body = body if self._held < HELD_DIFFERENCES else b""
        self._waiting[label].setdefault(identity, []).append((kind, held_body))
        self._held += bool(held_body)
        self._unlisted += not held_body

    def _let_go(self, waiting: dict[bytes, list[tuple[ResultKind, bytes]]], identity: bytes) -> None:
        bodies = waiting[identity]
        _, body = bodies.pop()
        if not bodies:
            del waiting[identity]
        self._held -= bool(body)
        self._unlisted -= not body
        self._same += 1


def identity_of(kind: ResultKind, body: Mapping[str, Any], names: Mapping[str, str], alike: Likeness) -> bytes:
    """Return a digest of a result, which is equal for results that count as the same.

    ``names`` maps operators to counterparts with other names. ``alike`` says whether bindings or only their events are
    compared.
    """
    members: dict[str, Any] = {name: body.get(name) for name in kind.same_by or sorted(body.keys() - {"id"})}
    if kind.subject in members:
        members[kind.subject] = names.get(members[kind.subject], members[kind.subject])
    if alike == "events" and "bindings" in members:
        members["bindings"] = sorted({event for events in members["bindings"].values() for event in events})
    identity = orjson.dumps([kind.name, members], option=orjson.OPT_SORT_KEYS)
    return blake2b(identity, digest_size=_DIGEST_BYTES).digest()
