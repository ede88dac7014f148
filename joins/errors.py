"""Errors of joins."""

from __future__ import annotations

from streams import ForestallError


class JoinError(ForestallError, code="join"):
    """A join or its saved state is faulty."""


class JoinRefused(JoinError, code="join-refused", fault="caller"):
    """A document describes no join, or a join with unbounded memory. The message names the member."""


class JoinStateError(JoinError, code="join-state"):
    """A saved state of a join is damaged, or has a format that this release does not know."""
