"""Bound events and marks of matches as columns of JSON text: the same in alerts and in the output of a local run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from nfa import DECIDED_BY
from streams import Texts, chosen_texts, flag_texts, json_text

# How a bound event follows the one before: first of its match, same alias, other alias.
BOUND_FIRST, BOUND_SAME, BOUND_OTHER = 0, 1, 2
BOUND_PLACES = 3


def bound_places(alias: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int8]:
    """How each bound event follows the one before.

    Args:
        alias: Of each bound event its alias.
        ends: Of each match the place behind its last event.
    """
    found = np.full(len(alias), BOUND_OTHER, np.int8)
    found[1:][alias[1:] == alias[:-1]] = BOUND_SAME
    found[:1] = BOUND_FIRST
    found[ends[:-1]] = BOUND_FIRST
    return found


def bound_openings(aliases: Iterable[str]) -> list[str]:
    """The JSON text in front of the id of a bound event, by ``BOUND_PLACES * alias + place``."""
    found: list[str] = []
    for name in map(json_text, aliases):
        found += [f'{name}:["', '","', f'"],{name}:["']
    return found


def match_marks(how: NDArray[np.int8], is_deviating: NDArray[np.bool_], is_lost: NDArray[np.bool_]) -> list[Texts]:
    """The members of a match that most matches do not have, each behind a comma: parts to be joined.

    Args:
        how: What decided each match, as a place in ``nfa.DECIDED_BY``.
        is_deviating: Whether its trace had broken a constraint.
        is_lost: Whether eviction would have lost it.
    """
    known = [DECIDED_BY[number] for number in range(len(DECIDED_BY))]
    words = ["" if word is None else f',"decided_by":"{word}"' for word in known]
    return [
        chosen_texts(words, how) if how.any() else "",
        flag_texts(is_deviating, ',"deviating":true'),
        flag_texts(is_lost, ',"would_be_lost":true'),
    ]
