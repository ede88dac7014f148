"""Errors of aggregates."""

from __future__ import annotations

from streams import ForestallError


class AggregateError(ForestallError, code="aggregate"):
    """An aggregate or its saved state is faulty."""


class AggregateRefused(AggregateError, code="aggregate-refused", fault="caller"):
    """The document of an aggregate is invalid. The message names the member."""


class AggregateStateError(AggregateError, code="aggregate-state"):
    """A saved state of an aggregate is damaged, or has a format that this release does not know."""


class QuestionRefused(AggregateRefused, code="question-refused"):
    """A question asks for something that the aggregate does not hold. ``field`` names the question's member."""
