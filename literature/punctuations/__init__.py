"""Punctuations: promises that some values will not come any more, and the keys that they close.

Purpose: patterns (constants, lists, ranges, none, anything), the set of keys that an input has closed, the windowed
join with punctuations of ranges, and punctuations made from events: by a buffer, by a sample, and the choice of
attributes that are worth them. Promises: a range closes present and future keys as the constants in it would; the
events that a buffer releases break none of its punctuations.
"""

from literature.punctuations.closed_set import ClosedSet, closed_of
from literature.punctuations.generating import BufferGenerator, BufferRules, Finished, HeldEvent, Released
from literature.punctuations.hints import FinitePunctuation, Hint, ProbablePunctuation, Scope, hint_form, read_hint
from literature.punctuations.patterns import (
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
from literature.punctuations.punctuated import OverRange, PunctuatedColumns, PunctuatedJoin, PunctuationStats
from literature.punctuations.sampling import greatest_share, least_share, sampled_punctuation, unanimous_share
from literature.punctuations.sources import (
    Candidate,
    Saving,
    SourceChoice,
    Weights,
    net_gain,
    saving_of,
    with_punctuations,
    worthwhile,
)

__all__ = [
    "Anything",
    "BufferGenerator",
    "BufferRules",
    "Candidate",
    "ClosedSet",
    "Domain",
    "Finished",
    "FinitePunctuation",
    "HeldEvent",
    "Hint",
    "Nothing",
    "OneOf",
    "OverRange",
    "Pattern",
    "ProbablePunctuation",
    "PunctuatedColumns",
    "PunctuatedJoin",
    "PunctuationStats",
    "Range",
    "Released",
    "Saving",
    "Scope",
    "SourceChoice",
    "Value",
    "Weights",
    "closed_of",
    "constant",
    "greatest_share",
    "hint_form",
    "is_empty",
    "is_missing",
    "key_pattern",
    "least_share",
    "matches",
    "net_gain",
    "pattern_form",
    "read_hint",
    "read_pattern",
    "require_domain",
    "sampled_punctuation",
    "saving_of",
    "unanimous_share",
    "with_punctuations",
    "worthwhile",
]
