"""``forestall.match``: patterns over a table of events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from forestall.calls import CallArguments, Follow, Matching, Pruning
from forestall.frames import is_spark
from forestall.match_result import MatchResult
from forestall.reading import ColumnNames
from forestall.row_columns import OUTPUTS
from forestall.rules import ConstraintsLike, ModelLike, PatternLike
from forestall.spark_matching import match_on_spark
from streams import KeyForm

FrameT = TypeVar("FrameT")


def match(
    events: FrameT,
    pattern: PatternLike | Iterable[PatternLike],
    *,
    key: KeyForm | None = None,
    time: str | None = None,
    type: str | None = None,
    id: str | Sequence[str] | None = None,
    zone: str | None = None,
    constraints: ConstraintsLike | None = None,
    workflow: ModelLike | None = None,
    follow: Follow = "auto",
    prune: Pruning | None = None,
    stream: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
    outputs: Collection[str] = OUTPUTS,
    is_open: bool = False,
) -> MatchResult[FrameT]:
    """Match patterns in a table of events. The results are those of ``forestall match`` on the same events.

    Args:
        events: A list of dictionaries, a DataFrame of pandas, polars or Spark, a table or dataset of Arrow, or a
        relation of DuckDB. There is a row for each event, in any order.
        pattern: A pattern or several: text, a ``Path``, or the JSON form as a dictionary.
        key: Column of the correlation key, or a column by event type (default: ``key``).
        time: Column of the time (default: ``time``).
        type: Column of the event type (default: ``type``).
        id: Column of the event id, or columns that form the id (default: ``id`` if it exists, else the row number).
        zone: Time zone of times that name no zone (default: UTC).
        constraints: A constraint document: text, a ``Path``, a dictionary, or a list of constraints.
        workflow: A model that the transactions follow: text or a ``Path`` (BPMN, PNML, or a process tree as YAML).
        follow: How the model is followed: by its automaton (``exact``), its constraints (``tables``), or ``auto``.
        prune: Pruning of partial matches that cannot complete (default: as in the constraints).
        stream: Further members of a stream's document, such as ``end_events``, ``ties``, ``lateness`` or ``keys``.
        tables: Reference tables by name, as frames or as paths of files. The first column is the key, unless the table
        is given with its key, as in ``(frame, "sensor")``.
        outputs: The lists of results that are kept. Results of all lists are counted.
        is_open: Whether transactions continue after the last event (default: they end with it).

    Raises:
        ForestallError: A pattern, the constraints, the model or the table is refused. The message says why.
    """
    names = ColumnNames(key=key, time=time, type=type, id=id, zone=zone)
    arguments = CallArguments(
        constraints=constraints, workflow=workflow, follow=follow, prune=prune, stream=stream, tables=tables
    )
    matching = Matching.of(pattern, names, arguments, outputs, is_open=is_open)
    if is_spark(events):
        return match_on_spark(events, matching)
    return matching.run(events)
