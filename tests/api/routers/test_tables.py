"""Reference tables over HTTP: what is refused, and what the log gets."""

import io
import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from shards import ShardState, StoredEntry
from streams import RecordKind, log_key
from streams.tables import TableFiles, Tables, fetching
from tests.builders.api import tag

pytestmark = pytest.mark.redis

CSV = "id,limit,tier\nc1,10,gold\nc2,20.5,\n"
TEXT = "PATTERN p EVENT A a [v > lookup(customers, id).limit]"


def put(http, content=CSV, *, name="customers", kind="text/csv", key=("id",), **parameters):
    headers = {"content-type": kind, **parameters.pop("headers", {})}
    return http.put(f"/v1/tables/{name}", content=content, headers=headers, params={"key": key, **parameters})


def records(stores):
    """The control records about tables in the log of a shard."""
    found = [fields for _, fields in stores.client.xrange(log_key(0))]
    return [(one[b"kind"].decode(), json.loads(one[b"body"])) for one in found if one[b"stream"] == b""]


def replayed(stores):
    """The tables of a shard that has read the whole log."""
    state = ShardState(0)
    state.use_tables(Tables(TableFiles(fetching(stores.client.lindex))))
    entries = [
        StoredEntry(
            position=position.decode(), kind=one[b"kind"].decode(), stream=one[b"stream"].decode(), body=one[b"body"]
        )
        for position, one in stores.client.xrange(log_key(0))
        if one[b"kind"].decode() != RecordKind.EVENTS
    ]
    assert state.advance(entries) == []
    return ShardState.load(state.dump(), files=state.tables.files).tables


def test_a_table_is_uploaded_looked_up_and_listed(orders, stores):
    answer = put(orders)
    assert (answer.status_code, answer.headers["etag"]) == (201, '"customers@1.0"')
    shown = answer.json()
    assert (shown["name"], shown["version"], shown["rows"], shown["key"]) == ("customers", 1, 2, ["id"])
    assert shown["columns"] == {"id": "text", "limit": "number", "tier": "text"}
    assert (shown["users"], shown["changed_rows"]) == ([], 0)
    assert orders.get("/v1/tables").json()["items"] == [shown]
    detail = orders.get("/v1/tables/customers")
    assert (tag(detail), detail.json()["versions"][0]["rows_digest"]) == ('"customers@1.0"', shown["rows_digest"])
    ((kind, record),) = records(stores)
    assert (kind, record["version"], record["digest"]) == ("table-on", 1, shown["rows_digest"])
    assert "gold" not in json.dumps(record)


def test_the_same_rows_change_nothing_and_others_are_the_next_version(orders, stores):
    put(orders)
    again = put(orders)
    assert (again.status_code, again.json()["version"]) == (200, 1)
    other = put(orders, CSV + "c3,1,\n")
    assert (other.status_code, other.json()["version"], other.json()["rows"]) == (201, 2, 3)
    versions = orders.get("/v1/tables/customers").json()["versions"]
    assert [(one["version"], one["rows"]) for one in versions] == [(2, 3), (1, 2)]
    assert [kind for kind, _ in records(stores)] == ["table-on", "table-on"]


def test_json_lines_and_parquet_are_read(orders):
    answer = put(orders, '{"id": 1, "limit": 3}\n{"id": 2, "limit": 4.5}\n', kind="application/x-ndjson")
    assert answer.json()["columns"] == {"id": "text", "limit": "number"}
    content = io.BytesIO()
    parquet.write_table(pa.table({"id": [1, 2], "limit": [3.0, 4.5]}), content)
    same = put(orders, content.getvalue(), kind="application/vnd.apache.parquet")
    assert (same.status_code, same.json()["version"]) == (200, 1)
    rows = parquet.read_table(io.BytesIO(orders.get("/v1/tables/customers/rows").content)).to_pylist()
    assert rows == [{"id": "1", "limit": 3.0}, {"id": "2", "limit": 4.5}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,limit\nc1,10\nc1,11\n", "line 3, column 'id': the key 'c1' is in line 2 already"),
        ("id,limit\nc1,10\nc2,ten\n", "line 3, column 'limit': 'ten' is not a number"),
        ("id,limit\nc1,10\n,11\n", "line 3, column 'id': the key is null or empty"),
        ("id,limit\nc1,10,3\n", "line 2: Expected 2 columns, got 3"),
        ("nr,limit\nc1,10\n", "the rows have no column 'id'"),
        (
            "id;limit\nc1;10\n",
            "no column 'id' (the rows are probably separated by semicolons; separate their columns by",
        ),
        ("id\tlimit\nc1\t10\n", "no column 'id' (the rows are probably separated by tabs; separate"),
        ("", "line 1: it names no columns"),
    ],
)
def test_bad_rows_are_refused_with_their_place(orders, stores, check_problem, content, said):
    body = check_problem(put(orders, content, column=["limit:number"]), 422, "table-refused")
    assert said in body["detail"]
    assert records(stores) == []


