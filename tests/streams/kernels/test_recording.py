import numpy as np
import pytest

from streams.kernels.compiling import kernel, routine
from streams.kernels.recording import recorded

pytestmark = pytest.mark.compiled


@routine
def halved(number):
    return number // 2


@kernel
def count_down(number):
    steps = 0
    while number > 0:
        number = halved(number)
        steps += 1
    return steps


@kernel
def smallest(numbers):
    return numbers.min(), len(numbers)


@kernel
def longest(numbers, text):
    return count_down(len(numbers)) + count_down(text)


def test_the_kernels_that_python_calls_are_recorded_with_their_types():
    def call():
        smallest(np.arange(3, dtype=np.int32))
        smallest(np.arange(5, dtype=np.int32))
        count_down(5)

    found = {needed.name.rpartition(".")[2]: [str(part) for part in needed.signature] for needed in recorded(call)}
    assert found == {"smallest": ["array(int32, 1d, C)"], "count_down": ["int64"]}
    assert not any(vars(one).get("overloads") for one in (count_down, smallest))


def test_results_have_the_types_that_compiled_code_returns():
    def call():
        least, length = smallest(np.arange(3, dtype=np.int32))
        assert (type(least), type(length)) == (int, int)
        count_down(least)

    signatures = {str(needed.signature) for needed in recorded(call) if "count_down" in needed.name}
    assert signatures == {"(int64,)"}


def test_what_a_kernel_calls_is_compiled_with_it():
    found = recorded(lambda: longest(np.zeros(9), 4))
    assert [needed.name.rpartition(".")[2] for needed in found] == ["longest"]


def test_the_largest_comes_first():
    found = recorded(lambda: (count_down(3), longest(np.zeros(9), 4)))
    assert [needed.name.rpartition(".")[2] for needed in found] == ["longest", "count_down"]
    assert found[0].size > found[1].size > 0


def test_afterwards_everything_is_as_it_was():
    compiled = (smallest, halved)
    with pytest.raises(ZeroDivisionError):
        recorded(lambda: 1 // 0)
    assert (smallest, halved) == compiled
