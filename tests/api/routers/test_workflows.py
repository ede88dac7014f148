import orjson
import pytest

from tests.builders.api import tag

pytestmark = pytest.mark.redis

YAML = {"content-type": "application/yaml"}
XML = {"content-type": "application/xml"}
ORDER = """\
name: Orders
tree:
  sequence:
    - Receive
    - xor:
        - sequence: [Check, Ship]
        - Reject
    - Z
"""
LONGER = ORDER.replace("[Check, Ship]", "[Check, Pay, Ship]")
WIDE = {"tree": {"and": [f"A{number}" for number in range(9)]}}
BPMN = """\
<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">
  <process id="order">
    <startEvent id="start"/>
    <task id="receive" name="Receive Order"/>
    <task id="close" name="Close"/>
    <endEvent id="end"/>
    <sequenceFlow id="f1" sourceRef="start" targetRef="receive"/>
    <sequenceFlow id="f2" sourceRef="receive" targetRef="close"/>
    <sequenceFlow id="f3" sourceRef="close" targetRef="end"/>
  </process>
</definitions>
"""


def put(http, text=ORDER, query="", name="order", headers=YAML):
    return http.put(f"/v1/workflows/{name}{query}", content=text, headers=headers)


def test_a_model_is_uploaded_looked_up_and_listed(orders):
    answer = put(orders)
    assert (answer.status_code, answer.headers["etag"]) == (201, '"order@1"')
    shown = answer.json()
    assert (shown["name"], shown["version"], shown["title"], shown["format"]) == ("order", 1, "Orders", "tree")
    assert shown["event_types"] == ["Check", "Receive", "Reject", "Ship", "Z"]
    assert (shown["end_events"], shown["method"], shown["streams"]) == (["Z"], "compositional", [])
    assert shown["automaton"] == {"state_count": 5, "letter_count": 5}
    assert shown["without_automaton"] is None
    assert shown["constraint_counts"]["exclusive"] == 2
    assert shown["size_bytes"] == len(ORDER)
    assert orders.get("/v1/workflows/order").json() == shown
    assert tag(orders.get("/v1/workflows/order")) == '"order@1"'
    assert orders.get("/v1/workflows").json()["items"] == [shown]


def test_the_same_again_is_200_and_another_the_next_version(orders):
    put(orders)
    again = put(orders)
    assert (again.status_code, again.json()["version"], again.headers["etag"]) == (200, 1, '"order@1"')
    other = put(orders, LONGER)
    assert (other.status_code, other.json()["version"]) == (201, 2)
    newest, oldest = orders.get("/v1/workflows/order/versions").json()["items"]
    assert (newest["version"], oldest["version"]) == (2, 1)
    assert "Pay" in newest["event_types"]
    one = orders.get("/v1/workflows/order/versions/1")
    assert (one.json(), tag(one)) == (oldest, '"order@1"')


def test_the_source_comes_back_byte_by_byte_and_harmless(orders):
    put(orders)
    answer = orders.get("/v1/workflows/order/versions/1/source")
    assert (answer.text, answer.headers["content-type"].partition(";")[0]) == (ORDER, "application/yaml")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


def test_a_tree_may_be_json(orders):
    document = {"name": "J", "tree": {"sequence": ["A", "B"]}}
    assert orders.put("/v1/workflows/j", json=document).json()["event_types"] == ["A", "B"]
    envelope = {"content": document, "format": "tree"}
    assert orders.put("/v1/workflows/j", json=envelope).status_code == 200


def test_an_envelope_holds_model_and_options(orders):
    envelope = {"format": "tree", "content": ORDER, "mapping": {"Check": None, "Ship": "Shipped"}, "stream": "orders"}
    shown = orders.put("/v1/workflows/order", json={**envelope, "mode": "tables"}).json()
    assert shown["event_types"] == ["Receive", "Reject", "Shipped", "Z"]
    assert shown["mapping"] == {"Check": None, "Ship": "Shipped"}
    (stream,) = shown["streams"]
    assert (stream["stream"], stream["mode"], stream["used"]) == ("orders", "tables", "tables")
    source = orders.get("/v1/workflows/order/versions/1/source")
    assert (source.text, source.headers["content-type"].partition(";")[0]) == (ORDER, "application/yaml")


def test_options_of_a_file_are_in_the_query(orders):
    shown = put(orders, query="?stream=orders&mode=exact&map=Check=&map=Ship=Shipped").json()
    assert shown["mapping"] == {"Check": None, "Ship": "Shipped"}
    assert shown["streams"][0]["used"] == "exact"