def test_other_refusals(orders, check_problem):
    check_problem(put(orders, kind="application/json"), 415, "unsupported-media-type")
    check_problem(put(orders, name="a b"), 400, "table-name")
    check_problem(put(orders, column=["limit"]), 422, "wrong-shape")
    check_problem(put(orders, column=["limit:decimal"]), 422, "table-refused")
    check_problem(orders.get("/v1/tables/none"), 404, "unknown-table")
    check_problem(put(orders, headers={"If-Match": '"customers@1.0"'}), 412, "precondition-failed")
    put(orders)
    check_problem(put(orders, CSV + "c3,,\n", headers={"If-None-Match": "*"}), 412, "precondition-failed")


def test_unknown_tables_and_columns_are_refused_with_those_that_exist(orders, check_problem):
    def register(text):
        return orders.post("/v1/patterns", json={"stream": "orders", "text": text})

    assert "there are no tables" in check_problem(register(TEXT), 400, "table-unknown")["detail"]
    put(orders)
    assert register(TEXT).status_code == 201
    body = check_problem(register(TEXT.replace("customers", "customer")), 400, "table-unknown")
    assert body["detail"] == "no table is called 'customer' (did you mean customers?); tables are customers"
    body = check_problem(register(TEXT.replace("limit", "limits")), 400, "table-column-unknown")
    assert "(did you mean limit?); it has id, limit, tier" in body["detail"]
    body = check_problem(register(TEXT.replace("customers, id", "customers, id, v")), 400, "table-column-unknown")
    assert "looked up by 1 key: id; got 2" in body["detail"]


def test_a_table_in_use_keeps_its_columns_and_is_not_deleted(orders, check_problem):
    put(orders)
    orders.post("/v1/patterns", json={"stream": "orders", "text": TEXT})
    assert orders.get("/v1/tables/customers").json()["users"] == [{"kind": "pattern", "name": "p"}]
    body = check_problem(orders.delete("/v1/tables/customers"), 409, "table-in-use")
    assert "the pattern p" in body["detail"]
    body = check_problem(put(orders, "id,tier\nc1,gold\n"), 409, "table-in-use")
    assert "no column 'limit'" in body["detail"]
    body = check_problem(put(orders, "id,limit\nc1,10\nc2,unknown\n"), 409, "table-in-use")
    assert "the type of the column 'limit' was number and is text now" in body["detail"]
    body = check_problem(put(orders, "id,limit,tier\nc1,10,gold\n", key=["tier"]), 409, "table-in-use")
    assert body["detail"] == (
        "the pattern 'p' looks the table up, but its key was id and is tier now; upload the rows with the former key, "
        "or as another table"
    )
    body = check_problem(put(orders, "id,limit\nc1,10\nc2,unknown\n", column="limit:number"), 422, "table-refused")
    assert body["detail"] == "line 3, column 'limit': 'unknown' is not a number, such as 17.5"
    assert put(orders, "id,limit\nc1,10\n").json()["columns"]["limit"] == "integer"
    orders.delete("/v1/patterns/p")
    assert orders.delete("/v1/tables/customers").status_code == 204
    check_problem(orders.delete("/v1/tables/customers"), 404, "unknown-table")
    assert put(orders).json()["version"] == 3


def test_single_rows_are_changed_in_the_log(orders, stores, check_problem):
    put(orders)
    place = "/v1/tables/customers/rows"
    changed = orders.put(f"{place}?key=c1", json={"limit": 99})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"customers@1.1"')
    assert orders.put(f"{place}?key=c9", json={"id": "c9", "tier": "new"}).json()["changed_rows"] == 2
    assert orders.delete(f"{place}?key=c2").status_code == 204
    body = check_problem(orders.put(f"{place}?key=c1", json={"limit": "much"}), 422, "table-refused")
    assert body["detail"] == "column 'limit': 'much' is not a number, such as 17.5"
    check_problem(orders.put(f"{place}?key=c1", json={"id": "c2"}), 422, "table-refused")
    check_problem(orders.put(f"{place}?key=c1", json={"limits": 3}), 422, "table-refused")
    check_problem(orders.put(f"{place}?key=c1", json=[3]), 422, "wrong-shape")
    check_problem(
        orders.put(f"{place}?key=c1", json={}, headers={"If-Match": '"customers@1.0"'}), 412, "precondition-failed"
    )
    found = [{"id": "c1", "limit": 99.0, "tier": None}, {"id": "c9", "limit": None, "tier": "new"}]
    assert parquet.read_table(io.BytesIO(orders.get(place).content)).to_pylist() == found
    assert [kind for kind, _ in records(stores)] == ["table-on", *["table-row"] * 3]
    assert replayed(stores).rows("customers").to_pylist() == found


