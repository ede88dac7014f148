"""Spark's Python workers by role: workers that match are separate from workers that read the log.

Workers with the same environment are one pool of Spark, and one daemon forks them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

_ROLE = "FORESTALL_ROLE"
_MATCHER, _TASK = "matcher", "task"

TASK_ENVIRONMENT = {_ROLE: _TASK}
"""The environment of workers that run continuous tasks, and of their daemon."""


@contextmanager
def matcher_workers(context: SparkContext, *, are_tasks: bool = False) -> Iterator[None]:
    """Let the steps that are planned in the block run in Python workers of their own, separate from other steps.

    These workers keep their kernels and the states of their shards. Shared workers might read in one micro-batch and
    match in the next. With ``are_tasks``, the workers run continuous tasks, and their daemon has loaded the kernels.
    """
    context.environment[_ROLE] = _TASK if are_tasks else _MATCHER
    try:
        yield
    finally:
        del context.environment[_ROLE]


def is_matcher() -> bool:
    """Check whether this process is a matching worker, or the daemon of matching workers."""
    return os.environ.get(_ROLE) in (_MATCHER, _TASK)  # house: allow environment: Spark passes it to its workers


def is_task() -> bool:
    """Check whether this process is a worker for continuous tasks, or the daemon of these workers."""
    return os.environ.get(_ROLE) == _TASK  # house: allow environment: Spark passes it to its workers
