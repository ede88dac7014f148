"""``forestall apply`` prints the warnings of the service about what it changes."""

import pytest

from service.client import Client, ServiceUnreachable
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


@pytest.fixture
def calls(monkeypatch):
    """The calls of the client, in order."""
    made, answer = [], Client._answer

    def noted(client, call, **options):
        made.append(call)
        return answer(client, call, **options)

    monkeypatch.setattr(Client, "_answer", noted)
    return made


def test_warnings_are_printed_once_and_only_if_they_are_true_after_all_changes(call, api_url, stores, tmp_path):
    written(tmp_path / "rules", {"rules.yaml": RULES})
    status, _, err = call("apply", "rules", "--url", api_url)
    assert status == 0, err
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    end, pattern_type = warnings
    assert end == (
        "warning: workflow of the stream orders: the end event FinishOrdr is not among the types of the "
        "constraints and the workflow, which have FinishOrder; one of the two names is probably misspelt"
    )
    assert "pattern stock: line 1, column 36: UseRemoteStck (did you mean UseRemoteStock?) is none of" in pattern_type
    assert "warning" not in call("apply", "rules", "--url", api_url)[2]


def test_the_constraints_of_a_stream_are_read_once_and_no_change_is_requested(call, api_url, stores, tmp_path, calls):
    constraints = "\n---\n{kind: constraints, name: orders, constraints: ['prior(Receive, FinishOrder)']}"
    written(tmp_path / "rules", {"rules.yaml": RULES + constraints})
    status, _, err = call("apply", "rules", "--url", api_url)
    assert status == 0, err
    assert not [made for made in calls if made.method == "PATCH"]
    last_change = max(number for number, made in enumerate(calls) if made.method != "GET")
    paths = [made.path for made in calls[last_change + 1 :]]
    assert paths.count("/constraints/orders") == paths.count("/workflows/order") == 1
    assert "/streams/orders" not in paths


def test_a_warning_that_cannot_be_read_is_no_failure(call, api_url, stores, tmp_path, monkeypatch):
    def fail(*_):
        raise ServiceUnreachable("no answer")

    monkeypatch.setattr("service.projects.operators.Operators.warnings", fail)
    written(tmp_path / "rules", {"rules.yaml": RULES})
    status, _, err = call("apply", "rules", "--url", api_url)
    assert status == 0, err
    assert "warning: the warnings of the service could not be read: no answer" in err
    assert "done: " in err