def test_a_dry_run_reads_the_current_table(orders):
    put(orders)
    events = [
        {"id": str(number), "type": "A", "time": f"2026-01-01T00:00:0{number}Z", "data": {"id": "c1", "v": 9 + number}}
        for number in range(3)
    ]
    assert orders.post("/v1/events?stream=orders", json=events).status_code == 202
    assert orders.post("/v1/patterns/dry-run", json={"stream": "orders", "text": TEXT}).json()["matched"] == 1
    orders.put("/v1/tables/customers/rows?key=c1", json={"limit": 9})
    assert orders.post("/v1/patterns/dry-run", json={"stream": "orders", "text": TEXT}).json()["matched"] == 2


@pytest.mark.parametrize("key", ["a/b", "/", "a b", "a,b", "%2F", "é", "a?b#c", "..", "../.."])
def test_rows_of_all_keys_can_be_changed(orders, stores, key):
    put(orders)
    address, query = "/v1/tables/customers/rows", {"key": key}
    assert orders.put(address, json={"limit": 5}, params=query).status_code == 200
    assert replayed(stores).rows("customers").column("id").to_pylist()[-1] == key
    assert orders.delete(address, params=query).status_code == 204
    assert key not in replayed(stores).rows("customers").column("id").to_pylist()


def test_parts_of_a_key_may_have_commas(orders, stores, check_problem):
    assert put(orders, "shop,id,limit\n1,a,5\n", key=["shop", "id"]).status_code == 201
    address = "/v1/tables/customers/rows"
    assert orders.put(address, json={"limit": 7}, params={"key": ["1", "a,b"]}).status_code == 200
    assert orders.delete(address, params={"key": ["1", "a"]}).status_code == 204
    assert replayed(stores).rows("customers").to_pylist() == [{"shop": "1", "id": "a,b", "limit": 7.0}]
    body = check_problem(orders.delete(address, params={"key": ["1,a"]}), 422, "table-refused")
    assert body["detail"] == "the key ['1,a'] has not the parts shop, id, each once and not empty"
    assert orders.delete(address).status_code == 422


def test_versions_that_no_entry_of_the_log_needs_are_forgotten(orders, stores):
    def stored():
        return {key.decode() for key in stores.client.keys("forestall:table:*") if stores.client.ttl(key) < 0}

    def versions():
        return [one["version"] for one in orders.get("/v1/tables/customers").json()["versions"]]

    def age(*numbers, name="customers"):
        """Let versions be older than the entries of the log."""
        for number in numbers:
            field = f"{number}@{name}"
            record = json.loads(stores.client.hget("forestall:table-versions", field))
            record["since_ms"] -= 3_600_000
            stores.client.hset("forestall:table-versions", field, json.dumps(record))

    put(orders)
    orders.put("/v1/tables/customers/rows?key=c1", json={"limit": 9})
    put(orders, CSV + "c3,1,\n")
    put(orders, CSV + "c4,1,\n")
    assert (versions(), len(stored())) == ([3, 2, 1], 3)  # the log may be read again from its beginning
    age(1, 2)
    put(orders, name="others")  # the content of version 1 has another user
    assert (versions(), len(stored())) == ([3, 2], 3)
    assert stores.client.keys("forestall:table-changes:*") == []
    age(3)
    put(orders, CSV + "c5,1,\n")
    assert (versions(), len(stored())) == ([4, 3], 3)
    orders.delete("/v1/tables/customers")
    age(4)
    put(orders, name="third")
    assert len(stored()) == 1
    orders.delete("/v1/tables/others")
    age(1, name="others")
    age(1, name="third")
    for _ in range(2):
        put(orders, name="third")
    assert replayed_current(stores, "third") == 2
    assert [key for key, _ in stores.client.hscan_iter("forestall:table-versions")] == [b"1@third"]


def replayed_current(stores, name):
    """The number of rows of a table that is read from Redis."""
    record = stores.tables.get(name)
    return len(Tables(TableFiles(fetching(stores.client.lindex))).with_version(record.table).rows(name))


def test_a_column_with_two_types_is_refused(orders):
    answer = put(orders, column=["limit:text", "limit:number"])
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "query.column: the column 'limit' has two types; name one",
    )
