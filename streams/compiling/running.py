"""Looks up and runs exercises by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module


def exercise_of(name: str) -> Callable[[], object]:
    """The function of an exercise ``module:function`` or ``module:function:argument``; its module is imported."""
    module, function, *arguments = name.split(":", 2)
    return partial(getattr(import_module(module), function), *arguments)


def run_exercise(name: str) -> None:
    """Run an exercise in this process, to load the kernels that it calls."""
    exercise_of(name)()
