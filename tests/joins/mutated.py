"""Kernels with a line changed, run as Python: what tests must notice."""

import inspect
import re
import sys
from types import ModuleType

import numpy as np

from joins import Item

_DECORATOR = re.compile(r"^@(kernel|routine|inlined|apart)$", re.MULTILINE)
_BORROWING = "from streams.kernels.borrowing import borrowed"


def interpreted(chain, changes=()):
    """The functions of a kernel module as plain Python, with changes (old text, new text), each made once.

    The module is the last of the chain; those before it are interpreted, too, in place of what it imports.
    """
    made: dict[str, ModuleType] = {}
    left = list(changes)
    for module in chain:
        text = _DECORATOR.sub("", inspect.getsource(module))
        text = text.replace(_BORROWING, "borrowed = lambda held: held")
        for old, new in list(left):
            if old in text:
                assert text.count(old) == 1
                text = text.replace(old, new)
                left.remove((old, new))
        made[module.__name__] = _run(module.__name__, text, made)
    assert not left
    return made[chain[-1].__name__]


def _run(name, text, made):
    """Execute a module's text while its interpreted dependencies are in place of the compiled ones."""
    fresh = ModuleType(name)
    before = {other: sys.modules[other] for other in made}
    sys.modules.update(made)
    try:
        exec(compile(text, name, "exec"), vars(fresh))
    finally:
        sys.modules.update(before)
    return fresh


def workload(seed, inputs):
    """Items of few keys; an input has no item of a key that it has closed."""
    chance = np.random.default_rng(seed)
    time, items, closed = 0, [], set()
    for _ in range(60):
        time += int(chance.integers(0, 3))
        number, key = int(chance.integers(inputs)), int(chance.integers(1, 7))
        if (number, key) in closed:
            continue
        is_closing = chance.random() < 0.15
        if is_closing:
            closed.add((number, key))
        items.append((Item.CLOSING if is_closing else Item.EVENT, number, key, time))
    return items
