"""Defines each rule as a machine: its places, its step for each event, and the places in which a trace may end.

A machine reads each event as a *letter*. Bit 0 is set if the event shows the rule's first name, bit 1 if it shows the
second. A template that is the conjunction of others runs all of them in parallel. Source of the templates: M. Pesic, H.
Schonenberg, W. M. P. van der Aalst, DECLARE: full support for loosely-structured processes (2007); read over finite
traces as in G. De Giacomo, R. De Masellis, M. Montali, Reasoning on LTL on finite traces (2014).
``tests/references/rules.py`` has the same meanings as formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

FIRST, SECOND = 1, 2
BROKEN = -1

Step: TypeAlias = Callable[[int, int], int]  # maps a place and a letter to the next place


@dataclass(frozen=True, slots=True)
class Machine:
    """A template as a state machine whose places are whole numbers. No step leaves the place ``BROKEN``.

    ``step`` returns the next place after a letter. It is never called at ``BROKEN``. ``stops`` decides whether a trace
    that ends in a place satisfies the rule.
    """

    start: int
    step: Step
    stops: Callable[[int], bool]


def _response(_is_awaited: int, letter: int) -> int:
    if letter & SECOND:
        return 0
    return 1 if letter & FIRST else _is_awaited


def _precedence(is_open: int, letter: int) -> int:
    if is_open or letter & FIRST:
        return 1
    return BROKEN if letter & SECOND else 0


def _alternate_response(is_awaited: int, letter: int) -> int:
    if is_awaited and not letter & SECOND:
        return BROKEN if letter & FIRST else 1
    return letter & FIRST


def _alternate_precedence(is_open: int, letter: int) -> int:
    if not is_open and not letter & FIRST:
        return BROKEN if letter & SECOND else 0
    return 0 if letter & SECOND else 1


def _chain_response(is_awaited: int, letter: int) -> int:
    return BROKEN if is_awaited and not letter & SECOND else letter & FIRST


def _chain_precedence(is_open: int, letter: int) -> int:
    return BROKEN if letter & SECOND and not is_open else letter & FIRST


def _not_chain_succession(is_forbidden: int, letter: int) -> int:
    return BROKEN if letter & SECOND and is_forbidden else letter & FIRST


def _met(place: int, letter: int) -> int:
    return place | letter


def _is_nothing_awaited(place: int) -> bool:
    return place == 0


def _is_kept(place: int) -> bool:
    return place != BROKEN


_MACHINES: Mapping[str, Machine] = {
    "init": Machine(2, lambda place, letter: place if place < 2 else letter & FIRST, lambda place: place == 1),
    "last": Machine(0, lambda _, letter: letter & FIRST, lambda place: place == 1),
    "response": Machine(0, _response, _is_nothing_awaited),
    "precedence": Machine(0, _precedence, _is_kept),
    "alternate response": Machine(0, _alternate_response, _is_nothing_awaited),
    "alternate precedence": Machine(0, _alternate_precedence, _is_kept),
    "chain response": Machine(0, _chain_response, _is_nothing_awaited),
    "chain precedence": Machine(0, _chain_precedence, _is_kept),
    "not chain succession": Machine(0, _not_chain_succession, _is_kept),
    "choice": Machine(0, _met, lambda state: state > 0),
    "exclusive choice": Machine(0, _met, lambda state: state in (FIRST, SECOND)),
}
_CONJUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "succession": ("response", "precedence"),
    "alternate succession": ("alternate response", "alternate precedence"),
    "chain succession": ("chain response", "chain precedence"),
}
_COUNTS: Mapping[str, Callable[[int, int], bool]] = {
    "existence": lambda state, count: state >= count,
    "absence": lambda state, count: state < count,
    "exactly": lambda state, count: state == count,
}

RULE_KINDS = frozenset([*_MACHINES, *_CONJUNCTIONS, *_COUNTS])


def machines_of(kind: str, count: int | None) -> tuple[Machine, ...]:
    """Return state machines for a template of ``RULE_KINDS``. A trace satisfies the template if all machines accept it.

    ``count`` is the template's number, if it has one.
    """
    if kind not in RULE_KINDS or (kind in _COUNTS) != (count is not None):
        raise ValueError(f"{kind!r} with the number {count} is not a rule")
    if count is None:
        return tuple(_MACHINES[part] for part in _CONJUNCTIONS.get(kind, (kind,)))
    is_enough, most = _COUNTS[kind], count + 1
    return (
        Machine(
            0, lambda place, letter: min(place + (letter & FIRST), most), lambda place: bool(is_enough(place, most - 1))
        ),
    )
