"""Spark's failures as one line of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import PySparkException

from pipeline.errors import PipelineError

_OWN_ERRORS = f"{PipelineError.__module__}."
_OF_SOURCE = ("PythonStreamingSourceRunner", "PythonPlannerRunner")
_TRIES = 3
_Answer = TypeVar("_Answer")
_GONE = ("java.io.EOFException", "java.net.SocketException", "java.net.SocketTimeoutException")


def lost_source(error: Exception) -> bool:
    """Check whether Spark lost a Python process that planned micro-batches, and the process reported no error."""
    stacks = str(getattr(error, "_stackTrace", ""))  # of the exception and its causes in the JVM
    return any(name in stacks for name in _OF_SOURCE) and any(name in stacks for name in _GONE)


def again_if_lost(call: Callable[[], _Answer]) -> _Answer:
    """Return the result of a call. Call again if Spark lost the Python process that plans micro-batches."""
    for _ in range(_TRIES - 1):
        try:
            return call()
        except PySparkException as error:
            if not lost_source(error):
                raise
    return call()


def summary_of(error: Exception) -> str:
    """Return a failure as one line: the last line with an error of this project, or else the last line of all."""
    if lost_source(error):
        return "the Python process in which Spark plans micro-batches died, or was killed as memory is short"
    text = str(error).split("JVM stacktrace:")[0].split("=== Streaming Query ===")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line[0].isspace()]
    own_lines = [line for line in lines if line.startswith(_OWN_ERRORS)]
    if own_lines:
        return own_lines[-1].partition(": ")[2]
    return lines[-1] if lines else type(error).__name__
