import pytest

pytestmark = pytest.mark.redis

TEXT = "PATTERN p EVENT SEQ(A a, B b)"
DEFINITION = {
    "name": "p",
    "event": {
        "op": "seq",
        "items": [{"of": {"op": "atom", "types": [name], "alias": name.lower()}} for name in "AB"],
    },
}


def register(http, text=TEXT, stream="orders"):
    return http.post("/v1/patterns", json={"stream": stream, "text": text})


def test_a_pattern_is_registered_and_shown(orders):
    answer = register(orders)
    assert answer.status_code == 201
    shown = answer.json()
    assert shown == {
        "name": "p",
        "stream": "orders",
        "version": 1,
        "text": TEXT,
        "constraints": "on",
        "severity": "medium",
        "state": "active",
        "suspension": None,
        "route": None,
        "into": None,
        "suppress": None,
        "incident": None,
        "resolves": None,
        "created_at": "2026-01-01T00:00:00.000000Z",
        "definition": DEFINITION,
        "warnings": [],
        "skipped": None,
    }
    (listed,) = orders.get("/v1/patterns").json()["items"]
    assert {**listed, "definition": DEFINITION, "warnings": [], "skipped": None} == shown
    assert orders.post("/v1/streams", json={"name": "other"}).status_code == 201
    assert orders.get("/v1/patterns?stream=other").json() == {"items": [], "next": None}


def test_the_json_form_gives_both_forms_and_is_the_same_version(orders):
    answer = orders.post("/v1/patterns", json={"stream": "orders", "definition": DEFINITION})
    assert answer.status_code == 201
    assert (answer.json()["text"], answer.json()["definition"]) == ("PATTERN p\nEVENT SEQ(A a, B b)", DEFINITION)
    again = register(orders, answer.json()["text"])
    assert (again.status_code, again.json()["version"]) == (200, 1)
    assert orders.get("/v1/patterns/p").json()["definition"] == DEFINITION


SQL = """PATTERN p MATCH_RECOGNIZE (
  PARTITION BY key ORDER BY time PATTERN (A B{x}) DEFINE A AS type = 'A', B AS type = 'B')"""


def test_a_pattern_may_be_given_as_sql(orders):
    answer = register(orders, SQL.replace("{x}", ""))
    assert (answer.status_code, answer.json()["text"]) == (201, SQL.replace("{x}", ""))
    own = register(orders, "PATTERN q EVENT SEQ(A A, B B) WHERE [key] SELECT STRICT SKIP PAST LAST").json()
    assert answer.json()["definition"] == {**own["definition"], "name": "p"}


def test_sql_that_is_no_pattern_of_a_stream_is_refused_with_its_place(orders, check_problem):
    body = check_problem(register(orders, SQL.replace("{x}", "+")), 400, "pattern-refused")
    assert (body["reason"], body["line"], body["column"]) == ("stream-sql", 2, 34)


def test_an_odd_json_form_is_refused_with_its_place(orders, check_problem):
    odd = {"name": "p", "event": {"op": "seq", "items": [{"of": {"op": "atom", "alias": "a"}}]}}
    answer = orders.post("/v1/patterns", json={"stream": "orders", "definition": odd})
    body = check_problem(answer, 400, "pattern-refused")
    assert body["reason"] == "json"
    assert "items[0]" in body["detail"] or "items.0" in body["detail"] or "items/0" in body["detail"]


@pytest.mark.parametrize("forms", [{}, {"text": TEXT, "definition": DEFINITION}])
def test_a_pattern_is_sent_in_one_form(orders, check_problem, forms):
    body = check_problem(orders.post("/v1/patterns", json={"stream": "orders", **forms}), 422, "wrong-shape")
    assert "either 'text' or 'definition'" in body["detail"]


def test_what_is_probably_not_meant_is_warned_of(orders):
    (warning,) = register(orders, f"{TEXT} WHERE a.v > 1").json()["warnings"]
    assert warning.startswith("line 1, column 37: a.v > 1 is about the step a alone")


def test_a_pattern_that_waits_for_the_end_needs_one(orders, check_problem):
    assert orders.post("/v1/streams", json={"name": "endless"}).status_code == 201
    body = check_problem(register(orders, "PATTERN p EVENT SEQ(A a, NOT B)", "endless"), 400, "pattern-refused")
    assert (body["reason"], body["line"], body["column"]) == ("needs-end", 1, 26)
    assert register(orders, "PATTERN p EVENT SEQ(A a, NOT B)").status_code == 201


