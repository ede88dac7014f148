"""Payloads of events are returned with each pair, from memory or from disk."""

import pytest

from joins import Item, ItemColumns, JoinStateError
from literature.punctuations import Pattern, constant
from literature.spilling import SpillingJoin, SpillingRules, Thresholds
from tests.builders.joins import GeneratedStream, generated

RULES = SpillingRules(buckets=4, carries_payloads=True)


def name_of(sequence):
    return f"event {sequence}".encode()


def checked_pairs(found):
    """The pairs of some results, after a check of their payloads."""
    for number, carried in enumerate(found.payloads):
        assert carried.to_pylist() == [name_of(one) for one in found.members[:, number].tolist()]
    return found.members.tolist()


def batches(size):
    """Generated items in batches, with patterns and payloads."""
    items, sequence, parts = generated([GeneratedStream(spacing=15), GeneratedStream(spacing=25)], 3, seed=2), 0, []
    for start in range(0, len(items), size):
        part = items.slice(start, start + size)
        rows, payloads = [], []
        patterns: list[Pattern] = []
        for kind, number, key, time in zip(part.kinds, part.inputs, part.keys, part.times_us, strict=True):
            is_closing = kind == Item.CLOSING
            rows.append((Item(int(kind)), int(number), len(patterns) if is_closing else int(key), int(time)))
            payloads.append(None if is_closing else name_of(sequence))
            if is_closing:
                patterns.append(constant(int(key)))
            else:
                sequence += 1
        parts.append((ItemColumns.of(rows), patterns, payloads))
    return parts


@pytest.mark.parametrize("memory", [5, 60, 10**9])
def test_each_pair_has_the_payloads_of_its_members(memory, tmp_path):
    thresholds = Thresholds(memory_events=memory, activation_events=20, purge_punctuations=3)
    join, pairs = SpillingJoin(tmp_path / "a", rules=RULES, thresholds=thresholds), []
    for part in batches(200):
        pairs += checked_pairs(join.push(*part)) + checked_pairs(join.idle(0))
        head, arrays = join.dump()
        assert len(arrays["payload_sequences"]) == 8 * join.stats.in_memory
        join = SpillingJoin(tmp_path / "a", rules=RULES)
        join.load(head, arrays)
    pairs += checked_pairs(join.finish())
    plain = SpillingJoin(tmp_path / "b", rules=SpillingRules(buckets=4))
    expected = [pair for items, patterns, _ in batches(500) for pair in plain.push(items, patterns).members.tolist()]
    assert sorted(pairs) == sorted(expected)
    assert len(pairs) > 1_000
    assert (join.stats.disk_results > 0) == (memory < 10**9)


def test_payloads_of_events_that_left_are_forgotten(tmp_path):
    join = SpillingJoin(tmp_path, rules=RULES)
    for start in range(0, 6_000, 500):
        items = ItemColumns.of([(Item.EVENT, 0, key, key) for key in range(start, start + 500)])
        join.push(items, (), [name_of(0)] * 500)
        closing = ItemColumns.of([(Item.CLOSING, 1, number, start + 500) for number in range(500)])
        join.push(closing, [constant(key) for key in range(start, start + 500)], [None] * 500)
    assert join.stats.in_memory == 0
    assert len(join._payloads) <= 1_024


def test_payloads_are_given_where_they_were_declared(tmp_path):
    items = ItemColumns.of([(Item.EVENT, 0, 1, 0)])
    with pytest.raises(ValueError, match="if and only if"):
        SpillingJoin(tmp_path, rules=RULES).push(items)
    with pytest.raises(ValueError, match="if and only if"):
        SpillingJoin(tmp_path).push(items, (), [b"x"])
    assert SpillingJoin(tmp_path).push(items).payloads is None


def test_damaged_payloads_are_refused(tmp_path):
    join = SpillingJoin(tmp_path, rules=RULES)
    join.push(ItemColumns.of([(Item.EVENT, 0, 1, 0)]), (), [b"x"])
    head, arrays = join.dump()
    with pytest.raises(JoinStateError, match="do not fit their sizes"):
        join.load(head, {**arrays, "payloads": b"xy"})
