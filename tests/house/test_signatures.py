"""A kernel that was compiled for two kinds of argument is found."""

from types import ModuleType

from numba import njit

from house import surplus_signatures


def kernel_module(*arguments):
    def double(value):
        return value + value

    double.__module__ = "planted.kernels"
    module = ModuleType("planted.kernels")
    kernel = njit(double)
    for argument in arguments:
        kernel(argument)
    vars(module)["double"] = kernel
    return module


def test_second_signature_is_found():
    (found,) = surplus_signatures([kernel_module(1, 1.5)])
    assert found.startswith("planted.kernels.double was compiled 2 times")


def test_one_signature_is_fine():
    assert surplus_signatures([kernel_module(1, 2)]) == []
