import orjson
import pytest

pytestmark = pytest.mark.redis

YAML = {"content-type": "application/yaml"}
PATTERN = "PATTERN p EVENT SEQ(A a, B b)"


def test_constraints_come_as_json_and_are_shown_in_words(orders):
    body = {"stream": "orders", "constraints": ["exclusive(A, C)", {"prior": ["A", "B"]}], "end": ["Y"]}
    answer = orders.post("/v1/constraints", json=body)
    assert answer.status_code == 201
    shown = answer.json()
    assert (shown["stream"], shown["version"], shown["end_events"]) == ("orders", 1, ["Y", "Z"])
    assert shown["constraints"] == ["exclusive(A, C)", "prior(A, B)"]
    assert len(shown["notices"]) == 1
    assert orders.get("/v1/constraints/orders").json() == shown
    (listed,) = orders.get("/v1/constraints").json()["items"]
    assert (listed["stream"], listed["version"]) == ("orders", 1)


def test_rules_symbols_and_settings_are_shown(orders):
    text = """
stream: orders
constraints:
  - response(A, B)
  - prior: ["Q [price > 1000]", C]
settings: {prune: shadow, on_violation: ignore, frequencies: {A: 0.2}, max_monitor_states: 99}
"""
    shown = orders.post("/v1/constraints", content=text, headers=YAML).json()
    assert "response(A, B)" in shown["rules"]
    assert shown["symbols"] == ["Q [price > 1000]"]
    assert shown["constraints"][-1] == "prior(Q [price > 1000], C)"
    assert shown["settings"] == {
        "prune": "shadow",
        "on_violation": "ignore",
        "unknown_types": "ignore",
        "completion": "assumed",
        "types": [],
        "frequencies": {"A": 0.2},
        "max_monitor_states": 99,
    }
    assert any("matches in them may be lost" in notice for notice in shown["notices"])
    assert orders.get("/v1/constraints/orders").json() == shown


def test_every_version_is_kept(orders, check_problem):
    check_problem(orders.get("/v1/constraints/orders/versions"), 404, "unknown-constraints")
    for document in (["exclusive(A, C)"], {"prior": [["A", "B"]], "settings": {"prune": "off"}}):
        orders.post("/v1/constraints?stream=orders", json=document)
    items = orders.get("/v1/constraints/orders/versions").json()["items"]
    assert [one.keys() for one in items] == [{"stream", "version", "created_at"}] * 2
    newest, oldest = (orders.get(f"/v1/constraints/orders/versions/{one['version']}").json() for one in items)
    check_problem(orders.get("/v1/constraints/orders/versions/3"), 404, "unknown-constraints")
    assert (newest["version"], newest["constraints"], newest["settings"]["prune"]) == (2, ["prior(A, B)"], "off")
    assert (oldest["version"], oldest["constraints"], oldest["end_events"]) == (1, ["exclusive(A, C)"], ["Z"])
    assert oldest["settings"]["prune"] == "state"


def test_constraints_are_removed_and_their_versions_stay(orders, check_problem):
    check_problem(orders.delete("/v1/constraints/orders"), 404, "unknown-constraints")
    first = orders.post("/v1/constraints", json={"stream": "orders", "constraints": ["exclusive(A, C)"]})
    check_problem(orders.delete("/v1/constraints/orders", headers={"If-Match": '"x"'}), 412, "precondition-failed")
    assert orders.delete("/v1/constraints/orders", headers={"If-Match": first.headers["etag"]}).status_code == 204
    shown = orders.get("/v1/constraints/orders").json()
    assert (shown["version"], shown["constraints"], shown["end_events"]) == (2, [], ["Z"])
    assert len(orders.get("/v1/constraints/orders/versions").json()["items"]) == 2


def test_the_analysis_tells_what_patterns_make_of_the_constraints(orders, check_problem):
    check_problem(orders.get("/v1/constraints/orders/analysis"), 404, "unknown-constraints")
    document = ["require(B, A)", "prior(A, B)", "exclusive(B, C)", "exclusive(X, Y)"]
    orders.post("/v1/constraints?stream=orders", json=document)
    orders.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, OR(B b, SEQ(X x, Y y)))"})
    for text, switch in (("PATTERN free EVENT SEQ(A a, B b)", "off"), ("PATTERN finer EVENT A WHERE [key, w]", "on")):
        orders.post("/v1/patterns", json={"stream": "orders", "text": text, "constraints": switch})
    shown = orders.get("/v1/constraints/orders/analysis").json()
    assert (shown["stream"], shown["version"]) == ("orders", 1)
    monitor = shown["monitor"]
    assert monitor["distinguishes"] == ["A", "B", "C", "X", "Y", "Z"]
    assert monitor["is_whole"]
    assert 1 < monitor["estimated_states"] <= monitor["max_states"]
    (pattern,) = shown["patterns"]
    assert (pattern["pattern"], pattern["can_match"]) == ("p", True)
    assert [dead["constraints"] for dead in pattern["dead_alternatives"]] == [["exclusive(X, Y)"]]
    assert [found["atom"] for found in pattern["redundant_steps"]] == ["A a"]
    assert any(state["earliest"] and state["earliest"]["event"] == "C" for state in pattern["states"])
    assert "exclusive(B, C)" not in shown["unused"]["constraints"]


def test_what_does_not_fit_the_monitor_is_told(orders):
    pairs = [["A", "B"], ["C", "D"], ["E", "F"], ["G", "H"]]
    document = {"exclusive": pairs, "settings": {"max_monitor_states": 5}}
    orders.post("/v1/constraints?stream=orders", json=document)
    orders.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p EVENT SEQ(Q q, C c)"})
    monitor = orders.get("/v1/constraints/orders/analysis").json()["monitor"]
    assert not monitor["is_whole"]
    assert monitor["estimated_states"] <= monitor["max_states"] == 5
    assert "exclusive(C, D)" not in monitor["left_out"]
    assert monitor["candidates"][0]["is_chosen"]


