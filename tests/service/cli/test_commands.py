"""The commands that need no server, called as a user calls them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

PATTERN = "PATTERN expensive EVENT SEQ(Quote q [price > 200], Cancel c)"


def test_match_prints_the_json_contract(call, files: Path) -> None:
    status, out, _ = call("match", "--pattern", "expensive.pattern", "--events", "events.jsonl", "--output", "json")
    document = orjson.loads(out)
    assert status == 0
    assert document["matches"] == [
        {
            "pattern": "expensive",
            "key": "t1",
            "bindings": {"q": ["e1"], "c": ["e3"]},
            "start": "2026-01-01T00:00:00.000000Z",
            "end": "2026-01-01T00:00:02.000000Z",
            "detected_at": "2026-01-01T00:00:02.000000Z",
        }
    ]
    assert document["ended"] == []


def test_match_takes_several_patterns_constraints_and_gzip(call, files: Path) -> None:
    arguments = ["match", "--pattern", "expensive.pattern", "--pattern", "any.pattern", "--events", "events.jsonl.gz"]
    _, out, _ = call(*arguments, "--constraints", "rules.yaml", "--output", "json")
    document = orjson.loads(out)
    assert [match["pattern"] for match in document["matches"]] == ["any_cancelled", "expensive"]
    assert [(pair["pattern"], pair["key"], pair["event"]) for pair in document["ended"]] == [
        ("expensive", "t2", "e4"),
        ("any_cancelled", "t2", "e4"),
    ]
    assert document["ended"][0]["reason"] == "Ship ends it: prior(Cancel, Ship) means that Cancel c can no longer come"
    assert document["deviations"] == [
        {
            "key": "t2",
            "event": "e5",
            "event_type": "Cancel",
            "time": "2026-01-01T00:00:03.000000Z",
            "kind": "order",
            "constraints": ["prior(Cancel, Ship)"],
            "symbols": [],
            "allowed": [],
            "released": 1,
            "reason": "Cancel came after Ship, against prior(Cancel, Ship)",
        }
    ]
    assert document["corrections"] == []
    _, unpruned, _ = call(*arguments, "--constraints", "rules.yaml", "--no-prune", "--output", "json")
    assert orjson.loads(unpruned)["ended"] == []
    assert len(orjson.loads(unpruned)["matches"]) == 3


def test_match_groups_by_another_key(call, files: Path) -> None:
    status, out, _ = call(
        "match", "--pattern", "any.pattern", "--events", "events.jsonl", "--key", "data.customer", "--output", "json"
    )
    assert status == 0
    assert [match["key"] for match in orjson.loads(out)["matches"]] == ["x"] * 4


def test_match_prints_lines_for_people(call, files: Path) -> None:
    status, out, _ = call("match", "--pattern", "expensive.pattern", "--events", "events.jsonl")
    assert status == 0
    assert out == (
        "expensive  t1  2026-01-01T00:00:00.000000Z to 2026-01-01T00:00:02.000000Z\n    q=e1  c=e3\n\n"
        "5 events, 1 match, 0 terminated early, 0 deviating transactions, peak 1 bound event\n"
    )


def test_nothing_from_outside_is_taken_for_markup(call, files: Path) -> None:
    events = [
        {"id": "[/e]1", "type": "Quote", "time": 1, "key": "[/x]k", "data": {"price": 300}},
        {"id": "e2", "type": "Cancel", "time": 2, "key": "[/x]k"},
        {"id": "e3", "type": "Ship", "time": 3, "key": "[bold]y"},
    ]
    (files / "odd.jsonl").write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in events))
    (files / "odd.pattern").write_text("PATTERN odd EVENT SEQ(Quote q, Cancel c [v > 1])")
    status, out, _ = call(
        "match", "--pattern", "expensive.pattern", "--pattern", "odd.pattern", "--events", "odd.jsonl",
        "--constraints", "rules.yaml",
    )  # fmt: skip
    assert status == 0
    assert "[/x]k" in out
    assert "[bold]y" in out
    assert "[v > 1]" in out


def test_a_pattern_on_another_key_is_refused_with_the_option_that_would_do(call, files: Path) -> None:
    (files / "keyed.pattern").write_text(f"{PATTERN} WHERE [customer]")
    status, _, err = call("match", "--pattern", "keyed.pattern", "--events", "events.jsonl")
    assert status == 2
    assert (
        "pattern expensive is correlated by [customer], the events by key: write WHERE [key, customer], or use" in err
    )
    status, out, _ = call(
        "match", "--pattern", "keyed.pattern", "--events", "events.jsonl", "--key", "data.customer", "--output", "json"
    )
    assert status == 0
    assert len(orjson.loads(out)["matches"]) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("PATTERN p EVENT SEQ(Quote q,, Cancel c)", "broken.pattern: line 1, column 29: unexpected ','; expected "),
        (f"{PATTERN} {PATTERN}", "broken.pattern: a pattern named expensive exists already; rename one of them"),
    ],
)
def test_unreadable_patterns_name_file_and_place(call, files: Path, content: str, message: str) -> None:
    (files / "broken.pattern").write_text(content)
    status, out, err = call("match", "--pattern", "broken.pattern", "--events", "events.jsonl")
    assert (status, out) == (2, "")
    assert message in err


def test_missing_files_are_named(call, files: Path) -> None:
    status, _, err = call("match", "--pattern", "absent.pattern", "--events", "events.jsonl")
    assert status == 2
    assert "absent.pattern cannot be read" in err
    status, _, err = call("match", "--pattern", "any.pattern", "--events", "absent.jsonl")
    assert status == 2
    assert "absent.jsonl" in err


def test_events_without_times_are_refused_with_advice_and_taken_in_file_order_on_request(call, files: Path) -> None:
    (files / "plain.csv").write_text("type,key\nQuote,t\nCancel,t\n")
    status, _, err = call("match", "--pattern", "any.pattern", "--events", "plain.csv")
    assert status == 2
    assert "time" in err
    status, out, _ = call(
        "match", "--pattern", "any.pattern", "--events", "plain.csv", "--times", "line", "--output", "json"
    )
    assert status == 0
    assert len(orjson.loads(out)["matches"]) == 1


def test_check_lists_what_ends_a_pattern_early(call, files: Path) -> None:
    status, out, _ = call("check", "any.pattern", "--constraints", "rules.yaml")
    assert status == 0
    assert "any_cancelled: SEQ(Quote q, Cancel c)" in out
    assert "Ship: prior(Cancel, Ship) means that Cancel c can no longer come" in out


def test_check_says_why_a_pattern_can_never_match(call, files: Path) -> None:
    status, out, _ = call("check", "PATTERN p EVENT SEQ(Ship s, Cancel c)", "--constraints", "rules.yaml")
    assert status == 1
    assert "can never match" in out
    assert "prior(Cancel, Ship)" in out


def test_contradictory_constraints_are_refused(call, files: Path) -> None:
    (files / "bad.yaml").write_text("- existence: A\n- existence: B\n- exclusive: [A, B]\n")
    for command in (["check", "any.pattern"], ["match", "--pattern", "any.pattern", "--events", "events.jsonl"]):
        status, _, err = call(*command, "--constraints", "bad.yaml")
        assert status == 2
        assert "exclusive(A, B)" in err


def test_check_tells_everything_as_json(call, files: Path) -> None:
    (files / "many.yaml").write_text(
        "constraints:\n  - not succession: [Ship, Cancel]\n  - response(Quote, Ship)\n  - exclusive(X, Y)\n"
        "settings: {on_violation: ignore, frequencies: {Ship: 0.25}}\n"
    )
    (files / "two.pattern").write_text(
        "PATTERN one EVENT SEQ(Quote q, OR(Cancel c, SEQ(X x, Y y))) PATTERN two EVENT A"
    )
    status, out, _ = call("check", "two.pattern", "--constraints", "many.yaml", "--json")
    document = orjson.loads(out)
    assert status == 0
    assert "prior(Cancel, Ship)" in document["constraints"]
    assert "response(Quote, Ship)" in document["rules"]
    assert (document["settings"]["on_violation"], document["clash"]) == ("ignore", None)
    assert len(document["notices"]) == 1
    one, two = document["patterns"]
    assert (one["pattern"], one["is_satisfiable"], two["failing_conditions"]) == ("one", True, [])
    (dead,) = one["dead_alternatives"]
    assert (dead["alternative"], dead["constraints"]) == (2, ["exclusive(X, Y)"])
    (ship,) = [
        found for found in one["failing_conditions"] if (found["event"], found["bound"]) == ("Ship", ["Quote q"])
    ]
    assert (ship["form"], ship["atoms"]) == ("p1", ["Cancel c"])
    assert all(0 <= state["probability"] <= 1 for state in one["states"])
    assert {"Ship", "Cancel"} <= set(document["monitor"]["distinguishes"])
    assert 1 < document["monitor"]["estimated_states"] <= document["monitor"]["max_states"] == 65_536
    assert "constraints" in document["unused"]


def test_check_tells_a_clash_as_json(call, files: Path) -> None:
    (files / "bad.yaml").write_text("- existence: A\n- absence: A\n- prior: [B, C]\n")
    status, out, _ = call("check", "any.pattern", "--constraints", "bad.yaml", "--json")
    document = orjson.loads(out)
    assert (status, document["patterns"]) == (2, [])
    assert sorted(document["clash"]["constraints"]) == ["absence(A)", "existence(A)"]
    assert "no trace can keep" in document["clash"]["text"]


def test_check_says_what_looks_for_a_violation(call, files: Path) -> None:
    (files / "answered.yaml").write_text("- require: [Quote, Answer]\n- prior: [Quote, Answer]\n")
    arguments = ["check", "PATTERN p EVENT SEQ(Quote q, NOT Answer)", "--constraints", "answered.yaml"]
    status, out, _ = call(*arguments)
    assert status == 1
    assert "register it with constraints: off" in out
    status, out, _ = call(*arguments, "--json")
    (found,) = orjson.loads(out)["patterns"]
    assert (status, found["is_satisfiable"], found["asks_for_violation"]) == (1, False, True)


def test_check_says_what_nobody_needs(call, files: Path) -> None:
    (files / "more.yaml").write_text("- prior: [Cancel, Ship]\n- exclusive: [X, Y]\n- require: [Cancel, Quote]\n")
    _, out, _ = call("check", "any.pattern", "--constraints", "more.yaml")
    assert "constraints that help no pattern:\n  exclusive(X, Y)\n" in out
    assert "monitor: all names are told apart" in out
    assert "with Quote q bound, a partial match is terminated early (expected in " in out


def test_match_says_which_patterns_can_never_match(call, files: Path) -> None:
    (files / "never.pattern").write_text("PATTERN never EVENT SEQ(Ship s, Cancel c)")
    status, out, err = call(
        "match", "--pattern", "never.pattern", "--events", "events.jsonl", "--constraints", "rules.yaml"
    )
    assert status == 0
    assert out.startswith("no matches\n")
    assert "never can never match" in err
    assert "prior(Cancel, Ship)" in err


def test_generated_orders_are_events_that_match_reads(call, tmp_path: Path) -> None:
    status, _, _ = call("generate", "--orders", "20", "--seed", "3", "--output", "orders.jsonl")
    again, _, _ = call("generate", "--orders", "20", "--seed", "3", "--output", "again.jsonl")
    (tmp_path / "q.pattern").write_text("PATTERN q EVENT SEQ(ReceiveOrder r, CheckCredit c)")
    _, out, _ = call("match", "--pattern", "q.pattern", "--events", "orders.jsonl", "--output", "json")
    assert (status, again) == (0, 0)
    assert (tmp_path / "orders.jsonl").read_bytes() == (tmp_path / "again.jsonl").read_bytes()
    assert len(orjson.loads(out)["matches"]) == 20


def test_without_a_command_the_help_is_shown(call) -> None:
    _, out, err = call()
    assert all(name in out + err for name in ("serve", "demo", "match", "check", "replay", "generate"))


def test_check_shows_what_a_pattern_forbids_and_names_like_it(call, files) -> None:
    (files / "some.yaml").write_text("- prior(Check, Close)\n")
    arguments = ["check", "PATTERN p EVENT SEQ(Receive r, NOT Chek, Close c)", "--constraints", "some.yaml"]
    _, out, _ = call(*arguments)
    assert "\nforbids Chek\n" in out
    assert "warning: line 1, column 36: Chek (did you mean Check?)" in out
    _, out, _ = call(*arguments, "--json")
    (found,) = orjson.loads(out)["patterns"]
    assert (found["listens_to"], found["forbids"], len(found["warnings"])) == (["Close", "Receive"], ["Chek"], 1)


def test_check_warns_of_work_that_nothing_bounds(call) -> None:
    rising = "PATTERN p EVENT A+ a [v > coalesce(prev(v), -1)]"
    _, out, _ = call("check", rising)
    assert "warning: line 1, column 18: the work per event is not bounded" in out
    _, out, _ = call("check", rising, "--json")
    (found,) = orjson.loads(out)["patterns"]
    assert any("the work per event is not bounded" in warning for warning in found["warnings"])
    _, out, _ = call("check", f"{rising} WITHIN 1 h")
    assert "warning" not in out


REFUSED = [
    (["match", "--pattern", "none.pattern", "--events", "events.jsonl"], "file"),
    (["match", "--pattern", "odd.pattern", "--events", "events.jsonl"], "pattern-refused"),
    (["match", "--pattern", "any.pattern", "--events", "events.jsonl", "--outputs", "all"], "usage"),
    (["match", "--pattern", "any.pattern"], "usage"),
    (["check", "nothing"], "file"),
    (["check", "PATTERN p EVENT A a", "--exact"], "usage"),
    (["constraints", "none.bpmn"], "file"),
    (["conformance", "none.bpmn", "events.jsonl"], "file"),
    (["discover", "none.jsonl"], "event-file"),
    (["streams", "list", "--url", "http://127.0.0.1:1"], "service-unreachable"),
    (["status", "--unknown"], "usage"),
]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("arguments", "code"), REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_an_error_is_text_for_people_and_json_where_json_is_asked_for(call, files: Path, arguments, code) -> None:
    (files / "odd.pattern").write_text("PATTERN p EVENT A a -> B b")
    status, out, err = call(*arguments)
    assert status >= 2
    assert out == ""
    assert not err.startswith("{")
    again, out, err = call(*arguments, "--json")
    assert (again, out, err.count("\n")) == (status, "", 1)
    document = orjson.loads(err)
    assert document.keys() == {"error", "message", "problems", "details"}
    assert document["error"] == code
    assert document["message"]
