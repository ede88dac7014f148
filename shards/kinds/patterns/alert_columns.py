"""Alerts and early terminations by columns: ids and bodies of all results of a batch at once.

The bytes equal those of the module ``results``, which renders one match at a time and defines the meaning. One array
has the bound events of all matches, and the text of a match is a slice of this array, with a separator before each
event. This works for matches of every shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa import DECIDED_BY, EndingColumns, LaneOutput, MatchColumns, RunningPattern, atoms_of, describe_atom
from shards.kinds.patterns.result_kinds import ALERT, ENDING
from shards.rows import ResultRows, row_ids
from streams import (
    EARLIEST_US,
    LATEST_US,
    Texts,
    chosen_texts,
    column_of,
    flag_texts,
    joined_texts,
    json_contents,
    json_text,
    run_texts,
    texts_of,
    time_texts,
)

_EVENTS_AT_ONCE = 32_768  # bound events; columns of this size stay in processor caches


def alerts_of(lane: LaneOutput, stream: str, route: str = "") -> Iterator[ResultRows]:
    """Yield the alerts of the matches of one per-key matcher, in the order of the matches.

    ``route``: name of the further key, if any.
    """
    returned = texts_of([_json(values) for values in lane.values_of_returns()])
    done = 0
    for part in lane.columns_of_matches().parts(_EVENTS_AT_ONCE):
        returns = returned[done : done + len(part)] if len(returned) else "{}"
        yield _alerts(part, stream, returns, _end(route))
        done += len(part)


def endings_of(
    columns: EndingColumns, reasons: Sequence[Mapping[str, Any]], stream: str, route: str = ""
) -> ResultRows:
    """Return early terminations as rows.

    ``reasons``: for each kind of early termination, the members that explain it, as plain JSON. ``route``: name of the
    further key, if any.
    """
    names = [f"{json_text(ending.pattern)},{ending.version}" for ending in columns.kinds]
    key, event = json_contents(columns.key), json_contents(columns.event_id)
    prefixes = chosen_texts([f'["ending",{json_text(stream)},{name},"' for name in names], columns.kind)
    ids = row_ids(joined_texts([prefixes, key, '","', event, '"', *_comma_rows(columns.rows), "]"]))
    heads = [_head(stream, ending.pattern, ending.version) for ending in columns.kinds]
    types = [f'","event_type":{json_text(ending.event_type)},"time":"' for ending in columns.kinds]
    members = [f'",{_json(reason)[1:-1]}{_end(route)}' for reason in reasons]
    parts: list[Texts] = ['{"id":"', ids, chosen_texts(heads, columns.kind), key, '",', *match_rows(columns.rows)]
    parts += ['"event":"', event]
    parts += [chosen_texts(types, columns.kind), time_texts(columns.time_us), chosen_texts(members, columns.kind)]
    about = [
        {"stream": stream, "pattern": kind.pattern, **why} for kind, why in zip(columns.kinds, reasons, strict=True)
    ]
    return ResultRows.about(ENDING, ids, joined_texts(parts), about, columns.kind)


def _alerts(columns: MatchColumns, stream: str, returns: Texts, end: str) -> ResultRows:
    pattern_numbers, place = np.unique(columns.pattern, return_inverse=True)
    patterns = [columns.patterns[number] for number in pattern_numbers.tolist()]
    key, bound = json_contents(columns.key), BoundTexts.of(columns, patterns, place)
    ids = _ids(bound, stream, columns, patterns, place)
    heads = [_head(stream, pattern.name, pattern.version) for pattern in patterns]
    parts: list[Texts] = [
        '{"type":"alert","id":"',
        ids,
        chosen_texts(heads, place),
        key,
        '",',
        *match_rows(columns.rows),
    ]
    parts += match_times(columns)
    parts += [',"bindings":{', bound.bindings, '"]},"returns":', returns, ',"why":"', *_why(bound, patterns), '"']
    parts += [*match_marks(columns.how, columns.is_deviating, columns.is_lost), end]
    about = [{"stream": stream, "pattern": pattern.name} for pattern in patterns]
    return ResultRows.about(ALERT, ids, joined_texts(parts), about, place)


def match_ids(columns: MatchColumns, stream: str) -> pa.Array:
    """Return the id of each match, which is also the id of its alert."""
    pattern_numbers, place = np.unique(columns.pattern, return_inverse=True)
    patterns = [columns.patterns[number] for number in pattern_numbers.tolist()]
    return _ids(BoundTexts.of(columns, patterns, place), stream, columns, patterns, place)


def _ids(
    bound: BoundTexts,
    stream: str,
    columns: MatchColumns,
    patterns: Sequence[RunningPattern],
    place: NDArray[np.intp],
) -> pa.Array:
    """Return the id of each match, as a hash of its pattern, key, bindings (sorted by alias) and row of FOR EACH ROW.

    ``place`` has the index of each match's pattern in ``patterns``.
    """
    key, rows = json_contents(columns.key), _comma_rows(columns.rows)
    names = [f'["alert",{json_text(stream)},{json_text(pattern.name)},{pattern.version},"' for pattern in patterns]
    return row_ids(joined_texts([chosen_texts(names, place), key, '",{', bound.by_name().bindings, '"]}', *rows, "]"]))


def _comma_rows(rows: pa.Array | None) -> Sequence[Texts]:
    """Return the parts of a text with a comma and the row of FOR EACH ROW, for each match. Without rows, no parts."""
    return () if rows is None else (",", rows)


def _why(bound: BoundTexts, patterns: Sequence[RunningPattern]) -> tuple[pa.Array, Texts]:
    """Return the explanation of each match: its bound events and the steps that they satisfy, in words.

    The JSON text is in two parts. The first ends with the last event id.
    """
    steps = [step for pattern in patterns for step in _steps(pattern)]
    phrases = [f" {verb} {step}" for step in steps for verb in ("are", "is")]
    alone = 2 * bound.alias + (bound.separators != BOUND_SAME)  # whether the last event of an alias is its only one
    number = np.where(bound.separators == BOUND_OTHER, np.roll(alone, 1) + 2, bound.separators)
    before = chosen_texts(["", ", ", *(f"{words}; " for words in phrases)], number)
    return run_texts(joined_texts([before, bound.ids]), bound.ends), chosen_texts(phrases, alone[bound.ends - 1])


def _steps(pattern: RunningPattern) -> list[str]:
    steps = steps_of(pattern)
    return [json_text(steps[alias])[1:-1] for alias in pattern.automaton.aliases]


def steps_of(pattern: RunningPattern) -> dict[str, str]:
    """Return the steps of a pattern in words, by alias. Alternatives with the same alias are joined by "or"."""
    steps: dict[str, dict[str, None]] = {}
    for atom in atoms_of(pattern.query.pattern.event):
        steps.setdefault(atom.alias, {})[describe_atom(atom)] = None
    return {alias: " or ".join(alternatives) for alias, alternatives in steps.items()}


def _head(stream: str, pattern: str, version: int) -> str:
    return f'","stream":{json_text(stream)},"pattern":{json_text(pattern)},"version":{version},"key":"'


def _end(route: str) -> str:
    return f',"route":{json_text(route)}}}' if route else "}"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


# How a bound event follows the previous one: first of its match, same alias, other alias.
BOUND_FIRST, BOUND_SAME, BOUND_OTHER = 0, 1, 2
_SEPARATORS = 3


@dataclass(frozen=True, kw_only=True)
class BoundTexts:
    """The bound events of matches, sorted by match and alias.

    Attributes:
        ranks: Rank of each alias in the ascending order of the distinct names.
    """

    aliases: Sequence[str]
    ranks: NDArray[np.int64]
    alias: NDArray[np.int64]
    names: pa.Array
    event: NDArray[np.intp]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, columns: MatchColumns, patterns: Sequence[RunningPattern], place: NDArray[np.integer]) -> BoundTexts:
        """Return the bound events of matches.

        ``place``: for each match, the index of its pattern in ``patterns``.
        """
        alias_names = [pattern.automaton.aliases for pattern in patterns]
        aliases = [alias for names in alias_names for alias in names]
        alias = columns.aliases.astype(np.int64)
        if len(patterns) > 1:
            firsts = np.cumsum([0, *map(len, alias_names)])
            alias += np.repeat(firsts[place], np.diff(columns.ends, prepend=0))
        return cls(
            aliases=aliases,
            ranks=np.unique(np.array(aliases, object), return_inverse=True)[1],
            alias=alias,
            names=columns.names,
            event=columns.events,
            ends=columns.ends,
        )

    @cached_property
    def separators(self) -> NDArray[np.int8]:
        """How each event follows the event before it, as a number for separators.

        ``BOUND_FIRST``: it is the first of its match. ``BOUND_SAME``: it has the same alias. ``BOUND_OTHER``: another
        alias.
        """
        places = np.full(len(self.alias), BOUND_OTHER, np.int8)
        places[1:][self.alias[1:] == self.alias[:-1]] = BOUND_SAME
        places[:1] = BOUND_FIRST
        places[self.ends[:-1]] = BOUND_FIRST
        return places

    @cached_property
    def ids(self) -> pa.Array:
        """The id of each event as JSON text."""
        return json_contents(self.names.take(column_of(self.event)))

    def by_name(self) -> BoundTexts:
        """Return a copy with the events of each match in the order of alias names."""
        ranks = self.ranks[self.alias]
        if not np.any((ranks[1:] < ranks[:-1]) & (self.separators[1:] != BOUND_FIRST)):
            return self
        order = np.lexsort((ranks, np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))))
        return replace(self, alias=self.alias[order], event=self.event[order])

    @cached_property
    def bindings(self) -> pa.Array:
        """The bindings of each match as JSON text: an object without its braces, and without ``"]`` at its end."""
        openings: list[str] = []
        for name in map(json_text, self.aliases):
            openings += [f'{name}:["', '","', f'"],{name}:["']
        before = chosen_texts(openings, _SEPARATORS * self.alias + self.separators)
        return run_texts(joined_texts([before, self.ids]), self.ends)


