"""Errors of the public front. Their base is ``streams.errors.ForestallError``."""

from __future__ import annotations

from streams import ForestallError

__all__ = ["ForestallError", "FrameRefused", "ResultsNotKept"]


class FrameRefused(ForestallError, code="frame-refused", fault="caller"):
    """A value is not a table of events, or a column has unsuitable values."""


class ResultsNotKept(ForestallError, code="results-not-kept", fault="caller"):
    """A list of results was not kept, because the call did not name it in ``outputs``."""
