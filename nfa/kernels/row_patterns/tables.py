"""Tables and constants of the kernels that search for row patterns.

Rows are numbered in the order of the search: partition by partition, sorted. ``NIL`` is -1 and means none. Each column
ends with an extra null row, which is read instead of rows that do not exist.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int: TypeAlias = int | np.int32 | np.int64

NIL = np.int64(-1)
LONGEST = np.int64(np.iinfo(np.int64).max)

# Instructions of a pattern's program, with up to two operands.
ROW = 0  # matches a row; operands: label, whether the row is excluded from the output
SPLIT = 1  # operands: preferred instruction, other instruction
JUMP = 2  # operand: instruction
START = 3  # anchor: matches at the partition's start
END = 4  # anchor: matches at the partition's end
MARK = 5  # stores the row at which an iteration starts; operand: register
CHECK = 6  # operands: register, instruction at which to continue if the iteration matched no row
MATCHED = 7

# Evaluation of a label's condition: no condition, a boolean column (``Rows.truth``), or a program in ``Plan.code``.
ALWAYS, COLUMN, CODE = range(3)

# Instructions of conditions: leaves push a value, the others change the topmost values. The operand of a leaf is its
# number, the operand of most operators the lane (integers or floats) of their values.
LEAF, AGGREGATE, CONSTANT, NUMBER, NOTHING = range(5)
TO_FLOAT, NOT, NEGATE, ABSOLUTE, IS_NULL = range(8, 13)
ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, LEAST, GREATEST = range(16, 23)
EQUAL, DIFFERENT, LESS, LESS_OR_EQUAL, MORE, MORE_OR_EQUAL, DISTINCT = range(24, 31)
AND, OR, KNOWN_ONE, CHOOSE = range(32, 36)

# Columns of ``Plan.leaves``: set of labels or NIL, whether rows are counted from the first row, number of rows to skip
# within the match (FIRST, LAST), offset in the partition (PREV, NEXT), column, number of columns by label (0: a single
# column for all labels), lane.
SET, IS_FIRST, OFFSET, PHYSICAL, AT_COLUMN, BY_LABEL, LANE = range(7)

# Columns of ``Plan.aggregates``: function, set of labels, column, whether there is a column for each label, lane.
FUNCTION, OF_SET, OF_COLUMN, OF_LABELS, OF_LANE = range(5)

COUNT, SUM, AVERAGE, MINIMUM, MAXIMUM, ANY_VALUE = range(6)  # functions

INTEGERS, FLOATS = range(2)  # lanes

# Rows of ``RowMatches.records``: kind, first row, number of rows, number of the match in the partition.
WHAT, FIRST_ROW, LENGTH, ORDINAL = range(4)
MATCH, UNMATCHED = range(2)

# Skip rules.
PAST_LAST_ROW, TO_NEXT_ROW, TO_FIRST, TO_LAST = range(4)

# Places of ``Search.state``.
PARTITION, AT_ROW, NEXT_NUMBER, LAST_MATCHED, RECORDS, LINES, STEPS, STAMP = range(8)
PLACES = 8

# Places of ``Plan.settings``.
SKIP_RULE, SHOWS_EMPTY, SHOWS_UNMATCHED, HAS_HISTORY, HAS_MEMORY, WITHIN, MOST_STEPS = range(7)
SETTINGS = 7

# Status of the kernel.
DONE, FOUND_FULL, STACK_FULL, TOO_MANY_STEPS, SKIPS_TO_START, SKIPS_NOWHERE = range(6)


class Plan(NamedTuple):
    """A compiled MATCH_RECOGNIZE clause."""

    program: NDArray[np.int32]  # (instructions, 3)
    splits: NDArray[np.int32]  # (instructions,) number of a SPLIT among all SPLITs; NIL for other instructions
    kinds: NDArray[np.int32]  # (labels,) ALWAYS, COLUMN, CODE
    places: NDArray[np.int32]  # (labels, 2) number of the boolean column, or the range in ``code``
    code: NDArray[np.int32]  # (instructions of conditions, 2)
    integers: NDArray[np.int64]  # constants
    floats: NDArray[np.float64]  # constants
    leaves: NDArray[np.int64]  # (leaves, 7)
    aggregates: NDArray[np.int64]  # (aggregates, 5)
    members: NDArray[np.uint8]  # (sets, labels) whether a set of labels has a label
    skip: NDArray[np.uint8]  # (labels,) whether TO_FIRST and TO_LAST skip to a label
    settings: NDArray[np.int64]  # (SETTINGS,)


class Rows(NamedTuple):
    """The columns that the search reads. ``bounds`` has the first row of each partition, then the number of rows."""

    bounds: NDArray[np.int64]
    truth: NDArray[np.uint8]  # (boolean columns, rows)
    times: NDArray[np.int64]  # (rows,) times for WITHIN; (0,) without WITHIN
    integers: NDArray[np.int64]  # (columns, rows + 1)
    integers_known: NDArray[np.uint8]
    floats: NDArray[np.float64]
    floats_known: NDArray[np.uint8]


class Search(NamedTuple):
    """The state of the search.

    Arrays by row have the length of the longest partition. The entry of a row describes the current attempt up to this
    row. Therefore, earlier entries stay valid when the search backtracks.
    """

    state: NDArray[np.int64]  # (PLACES,)
    labels: NDArray[np.int32]  # (rows,) twice the label, plus 1 if the row is excluded from the output
    first: NDArray[np.int32]  # (sets, rows) first row with a label of the set, or NIL
    last: NDArray[np.int32]  # (sets, rows) last row with a label of the set, or NIL
    counts: NDArray[np.int64]  # (aggregates, rows) number of values
    sums: NDArray[np.int64]  # (aggregates, rows) the value, if the aggregate's lane is integers
    totals: NDArray[np.float64]  # (aggregates, rows) the value, if the aggregate's lane is floats
    stack: NDArray[np.int64]  # (depth, 2) instruction and row; or, to restore a register, -1 - its number and its value
    registers: NDArray[np.int64]
    visited: NDArray[np.int32]  # (splits, rows + 1) the last stamp
    known: NDArray[np.uint8]  # (values,) the stack of a condition: whether the value is not null
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]


class RowMatches(NamedTuple):
    """The output of the search: matches and unmatched rows in order, and the labels of the rows of all matches."""

    records: NDArray[np.int64]  # (records, 4)
    labels: NDArray[np.int32]
