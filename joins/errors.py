"""The errors of joins.

::

    ForestallError
      JoinError
        JoinStateError   a saved state cannot be read
"""

from __future__ import annotations

from typing import ClassVar

from streams import ForestallError
from streams.errors import Fault


class JoinError(ForestallError):
    """What a join refuses."""

    code: ClassVar[str] = "join"


class JoinStateError(JoinError):
    """A saved state of a join is damaged, or of a version that this release does not know."""

    code: ClassVar[str] = "join-state"
    fault: ClassVar[Fault] = "internal"
