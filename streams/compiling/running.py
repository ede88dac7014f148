"""Looks up and runs exercises by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module


def exercise_of(name: str) -> Callable[[], object]:
    """Import the exercise (see ``streams.compiling``) named ``module:function`` or ``module:function:argument``."""
    module, function, *arguments = name.split(":", 2)
    return partial(getattr(import_module(module), function), *arguments)


def run_exercise(name: str) -> None:
    """Run an exercise, so that this process loads the kernels that the exercise calls."""
    exercise_of(name)()
