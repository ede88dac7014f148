"""Hints of an input about its next events: positive finite punctuations, and probable punctuations.

Source: sections 7.3 and 7.5 of the specification of punctuation-aware joins. An ordinary punctuation names keys that
certainly never come again; a hint is about the next events, or only probably true. An exact join finds the same results
whether or not hints are true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from literature.errors import PunctuationRefused
from literature.punctuations.patterns import Pattern, pattern_form, read_pattern
from streams import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The next events of an input; events without a key do not count.

    Attributes:
        events: Greatest number of events; None: no bound.
        us: Event time after the punctuation at which the scope ends; None: no bound.
        is_rest: Whether the input ends after these events.
    """

    events: int | None = None
    us: int | None = None
    is_rest: bool = False

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.events, self.us) if bound is not None]
        if min(bounds, default=0) < 1:
            raise PunctuationRefused(f"a scope has events or us, at least 1; got {shown(bounds)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinitePunctuation:
    """A positive finite punctuation (herald): the events in ``scope`` have keys of ``pattern``."""

    pattern: Pattern
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbablePunctuation:
    """A probable punctuation: probably no event in ``scope`` has a key of ``pattern``.

    Attributes:
        pattern: The keys.
        scope: The events.
        probability: From 0 to 1.
        reading: ``claim``: the probability that no event in the scope has such a key; if one does, any number may.
            ``per-event``: the probability for each event, whatever the others are.
    """

    pattern: Pattern
    scope: Scope
    probability: float
    reading: Literal["claim", "per-event"] = "claim"

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise PunctuationRefused(f"a probability is from 0 to 1, not {self.probability}")


Hint = FinitePunctuation | ProbablePunctuation


def hint_form(hint: Hint) -> dict[str, Any]:
    """The JSON value that ``read_hint`` reads."""
    scope = hint.scope
    form: dict[str, Any] = {"pattern": pattern_form(hint.pattern), "scope": [scope.events, scope.us, scope.is_rest]}
    if isinstance(hint, ProbablePunctuation):
        form |= {"probability": hint.probability, "reading": hint.reading}
    return form


def read_hint(form: Mapping[str, Any]) -> Hint:
    """The hint of a JSON value.

    Raises:
        PunctuationRefused: Its pattern or scope is not valid.
        KeyError: A member is missing.
    """
    events, us, is_rest = form["scope"]
    scope, pattern = Scope(events=events, us=us, is_rest=is_rest), read_pattern(form["pattern"])
    if "probability" not in form:
        return FinitePunctuation(pattern=pattern, scope=scope)
    return ProbablePunctuation(pattern=pattern, scope=scope, probability=form["probability"], reading=form["reading"])
