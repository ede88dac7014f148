"""Punctuations: promises that some values do not come any more, and the keys that they close.

Purpose: patterns (constants, lists, ranges, none, anything), the set of keys that an input has closed, and the windowed
join with punctuations of ranges. Promises: a range closes present and future keys as the constants in it would.
"""

from joins.punctuations.closed_set import ClosedSet, closed_of
from joins.punctuations.patterns import (
    Anything,
    Domain,
    Nothing,
    OneOf,
    Pattern,
    Range,
    Value,
    constant,
    is_empty,
    is_missing,
    key_pattern,
    matches,
    pattern_form,
    read_pattern,
    require_domain,
)
from joins.punctuations.punctuated import OverRange, PunctuatedColumns, PunctuatedJoin, PunctuationStats

__all__ = [
    "Anything",
    "ClosedSet",
    "Domain",
    "Nothing",
    "OneOf",
    "OverRange",
    "Pattern",
    "PunctuatedColumns",
    "PunctuatedJoin",
    "PunctuationStats",
    "Range",
    "Value",
    "closed_of",
    "constant",
    "is_empty",
    "is_missing",
    "key_pattern",
    "matches",
    "pattern_form",
    "read_pattern",
    "require_domain",
]
