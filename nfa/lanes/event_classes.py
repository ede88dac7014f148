"""Translation of event classes and monitor states from the kernels' numbers to the guards' values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct, distinct_rows
from nfa.guards.protocol import EventClass, Guard, Symbol
from nfa.guards.tables import GuardTables, Interned
from nfa.kernels.traces import RESERVED
from nfa.lanes.layout import Layout
from nfa.traces.table import Visits


@dataclass(frozen=True, slots=True)
class SymbolsOfType:
    """The symbols of all guards for events of one type.

    ``names`` are sorted. ``rows`` has, for each symbol, the row of its condition in ``Layout.predicates``.
    """

    type: str
    code: int
    names: tuple[str, ...]
    rows: tuple[int, ...]


def symbols_of(guards: Iterable[Guard], layout: Layout) -> tuple[SymbolsOfType, ...]:
    """Return the symbols of guards, grouped by event type.

    The conditions of the symbols must be in ``layout.predicates``.
    """
    by_type: dict[str, dict[str, Symbol]] = {}
    for guard in guards:
        for symbol in guard.symbols:
            by_type.setdefault(symbol.type, {})[symbol.name] = symbol
    return tuple(
        SymbolsOfType(
            type=name,
            code=layout.codes[name],
            names=tuple(sorted(symbols)),
            rows=tuple(layout.predicates.row_of(symbols[symbol_name].step) for symbol_name in sorted(symbols)),
        )
        for name, symbols in sorted(by_type.items())
    )


def classes_of(
    types: NDArray[np.int32], passed: NDArray[np.bool_], symbols: Iterable[SymbolsOfType], guards: GuardTables
) -> NDArray[np.int32]:
    """Return the number of the event class of each row.

    If guards have symbols for the row's type, ``guards`` assigns the number. Otherwise it is the type code. ``passed``
    (conditions, rows) has the truth of the layout's conditions.
    """
    classes = types
    for group in symbols:
        rows = np.flatnonzero(types == group.code)
        if not len(rows):
            continue
        truths = passed[list(group.rows)][:, rows].T
        firsts, which = distinct_rows(truths)
        numbers = [
            guards.class_number(EventClass(type=group.type, symbols=frozenset(compress(group.names, truth))))
            for truth in truths[firsts].tolist()
        ]
        classes = types.copy() if classes is types else classes
        classes[rows] = np.array(numbers, np.int32)[which]
    return classes


def monitors_named(
    guards: GuardTables, visits: Visits, ended: NDArray[np.intp], broken: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[int, Interned]]:
    """Return the monitor states to report with early terminations and deviations, by number.

    ``ended`` are the indices of the visits with early terminations. ``broken`` are the indices of the visits at which a
    trace deviated. The first array has the numbers of the states before the visits of ``ended``, then before the visits
    of ``broken``. The second array has the numbers after the visits of ``ended``. The mapping has the state of each
    number. States of traces under bit tables get extra, negative numbers.
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
    for monitor in distinct(np.concatenate([before, after])).tolist():
        interned = guards.states[monitor] if monitor >= RESERVED else None
        if interned is not None:
            states[monitor] = interned
    return before, after[: len(ended)], states
