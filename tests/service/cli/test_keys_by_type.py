"""Keys by event type, from the options or the declaration to the alerts; files, folders and the service agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service import Intake, Registration, Stores
from service.projects import LocalProject, read_project
from streams import Event, EventBatch, StreamDeclaration, parse_plain, place_for
from streams.readers import ReaderOptions, iterate_events, key_in_files, read_events
from tests.builders.registering import register_pattern
from tests.builders.service import HandClock, empty_client, settings_for
from tests.builders.shards import run_inline

PATTERNS = "PATTERN own EVENT SEQ(A a, B b) WHERE [key] PATTERN who EVENT SEQ(A a, C c) WHERE [customer]"
PATHS = ["data.ref", "data.id", "data.order.id", "ref"]

key_maps = st.dictionaries(st.sampled_from(["A", "B", "C", "*"]), st.sampled_from(PATHS), min_size=1)
keys = st.sampled_from(PATHS) | key_maps
values = st.sampled_from(["x", "y", 7, None])
data = st.fixed_dictionaries({}, optional={"ref": values, "id": values, "who": values, "order": st.just({"id": "x"})})
lines = st.lists(st.tuples(st.sampled_from("ABCD"), data, values), min_size=1, max_size=10)
further = st.dictionaries(
    st.sampled_from(["A", "C", "*"]), st.sampled_from(["who", "order.id", "data.ref"]), min_size=1
)


def objects_of(rows: list[tuple[str, dict[str, Any], Any]]) -> list[dict[str, Any]]:
    return [
        {"id": f"e{n}", "type": kind, "time": n, "data": attributes, "ref": ref}
        for n, (kind, attributes, ref) in enumerate(rows)
    ]


def found(alerts: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((one["pattern"], one["key"], *one["bindings"].items()) for one in alerts)


def in_the_service(url: str, declaration: StreamDeclaration, objects: list[object]) -> tuple[set[int], list[Any]]:
    """Which objects are rejected, and the alerts of an inline run over the log."""
    with empty_client(url) as client:
        chosen = settings_for(url)
        stores, clock = Stores(client, url, chosen), HandClock()
        registration = Registration(stores, chosen, clock)
        registration.declare_stream(declaration)
        own, _, who = PATTERNS.partition(" PATTERN who")
        register_pattern(registration, "shop", own)
        register_pattern(registration, "shop", f"PATTERN who{who}")
        report = Intake(stores.log, stores.registry, chosen.limits, clock).ingest("shop", objects)
        rows = run_inline({shard: stores.log.read_range(shard) for shard in range(stores.log.shards())})
    return {one.index for one in report.rejected}, [orjson.loads(row.body) for row in rows]


def options_of(option: str, key: Any) -> list[str]:
    """How the command line says a key; a name is part of the option."""
    name, sign, rest = option.partition(" ")
    if not isinstance(key, dict):
        return [name, f"{rest}={key}" if sign else key]
    return [
        part for kind, path in key.items() for part in (name, f"{rest}:{kind}={path}" if sign else f"{kind}={path}")
    ]


@pytest.mark.redis
@given(lines, keys, further)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_match_finds_what_the_service_finds(server_url, call, tmp_path, rows, key, customer):
    declaration = StreamDeclaration(name="shop", key=key, keys={"customer": customer})
    objects = objects_of(rows)
    rejected, alerts = in_the_service(server_url, declaration, list(objects))
    good = [value for index, value in enumerate(objects) if index not in rejected]
    (tmp_path / "p.pattern").write_text(PATTERNS)
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, good)))
    arguments = ["match", "--pattern", "p.pattern", "--events", "events.jsonl", "--json"]
    _, out, err = call(*arguments, *options_of("--key", key), *options_of("--further-key customer", customer))
    assert out, err
    assert found(orjson.loads(out)["matches"]) == found(alerts)
    assert all(place_for(key, value["type"]) is not None for value in good)


@given(lines, keys)
@settings(max_examples=100)
def test_every_reader_of_lines_gives_the_keys_of_the_stream(tmp_path_factory, rows, key):
    declaration = StreamDeclaration(name="shop", key=key)
    path = tmp_path_factory.mktemp("lines") / "events.jsonl"
    good = [value for value in objects_of(rows) if expected_key(value, key) is not None]
    path.write_bytes(b"\n".join(map(orjson.dumps, good)))
    expected = [parse_plain(value, declaration).key for value in good]
    options = ReaderOptions(key=key_in_files(key))
    assert [event.key for event in read_events(path, options)] == expected
    assert [event.key for event in iterate_events(path, options, declaration)] == expected
    assert expected == [expected_key(value, key) for value in good]


def expected_key(value: dict[str, Any], key: Any) -> str | None:
    """The naive meaning: the text or integer at the path of the event's type."""
    path = key if isinstance(key, str) else key.get(value["type"], key.get("*"))
    found: Any = value if path else None
    for name in (path or "").split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return None if found is None or isinstance(found, dict) else str(found)


