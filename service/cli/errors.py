"""What the command line can be handed wrong.

ServiceError              service.errors
├── FileUnreadable        a named file cannot be read or written
└── PatternNameTaken      two patterns of one call share a name
"""

from __future__ import annotations

from typing import ClassVar

from service.errors import ServiceError
from streams.errors import Fault


class FileUnreadable(ServiceError):
    """A file cannot be read or written; the message names it."""

    code: ClassVar[str] = "file"
    fault: ClassVar[Fault] = "caller"


class PatternNameTaken(ServiceError):
    """Two patterns of one call have the same name."""

    code: ClassVar[str] = "pattern-name-taken"
    fault: ClassVar[Fault] = "caller"
