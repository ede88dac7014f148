"""Warns about nets that can complete but are not sound, because paths get stuck or events never occur.

The checks follow W. M. P. van der Aalst, Workflow verification: finding control-flow errors using Petri-net-based
techniques, 2000.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from workflows.errors import UnsoundWorkflow
from workflows.nets.components import components
from workflows.nets.markings import Markings
from workflows.nets.net import Transition, WorkflowNet

_MOST_NAMED = 5
_MOST_EVENTS = 12
_MOST_STUCK = 3


def check(markings: Markings) -> tuple[str, ...]:
    """Return warnings that name the faulty elements of a net, given its markings. A sound net gets none.

    Raises ``UnsoundWorkflow`` for a net without complete traces.
    """
    check_completion(markings)
    return (*_dead(markings), *_stuck(markings))


def check_completion(markings: Markings) -> None:
    """Raise ``UnsoundWorkflow`` for a net without complete traces.

    The message names the places where traces get stuck.
    """
    if not markings.completes[0]:
        where = "; ".join(_stuck(markings)) or "no step can be taken at all"
        raise UnsoundWorkflow(f"no trace of the model completes: {where}")


def _dead(markings: Markings) -> list[str]:
    transitions = markings.net.transitions
    lives = np.zeros(len(transitions), np.bool_)
    lives[markings.transitions[markings.completes[markings.targets]]] = True
    fires = np.zeros(len(transitions), np.bool_)
    fires[markings.transitions] = True
    dead = [
        (transition, bool(fires[number]))
        for number, transition in enumerate(transitions)
        if transition.label is not None and not lives[number]
    ]
    others = {each.label for number, each in enumerate(transitions) if lives[number]}
    return [
        f"dead task: {_name(transition)} "
        + ("occurs in no complete trace" if is_fired else "can never occur")
        + ("" if transition.label in others else f", so no trace has the event {transition.label}")
        for transition, is_fired in dead
    ]


def _stuck(markings: Markings) -> list[str]:
    """Return warnings about markings from which no end can be reached: one for each dead end, the nearest first.

    If there is no dead end, one warning is for endless steps.
    """
    is_lost = ~markings.completes
    if not is_lost.any():
        return []
    has_steps = np.diff(markings.offsets) > 0
    dead_ends = np.flatnonzero(is_lost & ~has_steps)
    if not len(dead_ends):
        return [_livelock(markings, is_lost)]
    warnings: dict[str, str] = {}
    for marking in dead_ends[:1000].tolist():
        where = _dead_end(markings, marking)
        warnings.setdefault(where, f"{where} ({_after(markings, marking)})")
        if len(warnings) == _MOST_STUCK:
            break
    return list(warnings.values())


def _livelock(markings: Markings, is_lost: NDArray[np.bool_]) -> str:
    component = np.array(components(markings.offsets.tolist(), markings.targets.tolist()), np.int64)
    leaves = component[markings.sources] != component[markings.targets]
    is_left = np.zeros(int(component.max()) + 1, np.bool_)
    is_left[component[markings.sources[leaves]]] = True
    first = int(np.flatnonzero(is_lost & ~is_left[component])[0])
    around = component[markings.sources] == component[first]
    steps = np.unique(markings.transitions[around]).tolist()
    names = [markings.net.transitions[step].element for step in steps]
    circling = list(dict.fromkeys(name for name in names if name))
    through = f" through {_listed(circling)}" if circling else ""
    places = _places(markings, first)
    where = f"tokens in {_listed(places)}" if places else "no token is left"
    return f"no end can be reached any more: steps continue for ever{through}, {where} ({_after(markings, first)})"


def _dead_end(markings: Markings, marking: int) -> str:
    tokens = markings.tokens(marking)
    net = markings.net
    held = _places(markings, marking)
    for final in net.finals:
        if final and all(tokens.get(place, 0) >= final.count(place) for place in final):
            left = [net.places[place] for place, count in tokens.items() if count > final.count(place)]
            return f"the end is reached while tokens are left in {_listed(left)}, so the trace is never complete"
    if not tokens:
        return "all tokens are gone before an end is reached"
    waiting = [_missing(each, tokens, net) for each in net.transitions if not set(tokens).isdisjoint(each.inputs)]
    if not waiting:
        return f"deadlock: nothing takes the tokens in {_listed(held)}"
    return f"deadlock: tokens in {_listed(held)}, where {_listed(list(dict.fromkeys(waiting)), 'and', '; ')}"


def _missing(transition: Transition, tokens: dict[int, int], net: WorkflowNet) -> str:
    inputs = Counter(transition.inputs)
    lacks = [net.places[place] for place, count in sorted(inputs.items()) if tokens.get(place, 0) < count]
    blocked = [net.places[place] for place in sorted(set(transition.waits)) if tokens.get(place, 0)]
    reasons = []
    if lacks:
        reasons.append(f"a token in {_listed(lacks)}")
    if blocked:
        reasons.append(f"{_listed(blocked)} to be empty")
    return f"{_name(transition)} waits for {' and for '.join(reasons)}"


def _after(markings: Markings, marking: int) -> str:
    transitions = markings.net.transitions
    events = [label for number in markings.way_to(marking) if (label := transitions[number].label) is not None]
    if not events:
        return "at the very beginning"
    listed_events = events if len(events) <= _MOST_EVENTS else ["...", *events[-_MOST_EVENTS:]]
    return f"after {', '.join(listed_events)}"


def _places(markings: Markings, marking: int) -> list[str]:
    return [markings.net.places[place] for place in markings.tokens(marking)]


def _name(transition: Transition) -> str:
    return transition.element or (f"task {transition.label!r}" if transition.label else "a silent step")


def _listed(names: list[str], word: str = "and", comma: str = ", ") -> str:
    listed_names = names if len(names) <= _MOST_NAMED else [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED} more"]
    if len(listed_names) == 1:
        return listed_names[0]
    return f"{comma.join(listed_names[:-1])} {word} {listed_names[-1]}"
