"""Errors of the algorithms."""

from __future__ import annotations

from joins.errors import JoinError


class PunctuationRefused(JoinError, code="punctuation-refused", fault="caller"):
    """A punctuation has an unknown form, or values that cannot be compared with the keys of its input."""


class PunctuationBroken(JoinError, code="punctuation-broken", fault="caller"):
    """An event of a key came on an input that had closed the key, and the join was declared to stop then."""
