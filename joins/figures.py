"""The expected state of a join, and the figures that determine it: rates, lives of keys, and stays of events.

Each shard reports whole numbers, which are added up, and the sentences are made from the sums. Source: Little's law
over Eq. 6.1 (sections 4 and 7.2 of the specification of punctuation-aware joins).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from joins.combinations import COUNT, FIGURE, lone_inputs
from joins.costs import stay_case
from joins.costs.observing import StateObserver
from joins.document import JoinBody

_THOUSANDTHS = 1_000
_US_TO_MS = 1_000
_Sums: TypeAlias = Mapping[str, int]


def numbers_of(body: JoinBody, observer: StateObserver, stored: list[int]) -> dict[str, int]:
    """Return the measurements of a join in one shard: for each input, event rate, stored and expected events, lives.

    ``stored`` is the number of events that the shard stores, by input. The names begin with the alias of the input. All
    values are whole numbers, to be added over shards.
    """
    figures_of_shard: dict[str, int] = {}
    for number, join_input in enumerate(body.inputs):
        rate, stay_us = observer.rate(number), observer.stay_us(number)
        if rate is None or join_input.window.kind not in ("time", "none"):
            continue
        counts = {"rate": round(rate * _THOUSANDTHS), "stored": stored[number]}
        if stay_us is not None:
            counts["expected"] = round(rate * stay_us / 1e6 * _THOUSANDTHS)
        finite_records = [record for record in observer.records(number) if math.isfinite(record.lag)]
        counts["sampled"] = sum(record.events for record in finite_records)
        counts["life"] = round(sum(record.events * record.life_us for record in finite_records) / _US_TO_MS)
        counts["lag"] = round(sum(record.events * record.life_us * record.lag for record in finite_records) / _US_TO_MS)
        figures_of_shard |= {f"{join_input.alias}{FIGURE}{name}": value for name, value in counts.items()}
    return figures_of_shard


def figures(body: JoinBody, sums: _Sums) -> list[str]:
    """Return a sentence about the measurements of each input. ``sums`` are the sums of ``numbers_of`` over all shards.

    Inputs without enough observations are left out.
    """
    return [
        *(sentence for number in range(len(body.inputs)) for sentence in _of_input(body, number, sums)),
        *without_keys(body, sums),
    ]


def without_keys(body: JoinBody, sums: _Sums) -> list[str]:
    """Return a sentence for each input that had events without a usable key. ``sums`` are counts over all shards."""
    return [
        f"{join_input.alias}: events without a usable key: {sums[name]:,}. A key is a text that is not empty or a "
        f"whole number, at {join_input.key}; others join nothing{', and are reported alone' if is_lone else ''}."
        for join_input, is_lone in zip(body.inputs, lone_inputs(body).tolist(), strict=True)
        if sums.get(name := f"{join_input.alias}{FIGURE}{COUNT}")
    ]


def _of_input(body: JoinBody, number: int, sums: _Sums) -> Iterator[str]:
    join_input = body.inputs[number]
    rate, expected, stored, sampled, life_ms, lag_ms = (
        sums.get(f"{join_input.alias}{FIGURE}{name}")
        for name in ("rate", "expected", "stored", "sampled", "life", "lag")
    )
    if not rate or expected is None:
        return
    sentence = f"{join_input.alias}: {rate / _THOUSANDTHS:,.3g} events a second"
    stay_s = expected / rate
    window_s = join_input.window.size / 1e6 if join_input.window.kind == "time" else math.inf
    window = "no window" if math.isinf(window_s) else f"a window of {_seconds(window_s)}"
    if sampled and life_ms is not None and lag_ms is not None:
        life_s, lag_s = life_ms / sampled / 1e3, lag_ms / sampled / 1e3
        lag = lag_s / life_s if life_s else 0.0
        case = stay_case(life_s, lag, window_s)
        sentence += (
            f"; a key lives {_seconds(life_s)}, and nothing joins it any more {_seconds(lag_s)} after its first event "
            f"(lag {lag:.2f}, {window}: case {case} of Eq. 6.1)"
        )
    else:
        sentence += f" and {window}"
    held = f"{expected / _THOUSANDTHS:,.0f} are held on average; {stored:,} are in memory"
    yield f"{sentence}; so an event stays {_seconds(stay_s)}, and {held}."


def _seconds(seconds: float) -> str:
    return f"{seconds:,.3g} s"