@pytest.mark.parametrize("kind", ["application/xml", "application/bpmn+xml", "text/xml"])
def test_a_model_may_be_bpmn(orders, kind):
    shown = put(orders, BPMN, "?map=close=Z", headers={"content-type": kind}).json()
    assert (shown["format"], shown["event_types"], shown["end_events"]) == ("bpmn", ["Receive Order", "Z"], ["Z"])
    envelope = {"content": BPMN, "mapping": {"close": "Z"}, "process": "order"}
    assert orders.put("/v1/workflows/other", json=envelope).json()["format"] == "bpmn"
    source = orders.get("/v1/workflows/other/versions/1/source")
    assert source.headers["content-type"].partition(";")[0] == "application/xml"


@pytest.mark.parametrize("query", ["?map=Check", "?map==X", "?mode=loose"])
def test_wrong_options_are_refused(orders, check_problem, query):
    check_problem(put(orders, query=query), 422, "wrong-shape")


def test_options_beside_an_envelope_are_refused_and_not_passed_over(orders, check_problem):
    refused = orders.put("/v1/workflows/order?stream=orders&map=Check=", json={"content": ORDER})
    detail = check_problem(refused, 422, "wrong-shape")["detail"]
    assert detail == "query: with a JSON body that has content, these belong into the body: mapping, stream"
    assert orders.put("/v1/workflows/order?stream=orders", json=WIDE).json()["streams"]


@pytest.mark.parametrize(
    ("envelope", "where"),
    [
        ({"content": 3}, "body.content"),
        ({"content": "", "mode": "loose"}, "body.mode"),
        ({"content": "", "mapping": {"a": 1}}, "body.mapping.a"),
        ({"content": "", "odd": 1}, "body.odd"),
    ],
)
def test_a_wrong_envelope_is_refused_with_its_place(orders, check_problem, envelope, where):
    body = check_problem(orders.put("/v1/workflows/order", json=envelope), 422, "wrong-shape")
    assert any(fault["where"].startswith(where) for fault in body["errors"])


def test_a_refused_model_is_told_with_its_elements(orders, check_problem):
    text = BPMN.replace('targetRef="close"', 'targetRef="nowhere"')
    body = check_problem(put(orders, text, headers=XML), 422, "model-refused")
    assert body["problems"]
    assert all(set(problem) == {"element", "message"} for problem in body["problems"])
    check_problem(put(orders, "tree: {sequenze: [A]}"), 422, "model-refused")
    check_problem(orders.get("/v1/workflows/order"), 404, "unknown-workflow")


