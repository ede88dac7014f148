"""``forestall match --workflow``: with a model the same matches, earlier endings, and what leaves the model."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from house import ROOT
from workflows import OrderSettings, OrderWorkload, SimulationSettings, generate_events

ORDER = ROOT / "docs" / "examples" / "order.yaml"
EP1 = """PATTERN EP1 EVENT SEQ(AND(SEQ(OrderFromSupplier o, GenerateQuote q [totalPrice > 200]),
                                   SEQ(UseRemoteStock u, GenerateInvoice i)), CancelOrder c)"""
NEVER = "PATTERN never EVENT SEQ(GenerateQuote q, NOT CancelOrder)"
SMALL = "name: small\ntree: {sequence: [A, {xor: [B, C]}, D]}\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small model, a pattern, and two traces: one leaves the model."""
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "p.pattern").write_text("PATTERN p EVENT SEQ(A a, C c) PATTERN q EVENT SEQ(A a, D d)")
    write_events(tmp_path / "e.jsonl", [("k", "A"), ("k", "B"), ("m", "A"), ("m", "A"), ("k", "D"), ("m", "D")])
    return tmp_path


def write_events(path: Path, events) -> None:
    rows = ({"id": f"e{n}", "type": name, "time": n, "key": key} for n, (key, name) in enumerate(events, 1))
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


@pytest.fixture
def match(call):
    """Calls ``forestall match`` on the files of ``small``; returns (status, document, standard error)."""

    def run(*options: str):
        arguments = ["match", "--pattern", "p.pattern", "--events", "e.jsonl", "--output", "json", *options]
        status, out, err = call(*arguments)
        return status, orjson.loads(out) if out else None, err

    return run


def matches_of(document):
    return [(found["pattern"], found["key"], found["bindings"]) for found in document["matches"]]


def test_the_automaton_is_followed_where_there_is_one(small, match):
    status, document, err = match("--workflow", "small.yaml")
    assert status == 0
    assert document["workflow"] == {"mode": "exact", "method": "compositional", "states": 4}
    assert "small: followed exactly, by its automaton of 4 states" in err
    ended = {(pair["pattern"], pair["key"]): pair["event"] for pair in document["endings"]}
    assert ended["p", "k"] == "e2"
    (deviation,) = document["deviations"]
    assert (deviation["event"], deviation["kind"], deviation["allowed"]) == ("e4", "workflow", ["B", "C"])


def test_the_constraints_are_followed_where_that_is_asked_for(small, match):
    status, document, err = match("--workflow", "small.yaml", "--tables")
    assert status == 0
    assert document["workflow"] == {"mode": "tables", "method": "compositional", "states": 4}
    assert "constraints that hold in it (compositional), as asked" in err
    (deviation,) = document["deviations"]
    assert (deviation["event"], deviation["allowed"]) == ("e4", [])
    assert deviation["constraints"] == ["prior(A, A)"]


def test_without_pruning_nothing_ends_and_what_deviates_is_told(small, match):
    _, document, _ = match("--workflow", "small.yaml", "--no-prune")
    _, plain, _ = match()
    assert matches_of(document) == matches_of(plain)
    assert "workflow" not in plain
    assert document["workflow"]["mode"] == "exact"


def test_constraints_written_by_hand_hold_beside_the_model(small, match):
    (small / "rules.yaml").write_text("- exclusive(B, Note)\n")
    write_events(small / "e.jsonl", [("k", "A"), ("k", "Note"), ("k", "B")])
    for mode in ("--exact", "--tables"):
        _, document, _ = match("--workflow", "small.yaml", "--constraints", "rules.yaml", mode)
        (deviation,) = document["deviations"]
        assert (deviation["event"], deviation["constraints"]) == ("e3", ["exclusive(B, Note)"])


def test_end_events_of_the_model_end_traces(small, match):
    (small / "p.pattern").write_text("PATTERN p EVENT SEQ(A a, NOT C)")
    write_events(small / "e.jsonl", [("k", "A"), ("k", "B"), ("k", "D")])
    _, document, _ = match("--workflow", "small.yaml", "--open")
    assert [found["bindings"] for found in document["matches"]] == [{"a": ["e1"]}]


def test_tasks_are_mapped_to_event_types(small, match):
    (small / "map.yaml").write_text("B: null\nC: Gone\nA: A\nD: D\n")
    write_events(small / "e.jsonl", [("k", "A"), ("k", "D"), ("m", "A"), ("m", "Gone"), ("m", "D")])
    _, document, _ = match("--workflow", "small.yaml", "--map", "map.yaml")
    assert document["deviations"] == []
    assert document["stats"]["matches"] == 2