def test_types_that_the_stream_declares_are_known_where_others_deviate(http):
    http.post("/v1/streams", json={"name": "few", "event_types": ["A", "B", "C"], "end_events": ["C"]})
    document = {"prior": [["A", "B"]], "settings": {"unknown_types": "deviate", "types": ["D"]}}
    shown = http.post("/v1/constraints?stream=few", json=document).json()
    assert shown["settings"]["types"] == ["A", "B", "C", "D"]


def test_constraints_come_as_yaml(orders):
    text = "stream: orders\nexclusive:\n  - [A, C]\n"
    assert orders.post("/v1/constraints", content=text, headers=YAML).json()["constraints"] == ["exclusive(A, C)"]


def test_the_stream_may_be_named_in_the_query(orders):
    answer = orders.post("/v1/constraints?stream=orders", content="- exclusive(A, C)\n", headers=YAML)
    assert (answer.status_code, answer.json()["constraints"]) == (201, ["exclusive(A, C)"])
    again = orders.post("/v1/constraints?stream=orders", json=["exclusive(C, A)"])
    assert (again.status_code, again.json()["version"]) == (200, 1)


@pytest.mark.parametrize(
    ("query", "body"),
    [("", ["prior(A, B)"]), ("?stream=a", {"stream": "b", "constraints": []}), ("", {"prior": [["A", "B"]]})],
)
def test_a_document_without_its_stream_is_refused(orders, check_problem, query, body):
    check_problem(orders.post(f"/v1/constraints{query}", json=body), 400, "stream-missing")


def test_every_problem_is_told_with_its_line(orders, check_problem):
    text = "- exclusive(A)\n- prior(A, B)\n- sometimes(A)\n"
    answer = orders.post("/v1/constraints?stream=orders", content=text, headers=YAML)
    body = check_problem(answer, 400, "invalid-constraints")
    assert [found["line"] for found in body["problems"]] == [1, 3]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("application/yaml", "stream: orders\nconstraints:\n  - exclusive(A)\n\n  - sometimes(A)\n"),
        ("application/json", '{"stream": "orders",\n"constraints": [\n"exclusive(A)",\n\n"sometimes(A)"]}'),
    ],
)
def test_a_document_that_names_its_stream_keeps_its_lines(orders, check_problem, kind, text):
    answer = orders.post("/v1/constraints", content=text, headers={"content-type": kind})
    body = check_problem(answer, 400, "invalid-constraints")
    assert [(found["where"], found["line"]) for found in body["problems"]] == [
        ("constraints, entry 1", 3),
        ("constraints, entry 2", 5),
    ]
    assert "line 3" in body["detail"]


def test_a_stream_is_named_by_a_text(orders, check_problem):
    answer = orders.post("/v1/constraints", json={"stream": 3})
    (found,) = check_problem(answer, 400, "invalid-constraints")["problems"]
    assert (found["where"], found["line"]) == ("stream", 1)


def test_contradictory_constraints_are_refused(orders, check_problem):
    answer = orders.post("/v1/constraints?stream=orders", json=["existence(A)", "absence(A)"])
    body = check_problem(answer, 400, "contradictory-constraints")
    assert sorted(body["constraints"]) == ["absence(A)", "existence(A)"]


def test_patterns_that_can_no_longer_match_are_warned_of(orders):
    orders.post("/v1/patterns", json={"stream": "orders", "text": PATTERN})
    (warning,) = orders.post("/v1/constraints?stream=orders", json=["exclusive(A, B)"]).json()["warnings"]
    assert "p stays registered" in warning


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("stream: [a", 1),
        ("stream: a\nprior: &x [A, B]\nexclusive: *x\n", 2),
        ("stream: a\nstream: b\n", 2),
        ("stream: !!python/object:os.system {}\n", 1),
        ("\tstream: a", 1),
    ],
)
def test_what_is_not_plain_yaml_is_refused(orders, check_problem, text, line):
    body = check_problem(orders.post("/v1/constraints", content=text, headers=YAML), 400, "invalid-constraints")
    assert line in [found["line"] for found in body["problems"]]


@pytest.mark.parametrize(
    "body", [b'{"stream": "orders",', b'{"stream": "a", "stream": "b"}', b"[" * 50_000, b"\xff", b"", b'"prior"']
)
@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
def test_a_damaged_document_is_refused(orders, check_problem, body, kind):
    answer = orders.post("/v1/constraints", content=body, headers={"content-type": kind})
    check_problem(answer, 400, "invalid-constraints")


def test_other_media_types_are_not_read(orders, check_problem):
    headers = {"content-type": "text/plain"}
    answer = orders.post("/v1/constraints?stream=orders", content="- prior(A, B)", headers=headers)
    check_problem(answer, 415, "unsupported-media-type")


def test_unknown_streams_and_sets_are_404(orders, check_problem):
    check_problem(orders.post("/v1/constraints?stream=nowhere", json=[]), 404, "unknown-stream")
    check_problem(orders.get("/v1/constraints/nowhere"), 404, "unknown-stream")
    check_problem(orders.get("/v1/constraints/orders"), 404, "unknown-constraints")


def test_a_document_may_be_long_but_not_endless(orders, check_problem, settings):
    body = orjson.dumps(["prior(A, B)"] * 10_000)
    assert len(body) > settings.limits.max_body_bytes
    headers = {"content-type": "application/json"}
    check_problem(orders.post("/v1/constraints?stream=orders", content=body, headers=headers), 413, "body-too-large")