def match_times(columns: MatchColumns) -> list[Texts]:
    """Return begin, end and detection time of each match as JSON members, in parts to be joined.

    A detection time after the year 9999 is written as the last moment of that year.
    """
    starts, ends = time_texts(columns.start_us), time_texts(columns.end_us)
    is_at_end = np.array_equal(columns.detected_us, columns.end_us)
    detected = ends if is_at_end else time_texts(np.clip(columns.detected_us, EARLIEST_US, LATEST_US))
    return ['"start":"', starts, '","end":"', ends, '","detected_at":"', detected, '"']


def match_rows(rows: pa.Array | None) -> list[Texts]:
    """Return the JSON member ``row`` and a comma for each result of FOR EACH ROW. Without rows there are no parts."""
    if rows is None:
        return []
    has_row = np.asarray(pc.not_equal(rows, "")).astype(np.int64)
    return [chosen_texts(["", '"row":'], has_row), rows, chosen_texts(["", ","], has_row)]


def match_marks(how: NDArray[np.int8], is_deviating: NDArray[np.bool_], is_lost: NDArray[np.bool_]) -> list[Texts]:
    """Return JSON members about exceptional matches, each after a comma, as parts to be joined. Most matches have none.

    Args:
        how: How each match was decided, as an index into ``nfa.DECIDED_BY``.
        is_deviating: Whether the trace had broken a constraint before the match.
        is_lost: Whether pruning would have lost the match.
    """
    decisions = [DECIDED_BY[number] for number in range(len(DECIDED_BY))]
    words = ["" if word is None else f',"decided_by":"{word}"' for word in decisions]
    return [
        chosen_texts(words, how) if how.any() else "",
        flag_texts(is_deviating, ',"deviating":true'),
        flag_texts(is_lost, ',"would_be_lost":true'),
    ]