def test_the_schema_of_the_json_form_is_served(orders):
    answer = orders.get("/v1/schemas/pattern")
    assert answer.headers["content-type"] == "application/schema+json"
    assert answer.json()["title"] == "Pattern"


def test_the_schema_of_documents_is_served(orders):
    answer = orders.get("/v1/schemas/project")
    assert answer.headers["content-type"] == "application/schema+json"
    assert set(answer.json()["properties"]["kind"]["enum"]) >= {"stream", "pattern", "webhook"}


def test_its_failing_conditions_are_told_in_words(orders):
    orders.post("/v1/constraints?stream=orders", json=["exclusive(B, C)"])
    register(orders)
    conditions = orders.get("/v1/patterns/p").json()["failing_conditions"]
    assert {
        "event": "C",
        "bound": ["A a"],
        "symbols": [],
        "required_before": [],
        "form": "p2",
        "constraints": ["exclusive(B, C)"],
        "atoms": ["B b"],
        "forbidden": [],
        "is_takable": False,
        "text": "with A a bound, C ends the partial match: exclusive(B, C) means that B b can no longer come",
    } in conditions


def test_what_the_constraints_mean_for_it_is_told_state_by_state(orders):
    document = {
        "constraints": ["exclusive(B, C)", "exclusive(B, D)", "exclusive(X, Y)"],
        "settings": {"frequencies": {"C": 0.25, "D": 0.0}},
    }
    orders.post("/v1/constraints?stream=orders", json=document)
    register(orders, "PATTERN p EVENT SEQ(A a, OR(B b, SEQ(X x, Y y)))")
    shown = orders.get("/v1/patterns/p").json()
    (dead,) = shown["dead_alternatives"]
    assert (dead["alternative"], dead["constraints"]) == (2, ["exclusive(X, Y)"])
    (state,) = [found for found in shown["states"] if (found["alternative"], found["bound"]) == (1, ["A a"])]
    assert state["earliest"]["event"] == "Z"
    assert {"C", "D"} <= {found["event"] for found in shown["failing_conditions"] if found["bound"] == ["A a"]}
    assert "C (25%)" in state["text"]
    assert (shown["ending_summary"]["total"], shown["ending_summary"]["reasons"]) == (0, [])


def test_the_same_text_is_the_same_version(orders):
    register(orders)
    again = register(orders)
    assert (again.status_code, again.json()["version"]) == (200, 1)
    wanted = {"stream": "orders", "text": TEXT + " -- more"}
    assert orders.put("/v1/patterns/p", json=wanted).json()["version"] == 2


def test_an_unparsable_pattern_is_refused_with_its_place(orders, check_problem):
    body = check_problem(register(orders, "PATTERN p EVENT\n SEQ(A a"), 400, "pattern-refused")
    assert (body["reason"], body["line"]) == ("syntax", 2)
    assert "column" in body


def test_an_impossible_pattern_is_refused_with_the_reason(orders, check_problem):
    orders.post("/v1/constraints?stream=orders", json=["exclusive(A, B)"])
    body = check_problem(register(orders), 409, "unsatisfiable-pattern")
    assert body["terms"][0]["constraints"] == ["exclusive(A, B)"]
    assert orders.get("/v1/patterns").json() == {"items": [], "next": None}


def test_a_pattern_that_only_a_not_makes_impossible_may_be_meant(orders, check_problem):
    orders.post("/v1/constraints?stream=orders", json=["require(A, B)", "prior(A, B)"])
    text = "PATTERN unanswered EVENT SEQ(A a, NOT B)"
    body = check_problem(register(orders, text), 409, "unsatisfiable-pattern")
    assert "register it with constraints: off" in body["detail"]
    assert body["is_violation"] is True
    answer = orders.post("/v1/patterns", json={"stream": "orders", "text": text, "constraints": "off"})
    assert (answer.status_code, answer.json()["constraints"]) == (201, "off")
    shown = orders.get("/v1/patterns/unanswered").json()
    assert (shown["constraints"], shown["failing_conditions"]) == ("off", [])
    again = orders.post("/v1/constraints?stream=orders", json=["require(A, B)", "prior(A, B)", "exclusive(A, C)"])
    assert again.json()["warnings"] == []


def test_what_an_order_makes_impossible_is_not_said_to_look_for_a_violation(orders, check_problem):
    orders.post("/v1/constraints?stream=orders", json=["exclusive(A, B)"])
    body = check_problem(register(orders, "PATTERN p EVENT SEQ(A a, B b, NOT C)"), 409, "unsatisfiable-pattern")
    assert "constraints: off" not in body["detail"]


