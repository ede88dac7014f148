"""Errors of questions to the shards; the tree is in ``service.errors``."""

from __future__ import annotations

from typing import ClassVar

from service.errors import RequestRefused, ServiceError
from streams import Fault


class TooManyQuestions(ServiceError):
    """As many questions to the shards are being answered for this process as may be."""

    code: ClassVar[str] = "too-many-questions"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class PipelineAway(ServiceError):
    """Only the pipeline can answer, and it does not run."""

    code: ClassVar[str] = "pipeline-not-running"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class AnswersLate(ServiceError):
    """Not all shards have answered a question in time."""

    code: ClassVar[str] = "answers-late"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class CaseFilterRefused(RequestRefused):
    """A filter of open transactions names a pattern that has no partial matches there, or no duration."""

    code: ClassVar[str] = "case-filter-refused"


class QuestionRefused(RequestRefused):
    """A shard cannot answer a question."""

    code: ClassVar[str] = "question-refused"
