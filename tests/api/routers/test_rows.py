"""Patterns with FOR EACH ROW over HTTP: what is refused, what is shown, and dry runs."""

import orjson
import pytest

from nfa import MOST_ROWS_AT_ONCE
from service import AlertSink
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis

TEXT = "PATTERN p FOR EACH ROW OF limits t EVENT SEQ(A a [v = t.v], B b [w > t.most]) WITHIN 1 h RETURN t.most AS most"
ROWS = "v,most\n1,5\n2,7\n"


def put(http, content=ROWS, *, key="v", **parameters):
    return http.put(
        "/v1/tables/limits",
        content=content,
        headers={"content-type": "text/csv"},
        params={"key": key, "column": "v:integer", **parameters},
    )


def register(http, text=TEXT, **members):
    return http.post("/v1/patterns", json={"stream": "orders", "text": text, **members})


def test_a_pattern_for_each_row_is_registered_and_explained(orders):
    put(orders)
    answer = register(orders)
    assert (answer.status_code, answer.json()["warnings"]) == (201, [])
    assert answer.json()["definition"]["rows"] == {"table": "limits", "alias": "t"}
    assert orders.get("/v1/patterns/p").json()["met_rows"] == [
        {"step": "a", "meets": "the rows with the values of the event, by an index over t.v"},
        {"step": "b", "meets": "the rows with events bound in the transaction"},
    ]
    assert orders.get("/v1/tables/limits").json()["users"] == [{"kind": "pattern", "name": "p"}]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (TEXT.replace("limits", "limit"), "table-unknown", "no table is called 'limit' (did you mean limits?)"),
        (TEXT.replace("> t.most", "> t.least"), "table-column-unknown", "has no column 'least'"),
        (TEXT.replace("WITHIN", "WHERE [key, v] WITHIN"), "pattern-key", "would divide its traces further"),
    ],
)
def test_what_the_table_does_not_have_is_refused(orders, check_problem, text, code, message):
    put(orders)
    answer = register(orders, text)
    assert message in check_problem(answer, 400, code)["detail"]


def test_a_step_that_meets_every_row_is_a_warning(orders):
    put(orders)
    (warning,) = register(orders, TEXT.replace("v = t.v", "v > t.most")).json()["warnings"]
    assert warning.startswith("line 1, column 46: each event of the type A meets every row of limits; compare")


def test_a_table_in_use_keeps_its_columns_and_stays(orders, check_problem):
    put(orders)
    register(orders)
    assert "no column 'most'" in check_problem(put(orders, "v,least\n1,5\n"), 409, "table-in-use")["detail"]
    assert "the pattern p" in check_problem(orders.delete("/v1/tables/limits"), 409, "table-in-use")["detail"]
    assert put(orders, "v,most,note\n1,5,more\n").status_code == 201


def test_tables_with_too_many_rows_are_refused_at_both_ends(orders, check_problem, monkeypatch):
    monkeypatch.setattr("nfa.row_bounds.MOST_ROWS", 1_500)  # tables of tests are small
    many = "v,most\n" + "".join(f"{number},1\n" for number in range(1_501))
    put(orders, many)
    body = check_problem(register(orders), 422, "too-many-rows")
    assert "has 1,501 rows; at most 1,500" in body["detail"]
    put(orders)
    register(orders)
    assert "'limits'" in check_problem(put(orders, many), 422, "too-many-rows")["detail"]
    same = "id,v,most\n" + "".join(f"{number},3,1\n" for number in range(MOST_ROWS_AT_ONCE + 1))
    body = check_problem(put(orders, same, key="id"), 422, "too-many-rows")
    assert f"may meet {MOST_ROWS_AT_ONCE + 1:,} of its rows at one step" in body["detail"]
    full = "".join(f"{number},3,1\n" for number in range(MOST_ROWS_AT_ONCE))
    assert put(orders, f"id,v,most\n{full}", key="id").status_code == 201
    row = orders.put("/v1/tables/limits/rows?key=x", json={"id": "x", "v": 3, "most": 1})
    check_problem(row, 422, "too-many-rows")
    assert orders.put("/v1/tables/limits/rows?key=x", json={"id": "x", "v": 4, "most": 1}).status_code == 200


def test_an_aggregate_for_each_row_is_checked_at_both_ends(orders, check_problem, monkeypatch):
    monkeypatch.setattr("shards.kinds.aggregates.row_groups.MOST_ROWS", 2)
    wanted = {"name": "watching", "of": "orders", "by": ["v"], "for_each_row_of": "limits", "values": {"n": "count()"}}
    wanted |= {"window": "1 h", "having": "n >= row.most"}
    check_problem(orders.post("/v1/aggregates", json=wanted), 400, "table-unknown")
    put(orders)
    refused = orders.post("/v1/aggregates", json={**wanted, "having": "n >= row.least"})
    assert "'least'" in check_problem(refused, 400, "table-column-unknown")["detail"]
    assert orders.post("/v1/aggregates", json=wanted).status_code == 201
    assert orders.get("/v1/tables/limits").json()["users"] == [{"kind": "aggregate", "name": "watching"}]
    assert orders.put("/v1/tables/limits/rows?key=1", json={"v": 1, "most": 9}).status_code == 200
    check_problem(orders.put("/v1/tables/limits/rows?key=3", json={"v": 3, "most": 9}), 422, "too-many-rows")
    assert "no column 'most'" in check_problem(put(orders, "v,least\n1,5\n"), 409, "table-in-use")["detail"]
    orders.delete("/v1/aggregates/watching")
    put(orders, ROWS + "3,1\n")
    check_problem(orders.post("/v1/aggregates", json={**wanted, "name": "other"}), 422, "too-many-rows")


def test_a_dry_run_names_the_row(orders):
    put(orders)
    events = [
        {"id": name, "type": name[0], "time": f"2026-01-01T00:00:0{second}Z", "data": {"id": "k", "v": v, "w": w}}
        for second, (name, v, w) in enumerate([("A1", 1, 0), ("A2", 2, 0), ("B3", 0, 6), ("B4", 0, 9)])
    ]
    assert orders.post("/v1/events?stream=orders", json=events).status_code == 202
    answer = orders.post("/v1/patterns/dry-run", json={"stream": "orders", "text": TEXT}).json()
    assert [(one["row"], one["bindings"]["b"]) for one in answer["matches"]] == [
        ({"v": 1}, ["B3"]),
        ({"v": 1}, ["B4"]),
        ({"v": 2}, ["B4"]),
    ]


def test_lists_name_the_row(orders, stores, clock):
    alert = {
        "type": "alert", "id": "a1", "stream": "orders", "pattern": "p", "version": 1, "key": "k", "row": {"v": "1"},
        "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:01Z", "detected_at": "2026-01-01T00:00:01Z",
        "bindings": {"a": ["A1"]}, "returns": {}, "why": "A1 is A a",
    }  # fmt: skip
    AlertSink(stores, clock)([sink_row(kind="alert", stream="orders", id="a1", body=orjson.dumps(alert))], 1)
    assert orders.get("/v1/alerts").json()["items"][0]["row"] == {"v": "1"}
    assert orders.get("/v1/alerts/a1").json()["row"] == {"v": "1"}
