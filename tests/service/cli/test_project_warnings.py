"""``forestall apply`` prints the warnings of the service about what it changes."""

import pytest

from tests.builders.projects import written

pytestmark = pytest.mark.redis

RULES = """
{kind: stream, name: orders, end_events: [FinishOrdr], workflow: order}
---
{kind: workflow, name: order, model: {tree: {sequence: [Receive, UseRemoteStock, FinishOrder]}}}
---
{kind: pattern, name: stock, stream: orders, text: 'PATTERN stock EVENT SEQ(Receive r, UseRemoteStck u)'}
---
{kind: pattern, name: paid, stream: orders, text: PATTERN paid EVENT Receive, resolves: {pattern: reminder, by: [key]}}
---
kind: pattern
name: reminder
stream: orders
text: PATTERN reminder EVENT Receive
incident: {by: [key], close_after: 2 h}
"""


def test_warnings_are_printed_once_and_only_if_they_are_true_after_all_changes(call, api_url, stores, tmp_path):
    written(tmp_path / "rules", {"rules.yaml": RULES})
    status, _, err = call("apply", "rules", "--url", api_url)
    assert status == 0, err
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    end, pattern_type = warnings
    assert end == (
        "warning: stream orders: the end event FinishOrdr is not among the types of the constraints and the workflow, "
        "which have FinishOrder; one of the two names is probably misspelt"
    )
    assert "pattern stock: line 1, column 36: UseRemoteStck (did you mean UseRemoteStock?) is none of" in pattern_type
    assert "warning" not in call("apply", "rules", "--url", api_url)[2]
