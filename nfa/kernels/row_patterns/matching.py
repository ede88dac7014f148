"""The search for row patterns, which backtracks over a program and tries preferred alternatives first.

If no condition reads other rows of the match, the search takes each branch at most once per row. A second visit of the
branch at the same row would be useless, because the first has failed or is unfinished. So the number of steps per row
of an attempt is bounded by the number of branches of the program.
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.row_patterns.conditions import is_true, note_row
from nfa.kernels.row_patterns.tables import (
    ALWAYS,
    AT_ROW,
    CHECK,
    COLUMN,
    DONE,
    FIRST_ROW,
    FOUND_FULL,
    HAS_HISTORY,
    HAS_MEMORY,
    JUMP,
    LAST_MATCHED,
    LENGTH,
    LINES,
    LONGEST,
    MARK,
    MATCH,
    MATCHED,
    MOST_STEPS,
    NEXT_NUMBER,
    NIL,
    ORDINAL,
    PARTITION,
    PAST_LAST_ROW,
    RECORDS,
    ROW,
    SHOWS_EMPTY,
    SHOWS_UNMATCHED,
    SKIP_RULE,
    SKIPS_NOWHERE,
    SKIPS_TO_START,
    SPLIT,
    STACK_FULL,
    STAMP,
    START,
    STEPS,
    TO_FIRST,
    TO_NEXT_ROW,
    TOO_MANY_STEPS,
    UNMATCHED,
    WHAT,
    WITHIN,
    Int,
    Plan,
    RowMatches,
    Rows,
    Search,
)
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine

# Results of an attempt that are not lengths.
_NO_MATCH, _STACK_FULL, _TOO_MANY_STEPS = -1, -2, -3


@inlined
def takes(plan: Plan, rows: Rows, search: Search, label: Int, row: Int, base: Int, begin: Int, end: Int) -> bool:
    """Return whether a match can take a row as ``label``.

    The row must be in the partition and in the window of WITHIN, and must satisfy the label's condition.
    """
    if row >= end:
        return False
    if plan.settings[WITHIN] != LONGEST and abs(rows.times[row] - rows.times[begin]) >= plan.settings[WITHIN]:
        return False
    kind = plan.kinds[label]
    if plan.settings[HAS_HISTORY] != 0:
        search.labels[row - base] = np.int32(2 * label)
        note_row(plan, rows, search, label, row, base, begin)
    if kind == ALWAYS:
        return True
    if kind == COLUMN:
        return bool(rows.truth[plan.places[label, 0], row])
    return is_true(plan, rows, search, label, row, base, begin, end)


@inlined
def is_known(plan: Plan, search: Search, place: Int, position: Int) -> bool:
    """Return whether the search has reached this branch at this row before, and mark the pair as reached.

    If the search keeps no marks, return false.
    """
    split = plan.splits[place]
    if plan.settings[HAS_MEMORY] == 0:
        return False
    if search.visited[split, position] == search.state[STAMP]:
        return True
    search.visited[split, position] = np.int32(search.state[STAMP])
    return False


@inlined
def go_back(search: Search, top: np.int64) -> tuple[np.int64, np.int64, np.int64]:
    """Backtrack to the newest branch with an untried alternative. Return (instruction, row, stack size).

    If there is no such branch, the instruction is NIL.
    """
    while top > 0:
        top -= 1
        place, value = search.stack[top, 0], search.stack[top, 1]
        if place >= 0:
            return np.int64(place), np.int64(value), top
        search.registers[-1 - place] = value
    return NIL, NIL, np.int64(0)


@inlined
def moved(plan: Plan, search: Search, place: Int, row: Int, base: Int, end: Int) -> Int:
    """Return the next instruction after a jump, an anchor, or a check for an empty iteration.

    If an anchor fails at this row, return NIL.
    """
    operation, first, second = plan.program[place, 0], plan.program[place, 1], plan.program[place, 2]
    if operation == JUMP:
        return np.int64(first)
    if operation == CHECK:
        return np.int64(second) if search.registers[first] == row else place + 1
    return place + 1 if row == (base if operation == START else end) else NIL


@routine
def attempt(plan: Plan, rows: Rows, search: Search, base: Int, begin: Int, end: Int) -> Int:
    """Search for the preferred match at row ``begin``. Return its length, or a negative code for failure."""
    place, row, top = np.int64(0), np.int64(begin), np.int64(0)
    steps, most = search.state[STEPS], plan.settings[MOST_STEPS]
    result = np.int64(_NO_MATCH)
    while place != NIL:
        steps += 1
        if steps > most or top + 1 >= search.stack.shape[0]:
            result = np.int64(_TOO_MANY_STEPS) if steps > most else np.int64(_STACK_FULL)
            break
        operation, first, second = plan.program[place, 0], plan.program[place, 1], plan.program[place, 2]
        after = place + 1
        if operation == ROW:
            if takes(plan, rows, search, first, row, base, begin, end):
                search.labels[row - base] = np.int32(2 * first + second)
                row += 1
            else:
                after = NIL
        elif operation == SPLIT:
            after = NIL if is_known(plan, search, place, row - base) else np.int64(first)
            search.stack[top, 0], search.stack[top, 1] = second, row
            top += np.int64(after != NIL)
        elif operation == MATCHED:
            result = np.int64(row - begin)
            break
        elif operation == MARK:
            search.stack[top, 0], search.stack[top, 1] = -1 - first, search.registers[first]
            top += 1
            search.registers[first] = row
        else:
            after = np.int64(moved(plan, search, place, row, base, end))
        place = after
        if place == NIL:
            place, row, top = go_back(search, top)
    search.state[STEPS] = steps
    return result


@inlined
def write(matches: RowMatches, search: Search, what: Int, row: Int, length: Int, base: Int) -> bool:
    """Append a match or an unmatched row to the results. Return false if there is no room."""
    record, line = search.state[RECORDS], search.state[LINES]
    if record >= matches.records.shape[0] or line + length > matches.labels.shape[0]:
        return False
    matches.records[record, WHAT], matches.records[record, FIRST_ROW] = what, row
    matches.records[record, LENGTH], matches.records[record, ORDINAL] = length, search.state[NEXT_NUMBER]
    for place in range(length):
        matches.labels[line + place] = search.labels[row - base + place]
    search.state[RECORDS] += 1
    search.state[LINES] += length
    return True


@inlined
def next_row(plan: Plan, search: Search, base: Int, row: Int, length: Int) -> Int:
    """Return the row at which the search continues after a match, by the skip rule. The match must not be empty.

    If the skip rule names a label that no row of the match has, return NIL.
    """
    rule = plan.settings[SKIP_RULE]
    if rule == PAST_LAST_ROW:
        return row + length
    if rule == TO_NEXT_ROW:
        return row + 1
    target = NIL
    for place in range(row, row + length):
        if plan.skip[search.labels[place - base] >> 1] != 0:
            target = np.int64(place)
            if rule == TO_FIRST:
                break
    return target


@inlined
def advance(
    plan: Plan, rows: Rows, search: Search, matches: RowMatches, base: Int, end: Int, row: Int
) -> tuple[Int, Int]:
    """Search for a match that starts at ``row``, and write the result. Return (status, row at which to continue)."""
    steps = search.state[STEPS]
    length = attempt(plan, rows, search, base, row, end)
    if length <= _STACK_FULL:
        if length == _TOO_MANY_STEPS:
            return TOO_MANY_STEPS, row
        search.state[STEPS] = steps
        search.state[STAMP] += 1
        return STACK_FULL, row
    if plan.settings[WITHIN] != LONGEST or length > 0:
        search.state[STAMP] += 1  # clears visited branches, which may lead to a match from another first row
    if length < 0:
        shows = plan.settings[SHOWS_UNMATCHED] != 0 and row > search.state[LAST_MATCHED]
        if shows and not write(matches, search, UNMATCHED, row, 0, base):
            search.state[STEPS] = steps
            search.state[STAMP] += 1
            return FOUND_FULL, row
        return DONE, row + 1
    if (length > 0 or plan.settings[SHOWS_EMPTY] != 0) and not write(matches, search, MATCH, row, length, base):
        search.state[STEPS] = steps
        search.state[STAMP] += 1
        return FOUND_FULL, row
    search.state[NEXT_NUMBER] += 1
    if length == 0:
        search.state[STAMP] += 1
        return DONE, row + 1
    search.state[LAST_MATCHED] = max(search.state[LAST_MATCHED], row + length - 1)
    target = next_row(plan, search, base, row, length)
    if target == row:
        return SKIPS_TO_START, row
    return (SKIPS_NOWHERE, row) if target == NIL else (DONE, target)


@kernel
def find_matches(plan: Plan, rows: Rows, search: Search, matches: RowMatches) -> Int:
    """Search all partitions for matches, from the position in ``search.state`` on.

    Returns ``DONE``, or the reason why the search stopped early.
    """
    lent_plan, lent_rows, lent, lent_matches = borrowed(plan), borrowed(rows), borrowed(search), borrowed(matches)
    state = search.state
    while state[PARTITION] < rows.bounds.shape[0] - 1:
        base, end = rows.bounds[state[PARTITION]], rows.bounds[state[PARTITION] + 1]
        row: Int = np.int64(max(state[AT_ROW], base))
        while row < end:
            status, row = advance(lent_plan, lent_rows, lent, lent_matches, base, end, row)
            state[AT_ROW] = row
            if status != DONE:
                return status
        state[PARTITION] += 1
        state[NEXT_NUMBER], state[LAST_MATCHED], state[STEPS] = 1, NIL, 0
        state[STAMP] += 1
    return DONE
