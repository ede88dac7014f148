"""Explanations of a join in sentences: its algorithm, its memory and its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from joins.document import JoinBody, JoinInput
from joins.windowed import Window
from streams import duration_text

_PAIR = 2
_CLOSINGS = {
    "unique": "with its first event",
    "clustered": "when an event of another key comes",
    "end": "when its trace ends",
    "punctuation": "when its trace ends",
    "workflow": "when the workflow leaves no more of its events in the trace, or the trace ends",
}


def explain(body: JoinBody) -> list[str]:
    """Describe a join in sentences: its algorithm and why, how long events are kept, and when events are emitted."""
    return [
        _algorithm(body),
        *_memory(body),
        *(_retention(body, number) for number in range(len(body.inputs))),
        *_emitted(body),
        *_limits(body),
        *warnings(body),
    ]


def warnings(body: JoinBody) -> list[str]:
    """Return a warning if several inputs may have any number of events of a key. Their product is not bounded then.

    The join may then exceed its limits of results and be suspended. The list is empty without a warning.
    """
    if (body.emit == "on_close" and body.where is None) or not (inputs := body.multiplying):
        return []
    power = "²" if len(inputs) == _PAIR else f" to the power of {len(inputs)}"
    outcomes = "results" if body.where is None else "combinations to ask 'where' about"
    example = "0" if body.waits else "'unknown'"  # with wait: auto, events with other keys are dead letters
    text = (
        f"Nothing bounds how many events of one key {_listed(inputs)} have at a time, so n events of each make up to "
        f"n{power} {outcomes}. A key that many events share, such as {example}, suspends the join by its limits "
        "('results'). closed_by: unique, {last: N} or a shorter window bounds them."
    )
    return [text]


def _algorithm(body: JoinBody) -> str:
    if body.waits:
        return (
            "WO-Join: keys rise roughly, and how far out of order they are is measured; an event is dropped when the "
            "keys of all other inputs have come so far that none of them can join it, or it has left its window."
        )
    has_windows = any(join_input.window.kind != "none" for join_input in body.inputs)
    closes = any(join_input.closes for join_input in body.inputs)
    prefix = "M" if len(body.inputs) > 2 else ""
    if has_windows and closes:
        return (
            f"{prefix}PWJoin: an event is dropped when it leaves its window, or earlier, "
            "when no other input can join it."
        )
    if closes:
        return f"{prefix}PJoin: there are no windows, so an event is dropped when no other input can join it."
    if has_windows:
        return f"{prefix}WJoin: no input finishes its keys, so an event is dropped when it leaves its window."
    return f"{prefix}Join: there are no windows, and no input finishes its keys, so no event is dropped."


def _memory(body: JoinBody) -> Iterator[str]:
    if body.most_rows is not None:
        yield (
            f"At most {body.most_rows:,} events of a shard are held. The join is suspended if more are held, or if "
            "more are expected once all inputs are measured."
        )
    if body.memory_rows is not None:
        yield (
            f"At most {body.memory_rows:,} events of a shard are in memory. If there are more, the events of the least "
            "recently used keys are moved to disk, and come back with the next event of their key."
        )


def _retention(body: JoinBody, number: int) -> str:
    join_input = body.inputs[number]
    others = [other for place, other in enumerate(body.inputs) if place != number]
    ends = [_window(join_input.window)] if join_input.window.kind != "none" else []
    if all(other.closes for other in others):
        ends.append(f"{_listed([other.alias for other in others])} {_has(others)} finished their key")
    elif spans := [
        other for other in others if other.closes and other.window.kind == "time" and other.alias not in body.outer
    ]:
        ends.append(f"{spans[0].alias} has finished their key and its events have left their window")
    until = f"until {' or until '.join(ends)}" if ends else "for ever"
    ways = sorted({_CLOSINGS[closing] for closing in join_input.closings})
    ways += ["when its keys have come so far that it is not expected any more"] if join_input.waits else []
    ways += [f"with an event of type {name}" for name in sorted(join_input.closing_types)]
    key_end = f"a key of it is finished {', or '.join(ways)}" if ways else "it finishes no key"
    return f"{join_input.alias}: events are kept {until}; {key_end}."


def _emitted(body: JoinBody) -> Iterator[str]:
    if body.where is not None:
        yield (
            f"A combination exists only where {body.where}; combinations of a key in which this does not hold are "
            "counted as contradicting."
        )
    if body.emit == "each":
        yield "Each combination is emitted at its last event, once the time of all inputs has passed it."
    else:
        yield "One event is emitted for each key, once no more combinations of it can come."
    if body.optional:
        yield (
            f"A combination that lacks any of {', '.join(body.outer)}, and is part of no larger one, is emitted once "
            "no missing input can join it any more."
        )
        return
    for alias in body.outer:
        yield f"An event without {alias} is emitted once no {alias} can join it any more."


def _limits(body: JoinBody) -> Iterator[str]:
    if body.where is not None:
        yield f"Ten combinations that 'where' {'decides' if body.emit == 'on_close' else 'drops'} count as one result."
    elif body.emit == "on_close":
        yield "Totals need no combinations: memory grows with the number of events (not where they may be retracted)."
    if body.emit == "on_close" and body.where is None:
        return
    yield (
        f"One event of a key leads to at most {body.results.per_event:,} results at once. With {body.results.ahead:,} "
        f"more than {body.results.average:,} for each event, in one shard, the join is suspended."
    )


def _window(window: Window) -> str:
    if window.kind == "time":
        return f"they are {duration_text(window.size)} old"
    return f"{window.size} newer ones of their key have come"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _has(inputs: Sequence[JoinInput]) -> str:
    return "has" if len(inputs) == 1 else "have"
