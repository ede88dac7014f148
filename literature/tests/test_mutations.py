"""Random workloads reveal a deliberate mistake in the kernel of the spilling join."""

import tempfile
from pathlib import Path

from joins import Item, ItemColumns
from literature.kernels import buckets
from literature.punctuations import Pattern, constant
from literature.spilling import SpillingJoin, SpillingRules, Thresholds
from literature.spilling import disk as spilling_disk
from literature.spilling import join as spilling_join
from literature.spilling import memory as spilling_memory
from literature.spilling.reference import ReferencePairJoin
from streams.kernels import slots
from tests.joins.mutated import interpreted, workload

WORKLOADS = 60
BUFFERED = [
    ("elif lent.on_disk[1 - number, bucket] > 0:", "elif False:"),
    ("            if lent.on_disk[other, bucket] > 0:", "            if False:"),
]


def wrong_spilling(monkeypatch, module):
    """The number of random workloads in which a spilling join misses a pair or emits a pair twice."""
    for name in ("join_events", "copy_part", "clear_part", "has_key", "put_rows"):
        monkeypatch.setattr(spilling_memory, name, getattr(module, name))
    monkeypatch.setattr(spilling_join, "purge_parts", module.purge_parts)
    monkeypatch.setattr(spilling_disk, "drop_resident", module.drop_resident)
    wrong = 0
    for seed in range(WORKLOADS):
        rows, meaning = [], ReferencePairJoin()
        patterns: list[Pattern] = []
        for kind, number, key, time in workload(seed, 2):
            rows.append((kind, number, len(patterns) if kind is Item.CLOSING else key, time))
            if kind is Item.CLOSING:
                patterns.append(constant(key))
                meaning.take_punctuation(number, patterns[-1], time)
            else:
                meaning.take_event(number, key, time)
        with tempfile.TemporaryDirectory() as folder:
            rules = SpillingRules(buckets=1 + seed % 2)
            join = SpillingJoin(Path(folder), rules=rules, thresholds=Thresholds(memory_events=3 + seed % 4))
            found = [*join.push(ItemColumns.of(rows), patterns).members.tolist(), *join.finish().members.tolist()]
        wrong += sorted(map(tuple, found)) != sorted(pair[:2] for pair in meaning.pairs)
    return wrong


def test_a_join_that_spills_needs_purge_buffers(monkeypatch):
    assert wrong_spilling(monkeypatch, interpreted([slots, buckets])) == 0
    assert wrong_spilling(monkeypatch, interpreted([slots, buckets], BUFFERED)) > 10
