"""Builders for tests: interleaved inputs whose keys rise roughly."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from literature.unsynchronised.arrivals import Arrivals
from literature.unsynchronised.monitors import scrambling_factor


def scrambled_keys(generator: np.random.Generator, size: int, block: int, multiplicity: int) -> NDArray[np.int64]:
    """Rising keys, each up to ``multiplicity`` times, permuted in blocks; some keys are missing."""
    keys = np.repeat(np.arange(size), generator.integers(0, multiplicity + 1, size))[:size]
    for start in range(0, len(keys), block):
        generator.shuffle(keys[start : start + block])
    return keys


def interleaved(generator: np.random.Generator, streams: list[NDArray[np.int64]]) -> Arrivals:
    """Inputs merged at random, with 0 or 1 microsecond between arrivals."""
    inputs = generator.permutation(np.repeat(np.arange(len(streams)), [len(keys) for keys in streams])).astype(np.uint8)
    keys = np.zeros(len(inputs), np.int64)
    for number, stream in enumerate(streams):
        keys[inputs == number] = stream
    return Arrivals(inputs=inputs, keys=keys, times_us=np.cumsum(generator.integers(0, 2, len(inputs))))


def factors_of(arrivals: Arrivals, inputs: int) -> list[int]:
    """The true scrambling factor of each input."""
    return [scrambling_factor(arrivals.keys[arrivals.inputs == number]) for number in range(inputs)]


@st.composite
def workloads(draw: Any, most: int = 25) -> tuple[int, Arrivals]:
    """A number of inputs, and their arrivals."""
    inputs = draw(st.integers(2, 4))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = [draw(st.integers(0, most)) for _ in range(inputs)]
    streams = [scrambled_keys(generator, size, draw(st.integers(1, 9)), draw(st.integers(1, 3))) for size in sizes]
    return inputs, interleaved(generator, streams)
