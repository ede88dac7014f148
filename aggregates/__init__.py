"""Aggregates: counts, sums and other values over windows of the events of a stream, by group.

Purpose: keep the values of each group current while events come, leave and are retracted, and report a group when a
condition over its values becomes true or false, or when its window ends. Promises: values are exact and depend on the
events of the window only; neither batch boundaries nor saving and loading change a result; what a group keeps is gone
when its window is empty.

The modules, in the order of their use: ``document`` reads the document (``windows``, ``values`` and ``having`` read
parts of it). ``rows`` has the events as an aggregate takes them in. ``accumulators`` has one value over events that
come and go, ``contents`` a window with its values, ``groups`` a group with its windows, its time and its past values.
``running`` is an aggregate that runs; ``steps`` decides which changes are emitted, and ``emitting`` makes their events.
``sliding`` runs one whose events are ``columns``: a sliding window with counts, sums, means and extremes, whose
condition reads the present values of its group. Its tables (``window_tables``) and ``known_groups`` belong to a kernel;
anything else, events that may be retracted, and values that the kernel cannot compute exactly are rows.
``table_groups`` finds the groups of an event that are rows of a table. ``explaining`` describes an aggregate in words.
``asking`` answers questions over the same rows.
"""

from aggregates.asking import (
    KEY,
    Answer,
    AskedValue,
    HeldWindow,
    Question,
    QuestionIndex,
    columns_of,
    held_window,
    merged,
    read_question,
)
from aggregates.columns import COUNTS, ENDS, EventColumns, ScalarColumn, group_hash
from aggregates.document import AggregateBody, read_aggregate
from aggregates.emitting import Emission, events_of
from aggregates.errors import AggregateRefused, AggregateStateError
from aggregates.exercises import AGGREGATE_EXERCISE
from aggregates.explaining import explain
from aggregates.kernels.tables import TEXT
from aggregates.row_windows import RowWindows
from aggregates.rows import EventRows, Row, Scalar, group_text
from aggregates.running import AggregateRun, Bound
from aggregates.steps import Holds
from aggregates.table_groups import TableGroups
from aggregates.values import AggregateValue
from aggregates.windows import Window

__all__ = [
    "AGGREGATE_EXERCISE",
    "COUNTS",
    "ENDS",
    "KEY",
    "TEXT",
    "AggregateBody",
    "AggregateRefused",
    "AggregateRun",
    "AggregateStateError",
    "AggregateValue",
    "Answer",
    "AskedValue",
    "Bound",
    "Emission",
    "EventColumns",
    "EventRows",
    "HeldWindow",
    "Holds",
    "Question",
    "QuestionIndex",
    "Row",
    "RowWindows",
    "Scalar",
    "ScalarColumn",
    "TableGroups",
    "Window",
    "columns_of",
    "events_of",
    "explain",
    "group_hash",
    "group_text",
    "held_window",
    "merged",
    "read_aggregate",
    "read_question",
]
