"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .errors import FrameRefused, ResultsNotKept
from .match_result import MatchResult
from .matching import match

__all__ = [
    "FrameRefused",
    "MatchResult",
    "ResultsNotKept",
    "match",
]
