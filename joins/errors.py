"""Errors of joins."""

from __future__ import annotations

from streams import ForestallError


class JoinError(ForestallError, code="join"):
    """Something is wrong with a join or its state."""


class JoinRefused(JoinError, code="join-refused", fault="caller"):
    """A document describes no join, or one whose memory nothing bounds; the message names the member."""


class JoinStateError(JoinError, code="join-state"):
    """A saved state of a join is damaged, or of a version that this release does not know."""
