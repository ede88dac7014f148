"""Errors of questions to the shards; the tree is in ``service.errors``."""

from __future__ import annotations

from service.errors import RequestRefused, ServiceError


class TooManyQuestions(ServiceError, code="too-many-questions", fault="external", is_retryable=True):
    """This process already asks the maximum number of questions."""


class PipelineAway(ServiceError, code="pipeline-not-running", fault="external", is_retryable=True):
    """The pipeline, which alone can answer, does not run."""


class AnswersLate(ServiceError, code="answers-late", fault="external", is_retryable=True):
    """Not all shards have answered a question in time."""


class OperatorAway(RequestRefused, code="operator-not-running"):
    """An operator is asked that does not run."""


class CaseFilterRefused(RequestRefused, code="case-filter-refused"):
    """A filter of open transactions names a pattern that has no partial matches there, or no duration."""


class QuestionRefused(RequestRefused, code="question-refused"):
    """A shard cannot answer a question."""
