"""Files of buckets: what a saved state names stays readable, and damage is found."""

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


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_blocks_are_appended_and_read(tmp_path):
    files = BucketFiles(tmp_path / "spilled")
    assert len(files.read(BUCKET)) == files.events(BUCKET) == 0
    files.append(BUCKET, rows_of(1, -2))
    files.append(BUCKET, rows_of(5))
    assert listed(files.read(BUCKET)) == listed(rows_of(1, -2, 5))
    assert files.events(BUCKET) == 3
    size = (tmp_path / "spilled" / "0-3-1.blocks").stat().st_size
    assert files.traffic.written_bytes == files.traffic.read_bytes == size
    files.clear()
    assert files_in(tmp_path / "spilled") == []


def test_a_saved_position_survives_what_comes_after_it(tmp_path):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1))
    saved = files.save()
    files.append(BUCKET, rows_of(2))
    files.replace(BUCKET, rows_of(2))
    files.append((1, 0), rows_of(7))
    again = BucketFiles(tmp_path)
    again.restore(saved)
    assert listed(again.read(BUCKET)) == listed(rows_of(1))
    assert files_in(tmp_path) == ["0-3-1.blocks"]
    again.append(BUCKET, rows_of(9))
    assert listed(again.read(BUCKET)) == listed(rows_of(1, 9))
    again.append((1, 0), rows_of(8))
    assert files_in(tmp_path) == ["0-3-1.blocks", "1-0-2.blocks"]


def test_replaced_files_stay_until_the_next_state_is_safe(tmp_path):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1, 2))
    files.save()
    files.replace(BUCKET, rows_of(2))
    assert len(files_in(tmp_path)) == 2
    second = files.save()
    assert len(files_in(tmp_path)) == 2  # the second state may not be safe yet
    files.replace(BUCKET, rows_of())
    files.release()
    assert files_in(tmp_path) == ["0-3-2.blocks"]  # named by the second state
    BucketFiles(tmp_path).restore(second)
    assert files.save() == []
    files.release()
    assert files_in(tmp_path) == []


def test_a_replaced_file_that_no_state_names_is_removed_at_once(tmp_path):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1, 2))
    files.replace(BUCKET, rows_of(1))
    assert files_in(tmp_path) == ["0-3-2.blocks"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: content[:-1], "missing, or shorter"),
        (lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:], "damaged block"),
        (lambda content: b"XXXX" + content[4:], "damaged block"),
        (None, "missing, or shorter"),
    ],
)
def test_damage_is_found_when_a_state_is_loaded(tmp_path, damage, reason):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1, 2))
    saved = files.save()
    path = tmp_path / "0-3-1.blocks"
    content = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(content))
    with pytest.raises(JoinStateError, match=reason):
        BucketFiles(tmp_path).restore(saved)


@pytest.mark.parametrize(("length", "events", "reason"), [(-1, 0, "damaged block"), (30, 1, "damaged"), (10, 1, "cut")])
def test_a_position_that_does_not_fit_its_file_is_refused(tmp_path, length, events, reason):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1))
    ((number, bucket, name, whole, _),) = files.save()
    length = whole - 1 if length < 0 else length
    with pytest.raises(JoinStateError, match=reason):
        BucketFiles(tmp_path).restore([(number, bucket, name, length, events)])
    files.append(BUCKET, rows_of(2))


def test_a_position_with_another_number_of_events_is_refused(tmp_path):
    files = BucketFiles(tmp_path)
    files.append(BUCKET, rows_of(1))
    ((number, bucket, name, length, _),) = files.save()
    with pytest.raises(JoinStateError, match="has 1 events"):
        BucketFiles(tmp_path).restore([(number, bucket, name, length, 2)])


def spilled(folder):
    join = SpillingJoin(folder, rules=SpillingRules(buckets=1), thresholds=Thresholds(memory_events=4))
    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(10)]))
    return join


def test_a_damaged_or_foreign_state_of_a_join_is_refused(tmp_path):
    head, arrays = spilled(tmp_path).dump()
    with pytest.raises(JoinStateError, match="format 2"):
        SpillingJoin(tmp_path, rules=SpillingRules(buckets=1)).load({**head, "format": 2}, arrays)
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
