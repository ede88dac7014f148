"""The tables of closed keys for kernels, against their sets."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from literature.punctuations import Anything, OneOf, Range, constant
from literature.spilling.closed_keys import ClosedKeys, hashes_of, keys_of

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
KEYS = [LEAST, LEAST + 1, -1, 0, 1, 2, 3, 4, 5, 1 << 40, GREATEST - 1, GREATEST]

values = st.sampled_from(KEYS)
patterns = st.one_of(
    st.builds(Range, low=values | st.none(), high=values | st.none(), has_low=st.booleans(), has_high=st.booleans()),
    st.builds(OneOf, st.frozensets(values, max_size=3)),
    st.builds(constant, values),
    st.just(Anything()),
)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 1), patterns), max_size=6), values)
def test_the_tables_cover_what_the_sets_cover(steps, key):
    closed = ClosedKeys()
    for number, pattern in steps:
        closed.add(number, pattern)
    forgotten = closed.forget(key)
    assert not forgotten or not any(one.covers(key) for one in closed.sets)
    for number, one in enumerate(closed.sets):
        flags = closed.covers(number, np.array(KEYS, np.int64))
        assert flags.tolist() == [one.covers(each) for each in KEYS]
    again = ClosedKeys([one.patterns() for one in closed.sets])
    assert [again.covers(number, np.array(KEYS, np.int64)).tolist() for number in (0, 1)] == [
        [one.covers(each) for each in KEYS] for one in closed.sets
    ]


def test_many_single_keys_find_room():
    closed = ClosedKeys()
    keys = np.arange(0, 5_000, 3)
    for key in keys.tolist():
        assert closed.add(key % 2, constant(key))
    assert closed.covers(0, keys).tolist() == (keys % 2 == 0).tolist()
    assert closed.covers(1, keys).tolist() == (keys % 2 == 1).tolist()
    assert not closed.covers(0, keys + 1).any()


def test_hashes_lead_back_to_keys():
    keys = np.array(KEYS, np.int64)
    assert keys_of(hashes_of(keys)).tolist() == KEYS
    assert len(np.unique(hashes_of(keys))) == len(KEYS)
