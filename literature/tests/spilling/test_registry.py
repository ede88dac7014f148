"""Registries and thresholds that are refused, with the reason."""

from typing import Any

import pytest

from joins.errors import JoinRefused
from literature.spilling import (
    PROPAGATIONS,
    Component,
    Condition,
    Happening,
    Row,
    SpillingJoin,
    Thresholds,
    default_rows,
    require_usable,
)

UNKNOWN: Any = "unknown"
RELOCATES = Row(Happening.STATE_FULL, (Component.STATE_RELOCATION,))


@pytest.mark.parametrize("propagation", PROPAGATIONS)
@pytest.mark.parametrize("purges", [True, False])
def test_the_usual_registries_are_usable(propagation, purges):
    rows = default_rows(propagation, is_index_eager=True, purges=purges)
    require_usable(rows)
    assert rows[0] == Row(Happening.STREAM_EMPTY, (Component.DISK_JOIN,), Condition.ACTIVATED)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "relocates a full state"),
        ([Row(Happening.STATE_FULL, (Component.STATE_PURGE,))], "relocates a full state"),
        ([Row(Happening.STATE_FULL, (Component.STATE_RELOCATION,), Condition.NO_UNUSED_PUNCTUATIONS)], "frees a full"),
        ([RELOCATES, Row(Happening.PAIR_READY, (Component.PROPAGATION,))], "never builds their index"),
        ([RELOCATES, Row(Happening.PAIR_READY, ())], "unknown"),
        ([RELOCATES, Row(UNKNOWN, (Component.DISK_JOIN,))], "unknown"),
        ([RELOCATES, Row(Happening.PAIR_READY, (UNKNOWN,))], "unknown"),
        ([RELOCATES, Row(Happening.PAIR_READY, (Component.DISK_JOIN,), UNKNOWN)], "unknown"),
    ],
)
def test_an_unusable_registry_is_refused_and_the_old_one_stays(rows, reason, tmp_path):
    with pytest.raises(JoinRefused, match=reason):
        SpillingJoin(tmp_path, rows=rows)
    join = SpillingJoin(tmp_path)
    before = join.dump()[0]["rows"]
    with pytest.raises(JoinRefused, match=reason):
        join.tune(rows=rows)
    assert join.dump()[0]["rows"] == before


def test_thresholds_are_positive():
    with pytest.raises(JoinRefused, match="memory_events is at least 1, not 0"):
        Thresholds(memory_events=0)
