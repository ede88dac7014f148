"""What Spark tells of a failure, in one line."""

from __future__ import annotations

_OWN_ERRORS = "pipeline.errors."


def summary_of(error: Exception) -> str:
    """What happened, without the stacks: the last line that names an error of this project, or else the last line."""
    told = str(error).split("JVM stacktrace:")[0].split("=== Streaming Query ===")[0]
    lines = [line.strip() for line in told.splitlines() if line.strip() and not line[0].isspace()]
    own = [line for line in lines if line.startswith(_OWN_ERRORS)]
    if own:
        return own[-1].partition(": ")[2]
    return lines[-1] if lines else type(error).__name__
