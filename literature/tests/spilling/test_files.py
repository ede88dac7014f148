"""Files of buckets: files that a saved state names stay readable, and damage is found."""

import numpy as np
import pyarrow as pa
import pytest

from joins import Item, ItemColumns, JoinStateError
from literature.punctuations import constant
from literature.spilling import SpillingJoin, SpillingRules, Thresholds
from literature.spilling.files import ON_DISK, BucketFiles, BucketRows

BUCKET = (0, 3)


def rows_of(*keys):
    rows = np.zeros(len(keys), ON_DISK)
    rows["key"] = keys
    rows["hash"] = np.array(keys, np.int64).view(np.uint64) * np.uint64(3)
    return BucketRows.of(rows, pa.array([str(key).encode() for key in keys], pa.binary()))


def listed(events):
    return list(zip(events.rows.tolist(), events.payloads.to_pylist(), strict=True))


def names_in(saved):
    return sorted(name for _, _, blocks in saved for name, _, _ in blocks)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def replaced(files, *rows):
    """Replace all blocks of the bucket by one block."""
    blocks = files.blocks(BUCKET)
    files.give_up(BUCKET, [(block, rows_of(*(rows if place == 0 else ()))) for place, block in enumerate(blocks)])


def test_blocks_are_appended_and_read(tmp_path):
    files = BucketFiles(tmp_path / "spilled")
    assert len(files.read(BUCKET)) == files.events(BUCKET) == 0
    files.append(BUCKET, rows_of(1, -2))
    files.append(BUCKET, rows_of(5))
    assert listed(files.read(BUCKET)) == listed(rows_of(1, -2, 5))
    assert files.events(BUCKET) == 3
    size = sum(path.stat().st_size for path in (tmp_path / "spilled").iterdir())
    assert files.traffic.written_bytes == files.traffic.read_bytes == size
    files.clear()
    assert files_in(tmp_path / "spilled") == []


def test_a_saved_state_survives_what_comes_after_it(tmp_path):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1))
    saved = files.save()
    files.append(BUCKET, rows_of(2))
    replaced(files, 2)
    files.append((1, 0), rows_of(7))
    again = BucketFiles(tmp_path)
    again.restore(saved)
    assert listed(again.read(BUCKET)) == listed(rows_of(1))
    assert files_in(tmp_path) == names_in(saved)
    again.append(BUCKET, rows_of(9))
    assert listed(again.read(BUCKET)) == listed(rows_of(1, 9))


def test_replaced_files_stay_until_the_next_state_is_safe(tmp_path):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1, 2))
    first = files.save()
    replaced(files, 2)
    assert len(files_in(tmp_path)) == 2
    second = files.save()
    assert files_in(tmp_path) == sorted(names_in(first) + names_in(second))  # the second state may not be safe yet
    replaced(files)
    files.release()
    assert files_in(tmp_path) == names_in(second)
    BucketFiles(tmp_path).restore(second)
    assert files.save() == []
    files.release()
    assert files_in(tmp_path) == []


def test_a_replaced_file_that_no_state_names_is_removed_at_once(tmp_path):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1, 2))
    replaced(files, 1)
    assert files_in(tmp_path) == names_in(files.save())


def test_equal_blocks_share_a_file_until_none_needs_it(tmp_path):
    files = BucketFiles(tmp_path)
    for bucket in (BUCKET, (1, 3)):
        files.append(bucket, rows_of(1))
    assert len(files_in(tmp_path)) == 1
    replaced(files)
    assert listed(files.read((1, 3))) == listed(rows_of(1))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: content[:-1], "bytes, not"),
        (lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:], "is damaged"),
        (lambda content: b"XXXX" + content[4:], "is damaged"),
        (None, "is missing"),
    ],
)
def test_damage_is_found_when_a_state_is_loaded(tmp_path, damage, reason):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1, 2))
    saved = files.save()
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(content))
    with pytest.raises(JoinStateError, match=reason):
        BucketFiles(tmp_path).restore(saved)


@pytest.mark.parametrize(
    ("more", "events", "reason"), [(-1, 1, "bytes, not"), (9, 1, "bytes, not"), (0, 2, "has 1 ev")]
)
def test_a_state_that_does_not_fit_its_files_is_refused(tmp_path, more, events, reason):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1))
    ((number, bucket, ((name, size, _),)),) = files.save()
    with pytest.raises(JoinStateError, match=reason):
        BucketFiles(tmp_path).restore([(number, bucket, [(name, size + more, events)])])


def spilled(folder):
    join = SpillingJoin(folder, rules=SpillingRules(buckets=1), thresholds=Thresholds(memory_events=4))
    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(10)]))
    return join


def test_a_damaged_or_foreign_state_of_a_join_is_refused(tmp_path):
    head, arrays = spilled(tmp_path).dump()
    with pytest.raises(JoinStateError, match="format 1"):
        SpillingJoin(tmp_path, rules=SpillingRules(buckets=1)).load({**head, "format": 1}, arrays)
    with pytest.raises(JoinStateError, match="the rules"):
        SpillingJoin(tmp_path, rules=SpillingRules(buckets=2)).load(head, arrays)
    with pytest.raises(JoinStateError, match="cannot be read"):
        SpillingJoin(tmp_path, rules=SpillingRules(buckets=1)).load(head, {**arrays, "nodes": b"123"})
    with pytest.raises(JoinStateError, match="cannot be read"):
        SpillingJoin(tmp_path, rules=SpillingRules(buckets=1)).load({**head, "rows": 3}, arrays)


def test_closed_keys_leave_the_disk_and_the_files_of_a_finished_join_can_be_removed(tmp_path):
    join = spilled(tmp_path)
    assert join.held == (10, 0)
    closings = [(Item.CLOSING, number, place, 1) for place, number in enumerate([0] * 9 + [1] * 9)]
    found = join.push(ItemColumns.of(closings), [constant(key % 9) for key in range(18)])
    assert join.held == (1, 0)
    assert len(found.propagated) == 9
    join.close()
    assert files_in(tmp_path) == []
