"""Errors of the public front; their base is ``streams.errors.ForestallError``."""

from __future__ import annotations

from streams import ForestallError

__all__ = ["ForestallError", "FrameRefused", "ResultsNotKept"]


class FrameRefused(ForestallError, code="frame-refused", fault="caller"):
    """A value is not a table of events, or a column does not hold what it is used for."""


class ResultsNotKept(ForestallError, code="results-not-kept", fault="caller"):
    """A list of results was not among the outputs that a call asked for."""
