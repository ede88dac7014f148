"""The refusal of a question."""

from __future__ import annotations

from aggregates.errors import AggregateRefused


class QuestionRefused(AggregateRefused, code="question-refused"):
    """A question asks for something that its index does not hold; ``field`` is the member."""
