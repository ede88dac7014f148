"""Errors of joins."""

from __future__ import annotations

from streams import ForestallError


class JoinError(ForestallError, code="join"):
    """Something is wrong with a join or its state."""


class JoinRefused(JoinError, code="join-refused", fault="caller"):
    """A document describes no join, or one whose memory nothing bounds; the message names the member."""


class JoinStateError(JoinError, code="join-state"):
    """A saved state of a join is damaged, or of a version that this release does not know."""


class PunctuationRefused(JoinError, code="punctuation-refused", fault="caller"):
    """A punctuation has an unknown form, or values that cannot be compared with the keys of its input."""


class PunctuationBroken(JoinError, code="punctuation-broken", fault="caller"):
    """An event of a key came on an input that had closed the key, and the join was declared to stop then."""