@pytest.mark.parametrize(
    "text", ["", "x" * 1000, "<a>", "\x00\x01", "tree: 1", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"]
)
@pytest.mark.parametrize("headers", [XML, YAML])
def test_garbage_is_refused(orders, check_problem, text, headers):
    check_problem(put(orders, text, headers=headers), 422, "model-refused")


def test_an_unsound_model_is_refused(orders, check_problem):
    text = BPMN.replace('<sequenceFlow id="f3" sourceRef="close" targetRef="end"/>', "").replace(
        "</process>", '<sequenceFlow id="f4" sourceRef="close" targetRef="receive"/></process>'
    )
    answer = put(orders, text, headers=XML)
    assert answer.json()["code"] in ("unsound-workflow", "model-refused")
    check_problem(answer, 422, answer.json()["code"])


def test_a_damaged_json_body_is_malformed(orders, check_problem):
    headers = {"content-type": "application/json"}
    check_problem(put(orders, '{"content": ', headers=headers), 400, "malformed-body")


def test_other_media_types_are_not_read(orders, check_problem):
    check_problem(put(orders, headers={"content-type": "text/plain"}), 415, "unsupported-media-type")


def test_a_large_model_and_a_large_body_are_413(orders, check_problem, settings):
    limit = settings.limits.max_model_bytes
    text = ORDER + "#" * limit
    assert limit < len(text) < settings.limits.max_body_bytes
    check_problem(put(orders, text), 413, "model-too-large")
    check_problem(put(orders, ORDER + "#" * settings.limits.max_body_bytes), 413, "body-too-large")


def test_names_are_checked(orders, check_problem):
    check_problem(put(orders, name="a b"), 400, "workflow-name")


def test_exact_is_refused_beyond_the_cap_only_where_it_is_asked_for(orders, check_problem):
    envelope = {"content": WIDE, "stream": "orders"}
    check_problem(orders.put("/v1/workflows/w", json={**envelope, "mode": "exact"}), 422, "automaton-too-large")
    check_problem(orders.get("/v1/workflows/w"), 404, "unknown-workflow")
    shown = orders.put("/v1/workflows/w", json=envelope).json()
    assert (shown["automaton"], shown["streams"][0]["used"]) == (None, "tables")
    assert shown["without_automaton"]
    follow = {"workflow": "w", "mode": "exact"}
    check_problem(orders.put("/v1/streams/orders/workflow", json=follow), 422, "automaton-too-large")


def test_constraints_are_listed_with_their_provenance(orders, check_problem):
    put(orders)
    full = orders.get("/v1/workflows/order/constraints?full=true").json()
    cover = orders.get("/v1/workflows/order/constraints").json()
    assert full["total"] == len(full["items"]) > full["cover"] == len(cover["items"])
    assert all(item["in_cover"] for item in cover["items"])
    assert (full["workflow"], full["version"], full["end_events"]) == ("order", 1, ["Z"])
    exclusive = orders.get("/v1/workflows/order/constraints?full=true&kind=exclusive").json()["items"]
    assert [item["constraint"] for item in exclusive] == ["exclusive(Check, Reject)", "exclusive(Reject, Ship)"]
    assert exclusive[0]["names"] == ["Check", "Reject"]
    assert "xor" in exclusive[0]["derived_from"]
    two = orders.get("/v1/workflows/order/constraints?full=true&kind=exclusive&kind=require").json()["items"]
    assert {item["kind"] for item in two} == {"exclusive", "require"}
    check_problem(orders.get("/v1/workflows/order/constraints?kind=exclusiv"), 422, "wrong-shape")
    put(orders, LONGER)
    first = orders.get("/v1/workflows/order/constraints?full=true&version=1").json()
    assert first == full


def test_versions_are_compared(orders, check_problem):
    put(orders)
    put(orders, LONGER)
    found = orders.get("/v1/workflows/order/diff?from=1&to=2").json()
    assert (found["from_version"], found["to_version"], found["same_language"]) == (1, 2, False)
    assert (found["added_event_types"], found["removed_event_types"]) == (["Pay"], [])
    assert (found["added_end_events"], found["removed_end_events"]) == ([], [])
    assert "prior(Pay, Ship)" in found["changes_by_kind"]["prior"]["added_constraints"]
    assert found["changes_by_kind"]["prior"]["removed_constraints"] == []
    same = orders.get("/v1/workflows/order/diff?from=1&to=1").json()
    assert (same["same_language"], same["changes_by_kind"]) == (True, {})
    check_problem(orders.get("/v1/workflows/order/diff?from=1&to=3"), 404, "unknown-workflow")
    check_problem(orders.get("/v1/workflows/order/diff?from=1"), 422, "wrong-shape")


def test_traces_are_checked(orders, check_problem):
    put(orders)
    body = {"trace": ["Receive", "Reject", "Z"], "traces": [[{"type": "Receive", "id": "e1"}, "Ship"], []]}
    found = orders.post("/v1/workflows/order/conformance", json=body).json()
    assert (found["workflow"], found["version"]) == ("order", 1)
    whole, gone, none = found["items"]
    assert (whole["conforms"], whole["is_complete"]) == (True, True)
    assert (gone["index"], gone["event"], gone["allowed"]) == (1, "Ship", ["Check", "Reject"])
    assert (none["is_complete"], none["still_allowed"]) == (False, ["Receive"])
    check_problem(orders.post("/v1/workflows/order/conformance", json={"trace": ["A"] * 51}), 413, "batch-too-large")
    check_problem(orders.post("/v1/workflows/order/conformance", json={"trace": [3]}), 422, "wrong-shape")
    check_problem(orders.post("/v1/workflows/order/conformance?version=2", json={"trace": []}), 404, "unknown-workflow")
    nothing = check_problem(orders.post("/v1/workflows/order/conformance", json={}), 422, "wrong-shape")
    assert "give 'trace'" in nothing["detail"]


def test_a_picture_cannot_do_harm(orders, check_problem):
    put(orders)
    answer = orders.get("/v1/workflows/order/picture.svg?highlight=Check&highlight=Ship")
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "image/svg+xml")
    assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.startswith("<svg") or answer.text.startswith("<?xml")
    assert "<script" not in answer.text
    assert answer.text != orders.get("/v1/workflows/order/picture.svg").text
    check_problem(orders.get("/v1/workflows/order/picture.svg?trace=k&highlight=Check"), 422, "wrong-shape")
    check_problem(orders.get("/v1/workflows/order/picture.svg?trace=k"), 400, "stream-missing")
    orders.put("/v1/streams/orders/workflow", json={"workflow": "order"})
    check_problem(orders.get("/v1/workflows/order/picture.svg?trace=k"), 404, "unknown-trace")
    events = [{"id": "e1", "type": "Check", "time": 1, "data": {"id": "k"}}]
    assert orders.post("/v1/events?stream=orders", json=events).status_code == 202
    traced = orders.get("/v1/workflows/order/picture.svg?trace=k")
    assert traced.status_code == 200
    assert traced.text not in (answer.text, orders.get("/v1/workflows/order/picture.svg").text)


