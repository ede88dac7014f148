"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .kind import PatternKind
from .result_kinds import ALERT, PATTERN_RESULTS, alert_id

__all__ = [
    "ALERT",
    "PATTERN_RESULTS",
    "PatternKind",
    "alert_id",
]