def test_the_switch_makes_another_version(orders, check_problem):
    assert register(orders).json()["version"] == 1
    off = orders.put("/v1/patterns/p", json={"stream": "orders", "text": TEXT, "constraints": "off"})
    assert (off.status_code, off.json()["version"]) == (200, 2)
    maybe = orders.post("/v1/patterns", json={"stream": "orders", "text": TEXT, "constraints": "maybe"})
    check_problem(maybe, 422, "wrong-shape")


def test_a_not_on_finer_traces_does_not_look_at_the_whole_of_them(orders):
    orders.post("/v1/constraints?stream=orders", json=["require(A, B)", "prior(A, B)"])
    assert register(orders, "PATTERN p EVENT SEQ(A a, NOT B) WHERE [key, part]").status_code == 201


def test_another_key_is_refused(orders, check_problem):
    body = check_problem(register(orders, TEXT + " WHERE [customer]"), 400, "pattern-key")
    assert body["key"] == "data.id"
    assert "write [key, customer] for finer traces" in body["detail"]


def test_a_pattern_needs_its_stream(orders, check_problem):
    check_problem(register(orders, stream="nowhere"), 404, "unknown-stream")


def test_a_long_pattern_is_a_413(orders, check_problem):
    check_problem(register(orders, TEXT + " " * 500), 413, "pattern-too-long")


def test_a_name_belongs_to_one_stream(orders, check_problem):
    register(orders)
    orders.post("/v1/streams", json={"name": "other"})
    check_problem(register(orders, stream="other"), 409, "pattern-on-other-stream")


def test_a_deleted_pattern_is_gone(orders, check_problem):
    register(orders)
    answer = orders.delete("/v1/patterns/p")
    assert (answer.status_code, answer.content) == (204, b"")
    check_problem(orders.get("/v1/patterns/p"), 404, "unknown-pattern")
    check_problem(orders.delete("/v1/patterns/p"), 404, "unknown-pattern")


def test_malformed_json_is_told_with_its_place(orders, check_problem):
    headers = {"content-type": "application/json"}
    answer = orders.post("/v1/patterns", content='{"stream": "orders",\n  "text" 3}', headers=headers)
    body = check_problem(answer, 400, "malformed-body")
    assert (body["line"], body["column"]) == (2, 10)


def test_json_must_say_that_it_is_json(orders, check_problem):
    answer = orders.post("/v1/patterns", content="{}", headers={"content-type": "text/plain"})
    check_problem(answer, 415, "unsupported-media-type")


def test_a_pattern_is_paused_and_resumed(orders):
    register(orders)
    paused = orders.post("/v1/patterns/p/pause")
    assert (paused.status_code, paused.json()["state"], paused.json()["version"]) == (200, "paused", 1)
    assert orders.post("/v1/patterns/p/pause").json() == paused.json()
    assert orders.get("/v1/patterns/p").json()["state"] == "paused"
    assert [one["state"] for one in orders.get("/v1/patterns").json()["items"]] == ["paused"]
    again = register(orders)
    assert (again.status_code, again.json()["state"]) == (200, "paused")
    resumed = orders.post("/v1/patterns/p/resume")
    assert (resumed.json()["state"], resumed.json()["version"]) == ("active", 1)


def test_only_a_known_pattern_is_paused(orders, check_problem):
    for action in ("pause", "resume"):
        check_problem(orders.post(f"/v1/patterns/p/{action}"), 404, "unknown-pattern")


def test_a_version_may_migrate(orders, stores):
    register(orders)
    wanted = {"stream": "orders", "text": f"{TEXT} WITHIN 1 h", "start": "migrate"}
    answer = orders.post("/v1/patterns", json=wanted, headers={"If-Match": "*"})
    assert (answer.status_code, answer.json()["version"]) == (200, 2)
    assert b'"start":"migrate"' in list(stores.log.read_range(0))[-1].body


