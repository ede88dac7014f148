"""Searches a table for the matches of a clause: compiles the clause for the table, and calls the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nfa.errors import PatternRefused
from nfa.kernels.row_patterns import tables
from nfa.kernels.row_patterns.matching import find_matches
from nfa.kernels.row_patterns.tables import Plan, RowMatches, Rows, Search
from nfa.sql.conditions import Conditions, compile_conditions, constant_of, kind_of, lane_of_floats, lane_of_integers
from nfa.sql.errors import RowPatternFailed
from nfa.sql.program import Program, build_program
from nfa.sql.syntax import Clause, Constant, SkipRule
from nfa.sql.table import SortedTable, integers_of, unit_of
from nfa.sql.time_sums import refuse_large_sums
from streams import zeros_of

MOST_STEPS = 1_000_000_000
"""The default bound of the steps of the search in one partition."""

_RULES: Mapping[SkipRule, int] = {
    "past_last_row": tables.PAST_LAST_ROW,
    "to_next_row": tables.TO_NEXT_ROW,
    "to_first": tables.TO_FIRST,
    "to_last": tables.TO_LAST,
}
_MOST_MEMORY = 2**28  # maximum number of (branch, row) cells
_MOST_STACK = 2**26


@dataclass(frozen=True)
class Matches:
    """The result of a search as *records*. A record is a match or an unmatched row, in the order of the output.

    A *line* is a row of a match.

    Attributes:
        is_match: For each record, whether it is a match and not an unmatched row.
        starts: For each record, its first row.
        lengths: For each record, its number of lines.
        numbers: For each record, the number of the match in its partition.
        labels: For each line, the label of the row.
        is_excluded: For each line, whether the row is left out of the output.
    """

    is_match: NDArray[np.bool_]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    numbers: NDArray[np.int64]
    labels: NDArray[np.int32]
    is_excluded: NDArray[np.bool_]

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """For each record, the index of its first line."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def records(self) -> NDArray[np.intp]:
        """For each line, the index of its record."""
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    @cached_property
    def lines(self) -> NDArray[np.int64]:
        """For each line, the index of its row in the table."""
        rows: NDArray[np.int64] = np.arange(len(self.labels)) + (self.starts - self.firsts)[self.records]
        return rows


