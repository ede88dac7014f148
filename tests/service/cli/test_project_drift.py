"""A plan shows every difference between project and service, and nothing after the project is applied."""

import pytest

from service.client import Client
from service.projects import export_project
from service.stores.registry.registered import OperatorDraft
from tests.builders.projects import applied, plan_of, written

pytestmark = pytest.mark.redis

LIMITS = {
    "limits.yaml": "{kind: table, name: limits, key: sensor, file: limits.csv}",
    "limits.csv": "sensor,most\ns1,5\n",
}


@pytest.fixture
def service(api_url, stores):
    with Client(api_url, patience_s=60) as found:
        yield found


def change_row(service, sensor, most):
    service.request("PUT", "/tables/limits/rows", query={"key": sensor}, body={"most": most})


def test_rows_that_were_changed_one_at_a_time_are_a_difference(service, tmp_path):
    folder = written(tmp_path / "own", LIMITS)
    applied(service, folder)
    change_row(service, "s1", 9)
    (change,) = plan_of(service, folder).changes
    assert [line for line in change.difference() if line[0] in "+-"] == ["-changed_rows: 1"]
    assert applied(service, folder) == [("changed", "table limits")]
    assert service.get("/tables/limits")["changed_rows"] == 0
    assert applied(service, folder) == []


def test_an_exported_table_with_changed_rows_gets_a_version_with_these_rows_as_the_help_says(service, tmp_path, call):
    assert "changed one at a time gets a version with the same rows" in " ".join(call("export", "--help")[1].split())
    applied(service, written(tmp_path / "own", LIMITS))
    change_row(service, "s1", 9)
    rows = service.content("/tables/limits/rows")
    export_project(service, tmp_path / "out")
    assert applied(service, tmp_path / "out") == [("changed", "table limits")]
    table = service.get("/tables/limits")
    assert (table["version"], table["changed_rows"], service.content("/tables/limits/rows")) == (2, 0, rows)
    assert applied(service, tmp_path / "out") == []


@pytest.mark.parametrize("rows", ["1,\n2,1.0\n", "1,\n2,7\n", "1,\n2,true\n", "1,\n2,x\n", "1,\n2,2026-01-01\n"])
def test_an_exported_table_with_empty_cells_is_the_same(service, tmp_path, rows):
    applied(service, written(tmp_path / "own", {**LIMITS, "limits.csv": f"sensor,most\n{rows}"}))
    export_project(service, tmp_path / "out")
    assert plan_of(service, tmp_path / "out").changes == []


def test_an_empty_constraint_set_is_that_of_a_stream_without_one(service, tmp_path):
    rules = "{kind: stream, name: s}\n---\n{kind: constraints, name: s, constraints: [CONSTRAINTS]}"
    folder = written(tmp_path / "own", {"rules.yaml": rules.replace("CONSTRAINTS", "")})
    assert applied(service, folder) == [("new", "stream s")]
    assert applied(service, folder) == []
    written(folder, {"rules.yaml": rules.replace("CONSTRAINTS", "'exclusive(A, B)'")})
    assert applied(service, folder) == [("new", "constraint set s")]
    written(folder, {"rules.yaml": rules.replace("CONSTRAINTS", "")})
    assert applied(service, folder) == [("changed", "constraint set s")]
    assert applied(service, folder, is_pruned=True) == []


def test_kinds_of_results_that_a_webhook_names_twice_count_once(service, tmp_path):
    hook = "{kind: webhook, name: desk, url: 'https://8.8.8.8', kinds: [deviation, alert, alert]}"
    folder = written(tmp_path / "own", {"desk.yaml": hook})
    assert applied(service, folder) == [("new", "webhook desk")]
    assert applied(service, folder) == []


@pytest.mark.parametrize("name", [".", "..", "..."])
def test_an_exported_pattern_whose_name_is_dots_has_a_file_that_is_read(
    service, tmp_path, api_url, call, monkeypatch, name
):
    applied(service, written(tmp_path / "own", {"orders.yaml": "{kind: stream, name: orders}"}))
    with monkeypatch.context() as earlier:
        earlier.setattr(OperatorDraft, "__post_init__", lambda _: None, raising=False)
        service.post("/patterns", {"stream": "orders", "text": f"PATTERN `{name}` EVENT SEQ(A a, B b)"})
    status, out, err = call("export", "out", "--url", api_url)
    assert status == 0
    assert out.splitlines() == ["out/streams/orders.yaml", "out/patterns/_.yaml"]
    assert ("a service refuses this name today" in " ".join(err.split())) == (name in (".", ".."))
    plan = plan_of(service, tmp_path / "out")
    assert (plan.changes, plan.same) == ([], 2)
