"""The rules of section 4.3, one function each: whether the bound part of an attempt keeps them.

A rule about a gap is applied once something on both sides is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from nfa.syntax import Mode
from tests.references.patterns.attempts import Attempt
from tests.references.patterns.layout import Greedy, Negation, Occurrence, Until

Rule: TypeAlias = Callable[[Attempt], bool]


def keeps_order(attempt: Attempt) -> bool:
    """Rule 4.3.2: ``X < Y``; the branches of an AND with nothing before it may come in any order."""
    return all(
        attempt.trace.is_after_all(attempt.behind(edge.behind), attempt.bound[edge.into])
        for edge in attempt.layout.edges
        if edge.into in attempt.bound and not edge.behind.is_earliest
    )


def keeps_modes(attempt: Attempt) -> bool:
    """Rule 4.3.3: the mode allows all events that are skipped between X and a first occurrence."""
    return all(
        _allows_mode(
            attempt,
            edge.mode,
            attempt.layout.occurrences[edge.into],
            attempt.behind(edge.behind),
            attempt.bound[edge.into],
        )
        for edge in attempt.layout.edges
        if edge.into in attempt.bound
    )


def keeps_limits(attempt: Attempt) -> bool:
    """Rule 4.3.4: ``first(Y).t - last(X).t < d``."""
    edges = [(edge.behind, frozenset({edge.into}), edge.within_us) for edge in attempt.layout.edges]
    limits = [(limit.behind, limit.ahead, limit.within_us) for limit in attempt.layout.limits]
    return all(
        _first_us(attempt, ahead) - _last_us(attempt, attempt.behind(behind)) < within_us
        for behind, ahead, within_us in edges + limits
        if within_us is not None and attempt.places(ahead)
    )


def keeps_negations(attempt: Attempt) -> bool:
    """Rules 4.3.5 and 4.5: no NOT between neighbours, or before all bound events, takes an event; 4.6 is apart."""
    return all(
        not any(attempt.takes(one.atom, one.spot, place, is_step=False) for place in _negated_places(attempt, one))
        for one in attempt.layout.negations
        if one.ahead and attempt.places(one.ahead)
    )


def keeps_untils(attempt: Attempt) -> bool:
    """Rule 4.3.6: no event of the group G satisfies its UNTIL, and no event between two events of G does."""
    for until in attempt.layout.untils:
        group = attempt.places(until.group)
        within = [
            place
            for place in range(len(attempt.trace))
            if any(attempt.trace.is_before(one, place) for one in group)
            and any(attempt.trace.is_before(place, one) for one in group)
        ]
        if any(_is_until(attempt, until, place) for place in (*group, *within)):
            return False
    return True


def keeps_greed(attempt: Attempt) -> bool:
    """Rule 4.3.7: neither the next bound event nor an event before it could be one more iteration."""
    for greedy in attempt.layout.greedies:
        behind = attempt.behind(greedy.behind)
        if greedy.ahead and attempt.places(greedy.ahead):
            following = [place for place in attempt.bound.values() if attempt.trace.is_after_all(behind, place)]
            coming = [
                place for place in following if not any(attempt.trace.is_before(other, place) for other in following)
            ]
            passed = attempt.unbound(attempt.trace.between(behind, coming))
            if any(could_be_one_more(attempt, greedy, place) for place in (*passed, *coming)):
                return False
    return True


def keeps_spans(attempt: Attempt) -> bool:
    """Rule 4.3.8: ``last(P).t - first(P).t < d``."""
    return all(
        _last_us(attempt, places) - min(map(attempt.trace.time, places)) < span.within_us
        for span in attempt.layout.spans
        if (places := attempt.places(span.members))
    )


def keeps_window(attempt: Attempt) -> bool:
    """Rule 4.9: the window of WITHIN is still open, by the stream's time, when the match's last event comes."""
    end_us, places = attempt.window_end_us, sorted(attempt.bound.values())
    return end_us is None or len(places) < 2 or attempt.trace.clock(places[-1]) < end_us


def keeps_trailing(attempt: Attempt) -> bool:
    """Rule 4.6: no trailing NOT or GREEDY takes an event after all bound events and before its deadline."""
    for negation in attempt.layout.negations:
        if not negation.ahead:
            places = _before(attempt, deadline_us(attempt, negation))
            if negation.gap.mode == "strict":
                places = _directly_following(attempt, places)
            if any(attempt.takes(negation.atom, negation.spot, place, is_step=False) for place in places):
                return False
    return not any(
        could_be_one_more(attempt, greedy, place)
        for greedy in attempt.layout.greedies
        if not greedy.ahead
        for place in attempt.unbound(_before(attempt, deadline_us(attempt, greedy)))
    )


RULES: tuple[Rule, ...] = (
    keeps_order,
    keeps_spans,
    keeps_window,
    keeps_limits,
    keeps_modes,
    keeps_negations,
    keeps_untils,
    keeps_greed,
)
RULES_OF_PARTS = tuple(rule for rule in RULES if rule is not keeps_greed)  # 5.4 requires no greed of living ones


def deadline_us(attempt: Attempt, condition: Negation | Greedy) -> int | None:
    """The deadline D of section 4.6; None: the end of the trace."""
    found = []
    if attempt.window_end_us is not None:
        found.append(attempt.window_end_us)
    if isinstance(condition, Negation) and condition.gap.within_us is not None:
        found.append(attempt.end_us + condition.gap.within_us)
    return min(found, default=None)


def could_be_one_more(attempt: Attempt, greedy: Greedy, place: int) -> bool:
    """Whether an event could be a further iteration: step, mode, limit and UNTIL all allow it."""
    behind = attempt.behind(greedy.behind)
    occurrence = greedy.occurrence
    if not (
        attempt.trace.is_after_all(behind, place)
        and attempt.takes(occurrence.atom, occurrence.spot, place)
        and _allows_mode(attempt, greedy.mode, occurrence, behind, place)
    ):
        return False
    if greedy.within_us is not None and attempt.trace.time(place) - _last_us(attempt, behind) >= greedy.within_us:
        return False
    around = [until for until in attempt.layout.untils if until.is_around(occurrence.spot)]
    return not any(_forbids(attempt, until, place) for until in around)


def _forbids(attempt: Attempt, until: Until, place: int) -> bool:
    """Whether an UNTIL keeps an event from being a further element of its group."""
    return any(
        _is_until(attempt, until, other)
        for other in range(len(attempt.trace))
        if other == place
        or (
            attempt.trace.is_before(other, place)
            and any(attempt.trace.is_before(one, other) for one in attempt.places(until.group))
        )
    )


def _allows_mode(attempt: Attempt, mode: Mode, occurrence: Occurrence, behind: list[int], place: int) -> bool:
    if mode == "any":
        return True
    passed = attempt.unbound(attempt.trace.between(behind, [place]))
    return (
        not passed
        if mode == "strict"
        else not any(attempt.takes(occurrence.atom, occurrence.spot, other) for other in passed)
    )


def _negated_places(attempt: Attempt, negation: Negation) -> Iterable[int]:
    """The places of the events that a NOT between bound events concerns."""
    trace, ahead = attempt.trace, attempt.places(negation.ahead)
    if not negation.behind.members:
        end_us = attempt.horizon_us
        if end_us is None:
            end_us = max(map(trace.clock, attempt.bound.values()))
        within_us = attempt.pattern.within_us
        places = trace.between([], attempt.bound.values())
        return [place for place in places if within_us is None or end_us - trace.time(place) < within_us]
    behind = attempt.behind(negation.behind)
    is_strict = negation.gap.mode == "strict"
    places = _directly_behind(attempt, behind) if is_strict else trace.between(behind, ahead)
    last_us, within_us = _last_us(attempt, behind), negation.gap.within_us
    return [place for place in places if within_us is None or trace.time(place) - last_us < within_us]


def _directly_behind(attempt: Attempt, behind: list[int]) -> list[int]:
    """The places of the events directly after X."""
    return [place for place in attempt.trace.after(behind) if not attempt.trace.between(behind, [place])]


def _directly_following(attempt: Attempt, places: list[int]) -> list[int]:
    direct = _directly_behind(attempt, sorted(attempt.bound.values()))
    return [place for place in places if place in direct]


def _before(attempt: Attempt, deadline: int | None) -> list[int]:
    """The places of the events after all bound ones and before a deadline."""
    places = attempt.trace.after(attempt.bound.values())
    return [place for place in places if deadline is None or attempt.trace.clock(place) < deadline]


def _is_until(attempt: Attempt, until: Until, place: int) -> bool:
    return attempt.takes(until.atom, until.spot, place, is_step=False)


def _first_us(attempt: Attempt, numbers: Iterable[int]) -> int:
    return min(attempt.trace.time(place) for place in attempt.places(numbers))


def _last_us(attempt: Attempt, places: list[int]) -> int:
    return max(attempt.trace.time(place) for place in places)


def is_kept_by(rules: Iterable[Rule], attempt: Attempt) -> bool:
    """Whether an attempt keeps all given rules."""
    return all(rule(attempt) for rule in rules)