def search(clause: Clause, table: SortedTable, most_steps: int = MOST_STEPS) -> Matches:
    """Search a table for the matches of a clause.

    Raises:
        PatternRefused: The conditions do not fit the table's columns.
        RowPatternFailed: The search takes too many steps, or AFTER MATCH SKIP has no row to skip to.
    """
    within = _within(clause, table)
    program, conditions = build_program(clause.pattern), compile_conditions(clause, table)
    longest = int(np.diff(table.bounds).max(initial=0))
    has_memory = not conditions.has_history and program.branches * (longest + 1) <= _MOST_MEMORY
    rows, ranks = _rows(clause, table, conditions)
    plan = _plan(clause, program, conditions, ranks, (int(has_memory), within, most_steps))
    scratch = _scratch(program, conditions, longest, has_memory=has_memory)
    matches = RowMatches(np.zeros((max(16, table.size // 8), 4), np.int64), np.zeros(max(64, table.size), np.int32))
    while (status := find_matches(plan, rows, scratch, matches)) != tables.DONE:
        if status == tables.FOUND_FULL:
            matches = _enlarged(matches)
        elif status == tables.STACK_FULL and len(scratch.stack) < _MOST_STACK:
            scratch = scratch._replace(stack=np.zeros((4 * len(scratch.stack), 2), np.int64))
        else:
            raise _failure(int(status), clause, most_steps)
    return _matches(matches, scratch.state)


def _plan(
    clause: Clause,
    program: Program,
    conditions: Conditions,
    ranks: Mapping[str, int],
    limits: tuple[int, int, int],
) -> Plan:
    refuse_large_sums(conditions)
    labels = range(len(clause.variables))
    constants = [constant_of(conditions, place, ranks) for place in range(len(conditions.constants))]
    shows_empty = clause.rows != "omit_empty"
    settings = (_RULES[clause.skip.rule], shows_empty, clause.rows == "unmatched", conditions.has_history, *limits)
    members = [[label in label_set for label in labels] for label_set in conditions.sets]
    return Plan(
        program=program.instructions,
        splits=program.splits,
        kinds=conditions.kinds,
        places=conditions.places,
        code=np.array(conditions.code, np.int32).reshape(-1, 2),
        integers=np.array([whole for whole, _ in constants], np.int64),
        floats=np.array([number for _, number in constants], np.float64),
        leaves=np.array(conditions.leaves, np.int64).reshape(-1, 7),
        aggregates=np.array(conditions.aggregates, np.int64).reshape(-1, 5),
        members=np.array(members, np.uint8).reshape(len(members), len(labels)),
        skip=np.array([label in clause.skip.labels for label in labels], np.uint8),
        settings=np.array(settings, np.int64),
    )


def _rows(clause: Clause, table: SortedTable, conditions: Conditions) -> tuple[Rows, Mapping[str, int]]:
    truth = np.array(conditions.truth, np.uint8).reshape(len(conditions.truth), table.size)
    integers, integers_known, ranks = lane_of_integers(conditions, table.size + 1)
    floats, floats_known = lane_of_floats(conditions, table.size + 1)
    times = np.zeros(0, np.int64)
    if clause.within is not None:
        column = table.column(clause.order[0].column)
        if column.null_count:
            raise PatternRefused(
                "within", f"WITHIN needs a value of {clause.order[0].column} on every row", clause.order[0].position
            )
        order_values = integers_of(column, unit_of([column]), clause.order[0].position)
        times = np.require(order_values, requirements=["C", "W"])
    return Rows(table.bounds, truth, times, integers, integers_known, floats, floats_known), ranks


def _within(clause: Clause, table: SortedTable) -> int:
    """Return WITHIN in the unit in which the column of ORDER BY is compared."""
    if clause.within is None:
        return int(tables.LONGEST)
    column = table.column(clause.order[0].column)
    kind = kind_of(column.type)
    match clause.within:
        case Constant(value=timedelta() as length) if kind == "time":
            size = length // timedelta(microseconds=1) * (1_000 if unit_of([column]) == "ns" else 1)
        case Constant(value=bool()):
            size = 0
        case Constant(value=int() as size) if kind == "integer":
            pass
        case _:
            size = 0
    if size <= 0:
        raise PatternRefused(
            "within",
            "WITHIN takes a positive INTERVAL beside ORDER BY a time, or a positive whole number beside ORDER BY a "
            f"whole number; here the column {clause.order[0].column} has values of type {kind}",
            clause.order[0].position,
        )
    return min(size, int(tables.LONGEST))


def _scratch(program: Program, conditions: Conditions, longest: int, *, has_memory: bool) -> Search:
    state = np.zeros(tables.PLACES, np.int64)
    state[tables.NEXT_NUMBER], state[tables.LAST_MATCHED], state[tables.STAMP] = 1, tables.NIL, 1
    return zeros_of(
        Search,
        conditions.depth,
        state=state,
        labels=longest + 1,
        **dict.fromkeys(("first", "last"), (len(conditions.sets), longest)),
        **dict.fromkeys(("counts", "sums", "totals"), (len(conditions.aggregates), longest)),
        stack=(4_096, 2),
        registers=program.registers,
        visited=(program.branches if has_memory else 0, longest + 1),
    )


def _enlarged(matches: RowMatches) -> RowMatches:
    records = np.zeros((2 * len(matches.records), 4), np.int64)
    records[: len(matches.records)] = matches.records
    labels = np.zeros(2 * len(matches.labels), np.int32)
    labels[: len(matches.labels)] = matches.labels
    return RowMatches(records, labels)


def _failure(status: int, clause: Clause, most_steps: int) -> RowPatternFailed:
    if status == tables.SKIPS_TO_START:
        problem = "AFTER MATCH SKIP would go to the first row of the match, and find the same match for ever"
    elif status == tables.SKIPS_NOWHERE:
        names = " or ".join(clause.variables[label] for label in sorted(clause.skip.labels))
        problem = f"AFTER MATCH SKIP would go to a row with label {names}, and a match has none"
    elif status == tables.STACK_FULL:
        return RowPatternFailed(f"a match tries more than {_MOST_STACK} branches; make the pattern more specific")
    else:
        return RowPatternFailed(
            f"the search of one partition takes more than {most_steps} steps; make the pattern or its conditions more "
            "specific, or allow more steps (max_steps)"
        )
    return RowPatternFailed(f"line {clause.skip.position.line}, column {clause.skip.position.column}: {problem}")


def _matches(matches: RowMatches, state: NDArray[np.int64]) -> Matches:
    records, labels = matches.records[: state[tables.RECORDS]], matches.labels[: state[tables.LINES]]
    return Matches(
        is_match=records[:, tables.WHAT] == tables.MATCH,
        starts=records[:, tables.FIRST_ROW],
        lengths=records[:, tables.LENGTH],
        numbers=records[:, tables.ORDINAL],
        labels=labels >> 1,
        is_excluded=(labels & 1).astype(np.bool_),
    )
