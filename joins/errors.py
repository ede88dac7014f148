"""The errors of joins.

::

    JoinError
    ├── JoinRefused      a document describes no join that can run
    └── JoinStateError   a saved state cannot be read
"""

from __future__ import annotations

from typing import ClassVar

from streams import Fault, ForestallError


class JoinError(ForestallError):
    """Something is wrong with a join or its state."""

    code: ClassVar[str] = "join"


class JoinRefused(JoinError):
    """A document describes no join, or one whose memory nothing bounds; the message names the member."""

    code: ClassVar[str] = "join-refused"
    fault: ClassVar[Fault] = "caller"


class JoinStateError(JoinError):
    """A saved state of a join is damaged, or of a version that this release does not know."""

    code: ClassVar[str] = "join-state"