def test_a_language_beyond_the_cap_is_followed_by_its_constraints(small, match):
    (small / "small.yaml").write_text(f"tree: {{and: [{', '.join(f'A{n}' for n in range(20))}]}}\n")
    status, document, err = match("--workflow", "small.yaml")
    assert status == 0
    assert (document["workflow"]["mode"], document["workflow"]["states"]) == ("tables", None)
    assert "followed by the" in err
    status, document, err = match("--workflow", "small.yaml", "--exact")
    assert status == 2
    assert "cannot be followed exactly" in err


@pytest.mark.parametrize(
    "options",
    [
        ("--workflow", "small.yaml", "--exact", "--tables"),
        ("--exact",),
        ("--map", "small.yaml"),
        ("--process", "p"),
    ],
)
def test_options_that_do_not_go_together_are_refused(small, match, options):
    status, document, err = match(*options)
    assert (status, document) == (2, None)
    assert "--" in err


def test_a_refused_model_is_said_once_as_text_or_as_json(small, call):
    (small / "small.yaml").write_text("tree: {sequenze: [A]}\n")
    arguments = ["match", "--pattern", "p.pattern", "--events", "e.jsonl", "--workflow", "small.yaml"]
    status, out, err = call(*arguments, "--output", "json")
    assert (status, out) == (2, "")
    refusal = orjson.loads(err)
    assert refusal["error"] == "model-refused"
    assert refusal["problems"]
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert err == f"error: {refusal['message']}\n"


def test_people_read_what_would_have_been_allowed(small, call):
    status, out, _ = call("match", "--pattern", "p.pattern", "--events", "e.jsonl", "--workflow", "small.yaml")
    assert status == 0
    assert "deviations, each with the event that breaks the constraints:\nm  e4  workflow" in out
    assert "B" in out.split("m  e4  workflow")[1].splitlines()[1]


@pytest.mark.parametrize("mode", ["--exact", "--tables"])
def test_the_order_workflow_gives_the_matches_without_pruning(tmp_path: Path, call, mode: str) -> None:
    stream = SimulationSettings(traces=150, concurrent=20)
    workload = OrderWorkload(orders=OrderSettings(cancel=0.3, quotes=None), stream=stream)
    events = generate_events(workload, 7)
    lines = (
        orjson.dumps({"id": e.id, "type": e.type, "time": e.time_us, "key": e.key, "data": dict(e.data)})
        for e in events
    )
    (tmp_path / "orders.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "ep.pattern").write_text(f"{EP1}\n{NEVER}")
    arguments = ["match", "--pattern", "ep.pattern", "--events", "orders.jsonl", "--output", "json"]
    documents = [orjson.loads(call(*arguments, "--workflow", str(ORDER), option)[1]) for option in (mode, "--no-prune")]
    pruned, plain = documents
    assert matches_of(pruned) == matches_of(plain)
    assert len(plain["matches"]) > 100
    assert pruned["deviations"] == plain["deviations"] == []
    assert pruned["stats"]["peak_held"] < plain["stats"]["peak_held"]


@pytest.mark.parametrize("option", ["--exact", "--tables"])
def test_check_says_what_a_workflow_does_with_a_pattern(small, call, option):
    arguments = ["check", "PATTERN p EVENT SEQ(A a, C c)", "--workflow", "small.yaml", option]
    status, out, err = call(*arguments, "--json")
    document = orjson.loads(out)
    (pattern,) = document["patterns"]
    assert status == 0
    assert document["followed_workflow"]["used"] == option.removeprefix("--")
    assert pattern["is_satisfiable"]
    assert "B" in {condition["event"] for condition in pattern["failing_conditions"]}
    _, text, _ = call(*arguments)
    assert "\ncan match\n" in text
    assert "small: followed" in err
    if option == "--tables":
        assert "exclusive(B, C)" in pattern["matters"]
        assert f"constraints that affect it: {', '.join(pattern['matters'])}" in text


def test_check_says_that_a_workflow_makes_a_pattern_impossible(small, call):
    status, out, _ = call("check", "PATTERN p EVENT SEQ(B b, C c)", "--workflow", "small.yaml")
    assert status == 1
    assert "can never match" in out
    status, _, err = call("check", "PATTERN p EVENT SEQ(B b, C c)", "--exact")
    assert status == 2
    assert "--workflow" in err
