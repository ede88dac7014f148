import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from streams import column_of, numbers_of, time_column

KINDS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9])
def test_a_column_is_what_arrow_makes_of_numbers(kind, size):
    values = (np.arange(size) * 37 % 5).astype(kind)
    for chosen in (values, values[::-1], values[1::2]):
        column = column_of(chosen)
        column.validate(full=True)
        assert column.equals(pa.array(chosen))
        assert column.null_count == 0


def test_no_number_is_null():
    assert column_of(np.array([np.nan, 1.0])).is_valid().to_pylist() == [True, True]


def test_what_may_not_be_written_can_be_a_column():
    values = np.array([3, 4])
    values.flags.writeable = False
    assert column_of(values).to_pylist() == [3, 4]


def test_times_are_as_in_a_batch():
    times_us = np.array([-1, 0, 1_767_225_601_000_000])
    assert time_column(times_us).equals(pa.array(times_us).cast(pa.timestamp("us", tz="UTC")))


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_numbers_come_back(kind):
    values = np.arange(9).astype(kind)
    for column in (column_of(values), column_of(values)[2:], column_of(values)[3:3]):
        found = numbers_of(column)
        assert found.dtype == values.dtype
        assert found.tolist() == column.to_pylist()
        assert not found.flags.writeable or not len(found)


def test_times_come_back():
    times_us = np.array([5, -7, 9])
    assert numbers_of(time_column(times_us)[1:]).tolist() == [-7, 9]


def test_pandas_is_not_imported():
    script = """
import sys
import numpy as np
from streams import EventBatch, column_of, numbers_of
numbers_of(column_of(np.arange(3)))
assert len(EventBatch.from_events([])) == 0
print('pandas' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
