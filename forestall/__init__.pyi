"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .client import ApiError, AsyncClient, ServiceUnreachable, UnexpectedAnswer
from .errors import FrameRefused, ResultsNotKept
from .match_result import MatchResult
from .matching import match

__all__ = [
    "ApiError",
    "AsyncClient",
    "FrameRefused",
    "MatchResult",
    "ResultsNotKept",
    "ServiceUnreachable",
    "UnexpectedAnswer",
    "match",
]
