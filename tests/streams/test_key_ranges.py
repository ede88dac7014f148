"""Keys that are whole numbers, read singly and by columns."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import KeyRange, whole_number, whole_numbers

EDGES = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**18 - 1, 10**18, 10**19, 0]
texts = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.sampled_from(EDGES).map(str),
    st.text(alphabet="0123456789-+. \n", max_size=21),
    st.text(max_size=3),
)


@given(st.lists(texts, max_size=20))
def test_columns_say_what_single_keys_do(keys: list[str]) -> None:
    is_whole, numbers = whole_numbers(pa.array(keys, pa.string()))
    found = [int(number) if one else None for one, number in zip(is_whole.tolist(), numbers.tolist(), strict=True)]
    assert found == [whole_number(key) for key in keys]


@given(st.integers(-(2**65), 2**65))
def test_each_number_of_64_bits_has_one_key(number: int) -> None:
    assert whole_number(str(number)) == (number if -(2**63) <= number < 2**63 else None)


@pytest.mark.parametrize("key", ["007", "-0", "+7", "7.0", "7 ", "7\n", "٧", "1e3", "", "a7", "0x7"])
def test_what_is_not_written_as_a_number_is_none(key: str) -> None:
    assert whole_number(key) is None
    assert whole_numbers(pa.array([key]))[0].tolist() == [False]
    assert key not in KeyRange(low=-(2**63))


def test_both_bounds_are_in_a_range() -> None:
    found = KeyRange(low=-2, high=3)
    assert [key for key in ("-3", "-2", "0", "3", "4", "a") if key in found] == ["-2", "0", "3"]
    assert KeyRange.from_json(found.to_json()) == found
    assert KeyRange.from_json({"to": 3}) == KeyRange(high=3)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({}, "has 'from', 'to' or both"),
        (None, "has 'from', 'to' or both"),
        ({"from": 1, "until": 2}, "has 'from', 'to' or both"),
        ({"from": 1.0}, "'from' of a range is a whole number"),
        ({"to": True}, "'to' of a range is a whole number"),
        ({"to": 2**63}, "'to' of a range is a whole number"),
        ({"from": 2, "to": 1}, "from 2 to 1, which contains no key"),
    ],
)
def test_other_forms_are_refused(value: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        KeyRange.from_json(value)