def test_a_pattern_is_matched_by_a_further_key(http, check_problem):
    shop = {"name": "shop", "key": "data.order", "keys": {"customer": "data.customer_id"}}
    assert http.post("/v1/streams", json=shop).json()["keys"] == {"customer": "data.customer_id"}
    answer = register(http, f"{TEXT} WHERE [customer_id]", "shop")
    assert (answer.status_code, answer.json()["route"]) == (201, "customer")
    assert "whose traces have no end and no constraints" in answer.json()["warnings"][-1]
    body = check_problem(register(http, "PATTERN q EVENT A a WHERE [region]", "shop"), 400, "pattern-key")
    assert "[customer_id] for those of customer" in body["detail"]
    moved = {"stream": "shop", "text": TEXT, "start": "migrate"}
    check_problem(http.put("/v1/patterns/p", json=moved), 409, "migration-refused")


def test_a_pattern_is_put_and_a_post_replaces_none(orders, check_problem):
    wanted = {"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)"}
    created = orders.put("/v1/patterns/p", json=wanted)
    assert (created.status_code, created.json()["version"]) == (201, 1)
    again = orders.put("/v1/patterns/p", json=wanted)
    assert (again.status_code, again.json()) == (200, created.json())
    other = {**wanted, "text": "PATTERN p EVENT SEQ(A a, C c)"}
    check_problem(orders.put("/v1/patterns/p", json=other, headers={"If-None-Match": "*"}), 412, "precondition-failed")
    changed = orders.put("/v1/patterns/p", json=other)
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    where = check_problem(orders.put("/v1/patterns/q", json=other), 422, "wrong-shape")["errors"][0]["where"]
    assert where == "path.name"
    copied = check_problem(orders.post("/v1/patterns", json=wanted), 409, "operator-exists")
    assert (copied["name"], copied["version"], "PUT /v1/patterns/p" in copied["detail"]) == ("p", 2, True)
    graded = check_problem(orders.post("/v1/patterns", json={**other, "severity": "high"}), 409, "operator-exists")
    assert graded["version"] == 2
    assert orders.post("/v1/patterns", json=other).status_code == 200
    known = {"If-Match": changed.headers["etag"]}
    replaced = orders.post("/v1/patterns", json=wanted, headers=known)
    assert (replaced.status_code, replaced.json()["version"]) == (200, 3)


def test_the_severity_is_changed_without_another_version_and_is_no_leftover(orders, check_problem):
    wanted = {"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)", "severity": "high"}
    first = orders.post("/v1/patterns", json=wanted)
    graded = orders.patch("/v1/patterns/p", json={"severity": "low"}, headers={"If-Match": first.headers["etag"]})
    assert (graded.status_code, graded.json()["severity"], graded.json()["version"]) == (200, "low", 1)
    stale = orders.patch("/v1/patterns/p", json={"severity": "high"}, headers={"If-Match": first.headers["etag"]})
    check_problem(stale, 412, "precondition-failed")
    check_problem(orders.patch("/v1/patterns/q", json={"severity": "high"}), 404, "unknown-pattern")
    check_problem(orders.patch("/v1/patterns/p", json={}), 422, "wrong-shape")
    del wanted["severity"]
    put = orders.put("/v1/patterns/p", json=wanted).json()
    assert (put["severity"], put["version"]) == ("medium", 1)
    orders.patch("/v1/patterns/p", json={"severity": "critical"})
    orders.delete("/v1/patterns/p")
    assert orders.post("/v1/patterns", json=wanted).json()["severity"] == "medium"


def test_a_pattern_that_comes_after_a_deleted_one_of_its_name_is_created(orders):
    wanted = {"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)"}
    orders.put("/v1/patterns/p", json=wanted)
    orders.delete("/v1/patterns/p")
    again = orders.post("/v1/patterns", json=wanted)
    assert (again.status_code, "deprecation" in again.headers) == (201, False)
    orders.delete("/v1/patterns/p")
    assert orders.put("/v1/patterns/p", json=wanted).status_code == 201


def test_a_restricted_key_puts_patterns_of_its_stream(orders, holder, check_problem):
    orders.post("/v1/streams", json={"name": "payments", "key": "data.id"})
    orders.post("/v1/patterns", json={"stream": "payments", "text": "PATTERN theirs EVENT SEQ(A a, B b)"})
    clerk = holder("patterns", streams=["orders"])
    assert clerk.put("/v1/patterns/p", json={"stream": "orders", "text": "PATTERN p EVENT A a"}).status_code == 201
    answer = clerk.put("/v1/patterns/x", json={"stream": "payments", "text": "PATTERN x EVENT A a"})
    check_problem(answer, 403, "forbidden")
    answer = clerk.put("/v1/patterns/theirs", json={"stream": "orders", "text": "PATTERN theirs EVENT A a"})
    check_problem(answer, 404, "unknown-pattern")
