"""The tables of all kinds of operators and all kinds of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shards.errors import OperatorRefused
from shards.kinds.aggregates import AggregateInputKind, AggregateKind
from shards.kinds.joins import JoinInputKind, JoinKind
from shards.kinds.patterns import PatternKind, SuppressionKind
from shards.kinds.taps import TapKind
from shards.operators import LATENESS, DeciderKind, DocumentKind, Kind
from shards.results import ANSWER, DEAD_LETTER, DERIVED, REKEYED, STATS, ResultKind
from streams import Definition, LatenessDecider
from streams.compiling import LOOKUPS

KINDS: tuple[Kind, ...] = (
    PatternKind(),
    SuppressionKind(),
    JoinInputKind(),
    JoinKind(),
    AggregateInputKind(),
    AggregateKind(),
    TapKind(),
)

DOCUMENT_KINDS: tuple[DocumentKind, ...] = tuple(kind for kind in KINDS if isinstance(kind, DocumentKind))

EXERCISES: tuple[str, ...] = (*(kind.exercise for kind in KINDS if kind.exercise), LOOKUPS)
"""The exercises that compile every kernel that a shard may call (``streams.compiling``)."""

KINDS_BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}

_OF_STREAMS = DeciderKind(name=LATENESS, load=LatenessDecider.from_json)

DECIDERS: Mapping[str, DeciderKind] = {
    decider.name: decider
    for decider in (_OF_STREAMS, *(kind.decider for kind in DOCUMENT_KINDS))
    if decider is not None
}
"""The kinds of deciders, by name."""

COUNTED: tuple[str, ...] = tuple(f"{kind.name}_" for kind in KINDS if kind.is_counted)
"""Prefixes of counters that are exported as metrics; counters of patterns have no prefix."""


def require_final(definition: Definition, feeders: Iterable[tuple[str, str, str]]) -> None:
    """Refuse an operator that needs final events, if another operator feeds its stream and may retract events.

    ``feeders`` lists the operators that feed streams. Each has its kind, its name and the stream that it feeds.
    """
    kind = KINDS_BY_NAME.get(definition.kind)
    stream, member = kind.final_input(definition) if isinstance(kind, DocumentKind) else ("", "")
    final_kinds = {kind.name: kind.plural for kind in DOCUMENT_KINDS if kind.is_final}
    for feeder_kind, name, into in feeders:
        if member and into == stream and feeder_kind not in final_kinds:
            raise OperatorRefused(
                f"{member!r} of the {definition.kind} {definition.name!r} needs events that are never retracted, and "
                f"the {feeder_kind} {name!r}, which feeds {stream!r}, may retract events; use a stream of posted "
                f"events, or of {' or '.join(sorted(final_kinds.values()))}",
                field=member,
            )


def result_table(kinds: Iterable[Kind]) -> Mapping[str, ResultKind]:
    """Return the kinds of results by name: the platform's own, and those of the given kinds of operators."""
    of_operators = (result for kind in kinds for result in kind.result_kinds)
    return {result.name: result for result in (*of_operators, DERIVED, REKEYED, DEAD_LETTER, STATS, ANSWER)}


RESULT_KINDS: Mapping[str, ResultKind] = result_table(KINDS)
USUAL_KINDS = tuple(kind.delivered_as for kind in RESULT_KINDS.values() if kind.is_usual)
"""The kinds of results that a webhook receives if it does not choose any."""
