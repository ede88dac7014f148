"""Translation between kernel numbers and guard values: classes of events, states of monitors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.guards.protocol import EventClass, Symbol
from nfa.guards.tables import GuardTables, Interned
from nfa.kernels.traces import RESERVED
from nfa.lanes.layout import Layout
from nfa.traces.table import Visits


def classes_of(
    types: NDArray[np.int32], passed: NDArray[np.bool_], layout: Layout, guards: GuardTables
) -> NDArray[np.int32]:
    """Class number of each row: the type code, or a number of its own if the event satisfies a guard's symbols.

    ``passed``, (conditions, rows), is the truth of the conditions in ``layout.predicates``; ``guards`` assigns the
    numbers.
    """
    by_type: dict[str, dict[str, Symbol]] = {}
    for guard in guards.guards.values():
        for symbol in guard.symbols:
            by_type.setdefault(symbol.type, {})[symbol.name] = symbol
    if not by_type:
        return types
    classes, codes = types.copy(), layout.codes
    for name, symbols in sorted(by_type.items()):
        rows = np.flatnonzero(types == codes[name])
        if not len(rows):
            continue
        names = sorted(symbols)
        truths = np.stack([passed[layout.predicates.row_of(symbols[one].step), rows] for one in names])
        combinations, which = np.unique(truths, axis=1, return_inverse=True)
        numbers = [
            guards.class_number(EventClass(type=name, symbols=frozenset(np.array(names)[truth].tolist())))
            for truth in combinations.T
        ]
        classes[rows] = np.array(numbers, np.int32)[which.reshape(-1)]
    return classes


def monitors_named(
    guards: GuardTables, visits: Visits, ended: NDArray[np.intp], broken: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[int, Interned]]:
    """The monitor states in reports; traces under bit tables get extra numbers.

    ``ended`` are indices of visits that ended something, ``broken`` of visits by which a trace deviated. Returns
    numbers before the events of ``ended`` and then of ``broken``, numbers after those of ``ended``, and the state of
    each number.
    """
    places = np.concatenate([ended, broken])
    before, after = visits.before[places].astype(np.int64), visits.after[places].astype(np.int64)
    states: dict[int, Interned] = {}
    noted = guards.bits.noted(visits.before)
    for number in np.flatnonzero(np.isin(places, list(noted))).tolist() if noted else []:
        place = int(places[number])
        version, state = noted[place]
        before[number], after[number] = -2 * place - 2, -2 * place - 3
        states[-2 * place - 2] = version, state
        event = guards.event_class(int(visits.columns_of(places[number : number + 1])[0]))
        states[-2 * place - 3] = version, guards.bits.after(version, state, event)
    for monitor in np.unique(np.concatenate([before, after])).tolist():
        known = guards.states[monitor] if monitor >= RESERVED else None
        if known is not None:
            states[monitor] = known
    return before, after[: len(ended)], states
