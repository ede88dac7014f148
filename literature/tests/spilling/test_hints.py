"""Announcements move events, and change reads and writes, but no results."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Item, ItemColumns
from literature.block_files import BlockFile
from literature.errors import PunctuationRefused
from literature.punctuations import (
    Anything,
    BufferGenerator,
    BufferRules,
    FinitePunctuation,
    Hint,
    Nothing,
    OneOf,
    ProbablePunctuation,
    Range,
    Scope,
    constant,
)
from literature.spilling import Component, SpillingJoin, SpillingRules, Thresholds, default_rows, disk
from literature.spilling.files import ON_DISK, Block, BucketFiles, BucketRows
from literature.spilling.hints import Hints, inside_of, meets
from literature.spilling.reference import ReferenceHints, ReferencePairJoin

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
KEYS = range(6)
values = st.integers(0, 5)
patterns = st.one_of(
    st.builds(Range, low=values | st.none(), high=values | st.none(), has_low=st.booleans(), has_high=st.booleans()),
    st.builds(OneOf, st.frozensets(values, min_size=1, max_size=3)),
    st.sampled_from([Anything(), Nothing()]),
)
scopes = st.builds(Scope, events=st.integers(1, 8), us=st.none() | st.integers(1, 8)) | st.builds(
    Scope, us=st.integers(1, 8)
)
hints: st.SearchStrategy[Hint] = st.one_of(
    st.builds(FinitePunctuation, pattern=patterns, scope=scopes),
    st.builds(ProbablePunctuation, pattern=patterns, scope=scopes, probability=st.sampled_from([0.0, 0.5, 1.0])),
)
EVENT, CLOSING, HINT, IDLE = "event", "closing", "hint", "idle"
kinds = st.sampled_from([EVENT] * 8 + [CLOSING, HINT, HINT, IDLE])


@st.composite
def workloads(draw):
    """Steps (kind, input, key or hint, time); an input has no event of a key that it closed."""
    time, steps = 0, []
    closed: list[set[int]] = [set(), set()]
    for kind, number, key, wait, hint in draw(
        st.lists(st.tuples(kinds, st.integers(0, 1), values, st.integers(0, 2), hints), max_size=60)
    ):
        time += wait
        if kind == EVENT and key in closed[number]:
            continue
        if kind == CLOSING:
            if key in closed[number]:
                continue
            closed[number].add(key)
        steps.append((kind, number, hint if kind == HINT else key, time))
    return steps


@st.composite
def joins_of(draw):
    """Rules and thresholds of joins with little memory."""
    rules = SpillingRules(buckets=draw(st.sampled_from([1, 2])), carries_payloads=draw(st.booleans()))
    thresholds = Thresholds(
        memory_events=draw(st.sampled_from([2, 4, 7])),
        purge_punctuations=draw(st.sampled_from([1, 3])),
        block_events=draw(st.sampled_from([1, 2, 3])),
        scope_events=draw(st.sampled_from([1, 4])),
        activation_events=draw(st.sampled_from([1, 3])),
    )
    return rules, thresholds, default_rows(draw(st.sampled_from(["push", "on-zero", "pull"])))


class Played:
    """A join that processes steps; events carry their sequence numbers."""

    def __init__(self, folder, rules, thresholds=None, rows=None):
        self.join = SpillingJoin(folder, rules=rules, thresholds=thresholds, rows=rows)
        self.carries = rules.carries_payloads
        self.sequence = 0
        self.pairs: list[tuple[int, ...]] = []
        self.said: list[object] = []

    def note(self, found):
        self.pairs += map(tuple, found.members.tolist())
        self.said += [(said.pattern, said.cause, said.time_us) for said in found.propagated]
        if self.carries:
            carried = [[int(one) for one in column.to_pylist()] for column in found.payloads]
            assert list(map(list, zip(*carried, strict=True))) == found.members.tolist()

    def play(self, steps):
        """Process steps; events and closings between hints are one batch."""
        waiting: list[tuple] = []
        for step in steps:
            if step[0] in (EVENT, CLOSING):
                waiting.append(step)
                continue
            self.push(waiting)
            waiting = []
            kind, number, hint, time = step
            self.note(self.join.idle(10**6) if kind == IDLE else self.join.announce(number, hint, time))
        self.push(waiting)

    def push(self, steps):
        said = [constant(key) for kind, _, key, _ in steps if kind == CLOSING]
        rows, payloads, closings = [], [], 0
        for kind, number, key, time in steps:
            is_event = kind == EVENT
            rows.append((Item.EVENT if is_event else Item.CLOSING, number, key if is_event else closings, time))
            payloads.append(str(self.sequence).encode() if is_event else None)
            self.sequence += is_event
            closings += not is_event
        self.note(self.join.push(ItemColumns.of(rows), said, payloads if self.carries else None))


def pairs_of(steps):
    """The pairs that every join must find."""
    meaning = ReferencePairJoin()
    for kind, number, key, time in steps:
        if kind == EVENT:
            meaning.take_event(number, key, time)
        elif kind == CLOSING:
            meaning.take_punctuation(number, constant(key), time)
    return sorted(pair[:2] for pair in meaning.pairs)


def found_by(steps, configuration):
    """The pairs of a join with hints, some of which are false."""
    rules, thresholds, rows = configuration
    with tempfile.TemporaryDirectory() as folder:
        played = Played(Path(folder), rules, thresholds, rows)
        played.play(steps)
        assert played.join.stats.in_memory < thresholds.memory_events
        played.note(played.join.finish())
        assert played.join.stats.in_memory + played.join.stats.on_disk == sum(played.join.held)
        return sorted(played.pairs)


@settings(max_examples=200)
@given(workloads(), joins_of())
def test_true_and_false_hints_change_no_result(steps, configuration):
    assert found_by(steps, configuration) == pairs_of(steps)


@settings(max_examples=100)
@given(workloads(), joins_of(), st.integers(0, 60), st.booleans())
def test_neither_cuts_nor_reloads_change_what_hints_lead_to(steps, configuration, border, is_released):
    rules, thresholds, rows = configuration
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        whole, parts = Played(Path(one), rules, thresholds, rows), Played(Path(two), rules, thresholds, rows)
        whole.play(steps)
        parts.play(steps[:border])
        saved = parts.join.dump()
        if is_released:
            parts.join.release()
        parts.join.idle(10**6)  # lost in a crash
        parts.join = SpillingJoin(Path(two), rules=rules)
        parts.join.load(*saved)
        parts.play(steps[border:])
        for played in (whole, parts):
            played.note(played.join.finish())
        assert (parts.pairs, parts.said) == (whole.pairs, whole.said)
        assert parts.join.stats == whole.join.stats
        assert parts.join.dump()[0]["hints"] == whole.join.dump()[0]["hints"]


@settings(max_examples=200)
@given(workloads())
def test_hints_say_what_all_hints_say(steps):
    hints, meaning, now = Hints(), ReferenceHints(), 0
    arriving = SpillingJoin(Path("unused"))._hashed
    for kind, number, said, time in steps:
        now = max(now, time)
        if kind == HINT:
            meaning.now_us = now
            hints.pass_time(now)
            hints.add(number, said, now, 0)
            meaning.add(number, said)
        elif kind == EVENT:
            hints.pass_items(arriving(ItemColumns.of([(Item.EVENT, number, said, time)])), 0, 1, now)
            meaning.take_event(number, time)
        for mine in (0, 1):
            keys = np.array(KEYS, np.int64)
            assert hints.cold(mine, keys, 1).tolist() == [meaning.is_cold(mine, key) for key in KEYS]
            assert hints.hot(mine, keys, 1).tolist() == [meaning.is_hot(mine, key) for key in KEYS]
            assert all(hints.may_be_hot(mine, block_of(key), 1) for key in KEYS if meaning.is_hot(mine, key))
    again = Hints()
    again.load(hints.dump())
    assert again.dump() == hints.dump()


def block_of(low, high=None):
    """A block with keys from ``low`` to ``high``."""
    high = low if high is None else high
    return Block(file=BlockFile("", 0), events=1, low=low, high=high, arrived=0, flushed=0)


@given(patterns, values, values)
def test_a_pattern_meets_fences_if_it_has_a_key_between_them(pattern, low, high):
    between = np.arange(low, high + 1)
    assert meets(pattern, low, high) >= bool(inside_of(pattern, between).any())
    assert not meets(Nothing(), low, high)


def test_the_least_and_greatest_keys_are_keys():
    edges = np.array([LEAST, 0, GREATEST], np.int64)
    assert inside_of(Range(low=LEAST, has_low=False), edges).tolist() == [False, True, True]
    assert inside_of(Range(low=GREATEST, has_low=False), edges).tolist() == [False, False, False]
    assert inside_of(Range(high=LEAST, has_high=False), edges).tolist() == [False, False, False]


def random_steps(seed):
    """Steps of few keys, with hints."""
    chance = np.random.default_rng(seed)
    steps: list[tuple[str, int, int | Hint, int]] = []
    for place in range(80):
        key = int(chance.integers(6))
        if chance.random() < 0.15:
            hint = FinitePunctuation(pattern=Range(low=key, high=key + 1), scope=Scope(events=10))
            steps.append((HINT, int(chance.integers(2)), hint, place))
        elif chance.random() < 0.1:
            steps.append((IDLE, 0, 0, place))
        else:
            steps.append((EVENT, int(chance.integers(2)), key, place))
    return steps


CONFIGURATION = (SpillingRules(buckets=2), Thresholds(memory_events=6, block_events=1), default_rows("none"))


def wrong_of(seeds):
    """The number of random workloads with wrong pairs."""
    return sum(found_by(steps, CONFIGURATION) != pairs_of(steps) for steps in map(random_steps, seeds))


@pytest.mark.parametrize("mistake", ["no block is read", "only new blocks are read", "nothing is covered before"])
def test_mistakes_with_fences_and_with_what_comes_back_are_seen(mistake, monkeypatch):
    assert wrong_of(range(4)) == 0
    if mistake == "no block is read":
        monkeypatch.setattr(disk, "blocks_with_pairs", lambda mine, other, covered: [False] * len(mine.blocks))
    elif mistake == "only new blocks are read":
        monkeypatch.setattr(
            disk,
            "blocks_with_pairs",
            lambda mine, other, covered: [block.arrived >= covered for block in mine.blocks],
        )
    else:
        plain = SpillingJoin._bring_back

        def bring_back(join):
            monkeypatch.setattr(SpillingJoin, "_join_disk", lambda *_: None)
            plain(join)
            monkeypatch.undo()
            monkeypatch.setattr(SpillingJoin, "_bring_back", bring_back)

        monkeypatch.setattr(SpillingJoin, "_bring_back", bring_back)
    assert wrong_of(range(4)) > 2


def phases(join, *, is_announced):
    """8,000 events of the first input, then events of the second one range by range; returns the pairs found."""
    found = []
    join.push(ItemColumns.of([(Item.EVENT, 0, key * 7 % 8_000, 0) for key in range(8_000)]))
    for low in range(0, 8_000, 500):
        if is_announced:
            hint = FinitePunctuation(pattern=Range(low=low, high=low + 499), scope=Scope(events=500))
            found.append(join.announce(1, hint, 1))
        for first in range(low, low + 500, 100):
            found.append(join.push(ItemColumns.of([(Item.EVENT, 1, key, 2) for key in range(first, first + 100)])))
            found.append(join.idle(10**6))
    return sum(len(part.members) for part in found)


@pytest.mark.compiled
def test_announcements_save_reads_and_find_pairs_at_once(tmp_path):
    def run(name, *, is_announced):
        join = SpillingJoin(
            tmp_path / name,
            rules=SpillingRules(buckets=4),
            thresholds=Thresholds(memory_events=2_000, block_events=64),
        )
        assert phases(join, is_announced=is_announced) == 8_000
        return join.stats, join.traffic

    plain, plain_traffic = run("plain", is_announced=False)
    told, told_traffic = run("told", is_announced=True)
    assert told_traffic.read_events < plain_traffic.read_events / 2
    told_traffic_all = told_traffic.read_events + told_traffic.written_events
    assert told_traffic_all < plain_traffic.read_events + plain_traffic.written_events
    assert told_traffic.hits == told_traffic.read_back > 5_000
    assert (told.memory_results, told_traffic.stalls) == (8_000, 0)
    assert plain.memory_results < 1_000
    assert plain_traffic.skipped_events > 3 * plain_traffic.read_events  # fences


def test_cold_events_leave_first(tmp_path):
    join = SpillingJoin(tmp_path, rules=SpillingRules(buckets=1), thresholds=Thresholds(memory_events=10))
    join.announce(1, FinitePunctuation(pattern=Range(low=5), scope=Scope(us=100)), 0)
    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(10)]))
    assert join.stats.on_disk == 5
    assert join.push(ItemColumns.of([(Item.EVENT, 1, key, 1) for key in range(10)])).members[:, 0].tolist() == [
        5,
        6,
        7,
        8,
        9,
    ]


def test_short_scopes_and_unlikely_ones_do_not_count(tmp_path):
    thresholds = Thresholds(memory_events=10, scope_events=3)
    low = Range(low=5)
    said: list[tuple[Hint, int]] = [
        (FinitePunctuation(pattern=low, scope=Scope(events=2)), 10),
        (FinitePunctuation(pattern=low, scope=Scope(events=3)), 5),
        (ProbablePunctuation(pattern=low, scope=Scope(events=3), probability=0.4), 10),
        (ProbablePunctuation(pattern=low, scope=Scope(events=3), probability=0.6), 5),
    ]
    for number, (hint, on_disk) in enumerate(said):
        join = SpillingJoin(tmp_path / str(number), rules=SpillingRules(buckets=1), thresholds=thresholds)
        join.announce(1, hint, 0)
        join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(10)]))
        assert join.stats.on_disk == on_disk


def test_what_a_buffer_announces_is_read_back_before_it_comes(tmp_path):
    """The buffer of section 7.4 and the hints of section 7.3 together."""
    join = SpillingJoin(
        tmp_path, rules=SpillingRules(buckets=2), thresholds=Thresholds(memory_events=400, block_events=32)
    )
    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(1_000)]))
    released = BufferGenerator(BufferRules(events=100)).push(list(range(1_000)), [1] * 1_000)
    pairs = 0
    for place, said in released.said:
        assert isinstance(said, FinitePunctuation)
        pairs += len(join.announce(1, said, 1).members)
        rows = [(Item.EVENT, 1, event.key or 0, 1) for event in released.events[place : place + 100]]
        pairs += len(join.push(ItemColumns.of(rows)).members)
    assert pairs == join.stats.memory_results == 1_000
    assert join.traffic.stalls == 0


def test_what_comes_back_carries_its_payload_and_may_leave_again(tmp_path):
    rules = SpillingRules(buckets=2, carries_payloads=True)
    played = Played(tmp_path, rules, Thresholds(memory_events=20, block_events=4))
    played.play([(EVENT, 0, key, 0) for key in range(60)])
    for low in (0, 30, 0):
        hint = FinitePunctuation(pattern=Range(low=low, high=low + 9), scope=Scope(events=10))
        played.play([(HINT, 1, hint, 1), *((EVENT, 1, key, 1) for key in range(low, low + 10))])
    assert played.join.traffic.read_back >= 20
    assert played.join.traffic.hits == played.join.traffic.read_back
    assert len(played.pairs) == 30
    assert played.join.stats.disk_results == 0


def test_without_its_row_in_the_registry_nothing_comes_back(tmp_path):
    rows = [row for row in default_rows() if Component.READ_BACK not in row.components]
    join = SpillingJoin(tmp_path, rules=SpillingRules(buckets=4), thresholds=Thresholds(memory_events=2_000), rows=rows)
    assert phases(join, is_announced=True) == 8_000
    assert (join.traffic.read_back, join.stats.disk_results > 5_000) == (0, True)


def test_a_hint_must_be_about_integers(tmp_path):
    join = SpillingJoin(tmp_path)
    with pytest.raises(PunctuationRefused):
        join.announce(0, FinitePunctuation(pattern=constant("a"), scope=Scope(us=1)), 0)
    assert join.dump()[0]["hints"] == []


def test_states_without_hints_and_fences_are_still_loaded(tmp_path):
    """The form that earlier releases wrote."""
    thresholds = Thresholds(memory_events=3)
    join = SpillingJoin(tmp_path, rules=SpillingRules(buckets=1), thresholds=thresholds)
    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(8)]))
    head, arrays = join.dump()
    del head["hints"], head["thresholds"]["block_events"], head["thresholds"]["scope_events"]
    again = SpillingJoin(tmp_path, rules=SpillingRules(buckets=1))
    again.load(head, arrays)
    again.push(ItemColumns.of([(Item.EVENT, 1, key, 0) for key in range(8)]))
    again.finish()
    assert again.stats.memory_results + again.stats.disk_results == 8


def test_given_up_blocks_are_gone_and_what_is_left_of_them_is_last(tmp_path):
    files, bucket = BucketFiles(tmp_path), (0, 0)

    def rows_of(*keys):
        rows = np.zeros(len(keys), ON_DISK)
        rows["key"] = keys
        return BucketRows.of(rows, pa.array([b"x"] * len(keys), pa.binary()))

    blocks = [files.append(bucket, rows_of(key, key + 1)) for key in (0, 10, 20, 30)]
    files.give_up(bucket, [(blocks[1], rows_of(11))])
    saved = files.save()
    again = BucketFiles(tmp_path)
    again.restore(saved)
    assert sorted(again.read(bucket).rows["key"].tolist()) == [0, 1, 11, 20, 21, 30, 31]
    assert [(one.low, one.high) for one in again.blocks(bucket)] == [(0, 1), (20, 21), (30, 31), (11, 11)]
    files.give_up(bucket, [(one, rows_of()) for one in files.blocks(bucket)[:2]])
    assert [events for _, _, events in saved[0][2]] == [2, 2, 2, 1]  # what comes later does not change it
    assert sorted(files.read(bucket).rows["key"].tolist()) == [11, 30, 31]
    assert files.save()[0][2] == saved[0][2][2:]
    files.give_up(bucket, [(one, rows_of()) for one in files.blocks(bucket)])
    assert (files.events(bucket), files.save()) == (0, [])
