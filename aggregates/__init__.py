"""Aggregates: counts, sums and other values over windows of the events of a stream, by group.

Purpose: update the values of each group as events enter, leave or are retracted. Report a group when a condition over
its values becomes true or false, or when its window ends. Promises: values depend on the events of the window only, and
are exact, except for many distinct values or quantiles in windows that end as a whole. Neither batch boundaries nor
saving and loading change a result. No state is kept for a group without events.

The modules, in the order of their use: ``document`` reads the document, with ``windows``, ``values`` and ``having`` for
its parts. ``running`` runs an aggregate. Events are ``columns`` of ``scalars``, and ``placing`` sorts them into the
order in which their groups process them. ``kernels`` add events to windows, remove events and compute values, over the
tables of ``window_tables``, the groups of ``known_groups`` and the codes of ``texts``. ``objects`` has sketches and the
newest events of groups. ``steps`` decides which changes are emitted, with earlier values from ``past``, and
``emitting`` makes derived events. ``table_groups`` finds the groups of an event that are rows of a table, and
``row_windows`` runs aggregates whose rows have windows of their own. ``explaining`` describes an aggregate in words.
``asking`` answers questions.
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
from aggregates.columns import COUNTS, ENDS, RETRACTS, EventColumns, ScalarColumn, group_hash, tuples_of, values_at
from aggregates.document import AggregateBody, read_aggregate
from aggregates.emitting import Emission, events_of
from aggregates.errors import AggregateRefused, AggregateStateError
from aggregates.exercises import AGGREGATE_EXERCISE
from aggregates.explaining import explain, why_moved
from aggregates.kernels.tables import TEXT
from aggregates.row_windows import RowWindows
from aggregates.running import AggregateRun, Bound
from aggregates.scalars import Scalar, group_text
from aggregates.steps import Holds, InBounds
from aggregates.table_groups import TableGroups
from aggregates.values import AggregateValue
from aggregates.windows import Window