def test_a_stream_follows_and_stops_following(orders, check_problem):
    check_problem(orders.get("/v1/streams/orders/workflow"), 404, "not-following")
    check_problem(orders.delete("/v1/streams/orders/workflow"), 404, "not-following")
    follow = {"workflow": "order"}
    check_problem(orders.put("/v1/streams/orders/workflow", json=follow), 404, "unknown-workflow")
    orders.post("/v1/constraints?stream=orders", json=["exclusive(Check, Note)"])
    put(orders)
    check_problem(orders.put("/v1/streams/nowhere/workflow", json=follow), 404, "unknown-stream")
    check_problem(orders.put("/v1/streams/orders/workflow", json={}), 422, "wrong-shape")
    answer = orders.put("/v1/streams/orders/workflow", json={"workflow": "order", "mode": "exact"})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["workflow"], shown["version"], shown["mode"]) == ("order", 1, "exact")
    constraints = shown["constraint_set"]
    assert (constraints["stream"], constraints["version"]) == ("orders", 2)
    said = constraints["followed_workflow"]
    assert (said["name"], said["version"], said["used"], said["state_count"]) == ("order", 1, "exact", 5)
    assert "exclusive(Check, Note)" in constraints["constraints"]
    assert "exclusive(Check, Note)" not in said["derived_constraints"]
    assert set(said["derived_constraints"]) | {"exclusive(Check, Note)"} == set(constraints["constraints"])
    assert (said["derived_end_events"], constraints["end_events"]) == ([], ["Z"])
    assert orders.get("/v1/streams/orders/workflow").json() == shown
    assert orders.get("/v1/constraints/orders").json() == constraints
    newest = orders.get("/v1/constraints/orders/versions/2").json()
    assert newest["followed_workflow"] == said
    assert orders.delete("/v1/streams/orders/workflow").status_code == 204
    after = orders.get("/v1/constraints/orders").json()
    assert (after["constraints"], after["followed_workflow"], after["version"]) == (["exclusive(Check, Note)"], None, 3)


def test_a_followed_workflow_cannot_be_deleted(orders, check_problem):
    put(orders, query="?stream=orders")
    assert check_problem(orders.delete("/v1/workflows/order"), 409, "workflow-followed")["streams"] == ["orders"]
    orders.delete("/v1/streams/orders/workflow")
    assert orders.delete("/v1/workflows/order").status_code == 204
    check_problem(orders.delete("/v1/workflows/order"), 404, "unknown-workflow")
    for path in ("", "/versions", "/versions/1", "/versions/1/source", "/constraints", "/diff?from=1&to=1"):
        check_problem(orders.get(f"/v1/workflows/order{path}"), 404, "unknown-workflow")
    check_problem(orders.get("/v1/workflows/order/picture.svg"), 404, "unknown-workflow")
    assert orders.get("/v1/workflows").json() == {"items": [], "next": None}
    assert put(orders).json()["version"] == 2


def test_a_new_version_reaches_the_streams_that_follow(orders):
    put(orders, query="?stream=orders")
    (stream,) = put(orders, LONGER).json()["streams"]
    assert (stream["version"], stream["constraints_version"], stream["notices"]) == (2, 2, [])


def test_patterns_know_the_workflow(orders, check_problem):
    put(orders, query="?stream=orders")
    wrong = {"stream": "orders", "text": "PATTERN p EVENT SEQ(Ship s, Check c)"}
    check_problem(orders.post("/v1/patterns", json=wrong), 409, "unsatisfiable-pattern")
    right = {"stream": "orders", "text": "PATTERN q EVENT SEQ(Check c, Ship s)"}
    assert orders.post("/v1/patterns", json=right).status_code == 201
    assert orders.get("/v1/patterns/q").status_code == 200
    assert orders.get("/v1/constraints/orders/analysis").status_code == 200


def test_a_workflow_in_a_hand_written_document_is_refused(orders, check_problem):
    put(orders, query="?stream=orders")
    document = {"workflow": {"name": "x", "version": 1, "constraints": [], "end": []}}
    check_problem(orders.post("/v1/constraints?stream=orders", json=document), 400, "workflow-in-document")


def test_examples_of_the_description_are_accepted(orders):
    document = orders.get("/openapi.json").json()
    path = document["paths"]["/v1/workflows/{name}"]["put"]["requestBody"]["content"]
    for number, (kind, content) in enumerate(path.items()):
        example = content["example"]
        body = orjson.dumps(example) if kind == "application/json" else example
        assert put(orders, body, name=f"w{number}", headers={"content-type": kind}).status_code == 201
    for name in ("ConformanceRequest", "FollowRequest"):
        assert document["components"]["schemas"][name]["examples"]
    for example in document["components"]["schemas"]["ConformanceRequest"]["examples"]:
        assert orders.post("/v1/workflows/w0/conformance", json=example).status_code == 200