CSV = "id,type,time,ref,number,order,price\ne1,Order,1,,o1,,5\ne2,Payment,2,o1,p9,,5\ne3,Shipment,3,,s7,o1,\n"
XES = (
    '<log><trace><string key="concept:name" value="case"/>'
    '<event><string key="concept:name" value="Order"/><string key="number" value="o1"/></event>'
    '<event><string key="concept:name" value="Payment"/><string key="ref" value="o1"/></event></trace></log>'
)


@pytest.mark.parametrize(("name", "text", "count"), [("e.csv", CSV, 3), ("e.xes", XES, 2)])
def test_columns_and_attributes_are_chosen_by_type(tmp_path: Path, name: str, text: str, count: int) -> None:
    (tmp_path / name).write_text(text)
    key = {"Payment": "data.ref", "Shipment": "order", "*": "number"}
    events = read_events(tmp_path / name, ReaderOptions(key=key, times="line"))
    assert [event.key for event in events] == ["o1"] * count
    assert events[0].data["number"] == "o1"


@pytest.mark.parametrize(("name", "text"), [("e.csv", CSV), ("e.xes", XES)])
def test_a_row_of_a_type_without_a_path_is_refused_with_its_place(call, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "p.pattern").write_text("PATTERN p EVENT Order o")
    arguments = ["match", "--pattern", "p.pattern", "--events", name, "--times", "line", "--key", "Order=number"]
    status, _, err = call(*arguments)
    assert status == 2
    assert "type 'Payment' has no correlation key here; the key is declared for the types Order" in err


def test_a_column_that_is_missing_is_named_with_its_option(call, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(CSV)
    (tmp_path / "p.pattern").write_text("PATTERN p EVENT Order o")
    _, _, err = call("match", "--pattern", "p.pattern", "--events", "e.csv", "--key", "*=number", "--key", "X=nope")
    assert "no column nope among" in err
    assert "name the column with --key X=" in err


def test_a_project_runs_with_keys_by_type(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(
        'kind: stream\nname: shop\nkey: {B: data.ref, "*": data.id}\n'
        'keys: {customer: {A: data.who.id, "*": data.who}}\nend_events: [End]\n'
        "---\n{kind: pattern, name: own, stream: shop, text: 'PATTERN own EVENT SEQ(A a, B b)'}\n"
        "---\n{kind: pattern, name: who, stream: shop, text: 'PATTERN who EVENT SEQ(A a, C c) WHERE [customer]'}\n"
    )
    project = LocalProject.of(read_project(tmp_path), tmp_path)
    declaration = project.stream("shop")
    events: list[Event] = [
        parse_plain({"id": f"e{n}", "type": kind, "time": n, "data": attributes}, declaration)
        for n, (kind, attributes) in enumerate(
            [
                ("A", {"id": "o1", "who": {"id": "ann"}}),
                ("B", {"id": "x", "ref": "o1"}),
                ("End", {"id": "o1"}),
                ("B", {"id": "x", "ref": "o1"}),
                ("C", {"id": "o2", "who": "ann"}),
            ]
        )
    ]
    result = project.run({"shop": EventBatch.from_events(events)})
    assert found(result["alerts"]) == [
        ("own", "o1", ("a", ["e0"]), ("b", ["e1"])),
        ("who", "ann", ("a", ["e0"]), ("c", ["e4"])),
    ]
