"""Joins of events of several streams on one key, with bounded state.

Purpose: combine events of two or more inputs that have the same key, within windows, and drop events that can no longer
join, because they left their window or because their key was closed. Promises: results are exact, and each result is
emitted once, at the event that completes it. Neither batch boundaries nor saving and loading change the results. The
end of a key is reported at the first item at which it is certain. Each event costs one look-up.
"""

from joins.combinations import FIGURE, Condition
from joins.document import JoinBody, JoinInput, keeps_rows, read_join, readings_of
from joins.errors import JoinRefused, JoinStateError
from joins.exercises import JOIN_EXERCISE
from joins.explaining import explain, warnings
from joins.figures import figures, without_keys
from joins.items import Cause, Item, ItemColumns, Why
from joins.merging import (
    CLOSED,
    MARKS,
    RANGE,
    REVOCABLE,
    UNKEYED,
    attributes_of,
    finished_range,
    input_name,
    merged_data,
    merged_id,
    merged_ids,
    merged_types,
)
from joins.outputs import Broken, JoinOutput
from joins.returns import Column, Placed, value_at
from joins.running import JoinRun
from joins.waiting.chunks import KeyMonitor
from joins.waiting.decider import WaitDecider, held_summary, keys_summary
from joins.waiting.inputs import waiting_inputs, waiting_sentences
from joins.windowed import JoinStats, Window, WindowJoin
