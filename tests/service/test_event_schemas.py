"""Checks of events by schemas: counted before they begin, with few faults built; memory is bounded, nothing timed."""

import subprocess
import sys
import textwrap

import pytest

from service.errors import SchemaRefused
from service.intake.event_schemas import EventSchema, StepBudget
from service.intake.schema_weights import Weights, extent_of, regex_states
from service.settings import Limits
from streams import Event, EventBreaksSchema

LIMIT = Limits().max_schema_steps
FIELDS = [f"field{number}" for number in range(30)]
ORDINARY = {
    "type": "object",
    "required": ["id", *FIELDS],
    "properties": {
        "id": {"$ref": "#/$defs/code"},
        **{name: {"type": "string", "pattern": "^[A-Za-z0-9-]{1,40}$", "maxLength": 40} for name in FIELDS},
    },
    "additionalProperties": False,
    "$defs": {"code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4,8}$"}},
}


def event(data):
    return Event(id="e", type="A", time_us=0, key="k", data=data)


def steps(schema, data):
    return extent_of(data, Weights(schema).plan()).steps


def refusal(schema, data, limit=LIMIT):
    with pytest.raises(EventBreaksSchema) as refused:
        EventSchema(schema).require(event(data), 1, StepBudget.of(limit))
    return refused.value.message


def test_ten_megabytes_of_ordinary_events_are_checked():
    data = {"id": "ABC-12345", **dict.fromkeys(FIELDS, "a-value-of-20-letters")}
    assert 10_000 * steps(ORDINARY, data) < LIMIT
    EventSchema(ORDINARY).require(event(data), 1, StepBudget.of(LIMIT))


def test_an_event_that_could_take_too_long_is_refused_with_limit_and_setting():
    schema = {"items": {"allOf": [{"pattern": f"^a{number}"} for number in range(300)]}}
    message = refusal({"properties": {"texts": schema}}, {"texts": ["a" * 40] * 200_000})
    assert f"of {LIMIT} left (FORESTALL_LIMITS__MAX_SCHEMA_STEPS)" in message


def test_the_budget_is_that_of_all_events_of_a_request_and_a_refused_one_leaves_it():
    schema = EventSchema({"properties": {"n": {"type": "integer"}}})
    small, large = event({"n": 1}), event({"n": 1, "other": ["x"] * 100})
    cost = extent_of(small.data, schema._plan).steps
    budget = StepBudget.of(2 * cost)
    assert extent_of(large.data, schema._plan).steps == cost  # what no schema asks about costs nothing
    schema.require(small, 1, budget)
    with pytest.raises(EventBreaksSchema):
        schema.require(event({"n": ["x"] * 100}), 1, budget)
    schema.require(small, 1, budget)
    assert budget.left == 0
    with pytest.raises(EventBreaksSchema, match="has 0 of"):
        schema.require(small, 1, budget)


@pytest.mark.parametrize(
    ("schema", "many"),  # made by the test: collecting would make them for any other
    [
        ({"properties": {"l": {"items": {"enum": ["x" * 60_000]}}}}, lambda: {"l": ["y" * 60] * 100_000}),
        ({"properties": {"l": {"items": {"pattern": r"(\w{10}x){20}$"}}}}, lambda: {"l": ["y" * 100] * 100_000}),
        (
            {"patternProperties": {f"a{n}(b|c)*": {} for n in range(1_000)}},
            lambda: {f"a{n}": 1 for n in range(200_000)},
        ),
        ({"propertyNames": {"pattern": "a{20000}"}}, lambda: {f"a{n}": 1 for n in range(100_000)}),
        ({"properties": {"l": {"contains": {"allOf": [{"minimum": 3}] * 900}}}}, lambda: {"l": [1] * 100_000}),
        (
            {"properties": {"l": {"uniqueItems": True, "items": {"allOf": [{"uniqueItems": True}] * 900}}}},
            lambda: {"l": [[n, "text"] for n in range(50_000)]},
        ),
    ],
    ids=["enum", "repetition", "names", "long names", "contains", "unique"],
)
def test_whatever_multiplies_is_counted(schema, many):
    assert steps(schema, many()) > LIMIT


def test_references_are_counted_where_they_are_used():
    levels: dict[str, object] = {"d0": {"type": "string"}}
    for level in range(1, 6):
        levels[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 4}
    fan = {"$defs": levels}
    assert steps({**fan, "items": {"$ref": "#/$defs/d5"}}, {"a": 1}) > 4**5
    assert steps(fan, {"a": 1}) < 50


def test_unevaluated_members_are_asked_about_again():
    inner = {"allOf": [{"minimum": 1}] * 10}
    assert steps({**inner, "unevaluatedProperties": False}, {"a": 1}) > 3 * steps(inner, {"a": 1})


def test_a_property_may_have_the_name_of_a_keyword():
    schema = {"properties": {name: {"pattern": "^a+$"} for name in ("enum", "const", "pattern", "$id")}}
    assert refusal(schema, {"enum": "b"}).startswith("data.enum: ")


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        ("abc", 3, 5),
        ("a{100}", 100, 110),
        ("(ab){100}", 200, 320),
        ("((ab){10}){10}", 200, 400),
        (r"\w{50}", 5_000, 5_100),
        (r"[a-z\]]{3,}", 24, 40),
        ("[a-z]{30}", 30, 32),
        ("[^a-z]{30}", 240, 250),
        (r"\.\.\d", 10, 12),
        ("(((", 1, 10),
        ("a{2", 3, 5),
    ],
)
def test_states_of_regular_expressions(pattern, least, most):
    assert least <= regex_states(pattern) <= most


def test_regular_expressions_that_would_fill_the_memory_are_refused_and_those_of_older_releases_are_read():
    large = {"allOf": [{"pattern": f"[^a]{{900}}{number}"} for number in range(150)]}
    with pytest.raises(SchemaRefused, match="fewer or simpler regular expressions"):
        EventSchema(large)
    EventSchema(large, is_stored=True)


HARMFUL = """
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1_500 * 1024**2,) * 2)
    from service.intake.event_schemas import EventSchema, StepBudget
    from streams import Event, EventBreaksSchema
    for schema, value in (
        ({"items": {"allOf": [{"pattern": f"^a{n}"} for n in range(300)]}}, ["b" * 40] * 200_000),
        ({"items": {"allOf": [{"type": "integer"}] * 20}}, ["b" * 10] * 500_000),
        ({"items": {"anyOf": [{"type": "integer"}] * 20}}, ["b" * 10] * 500_000),
        ({"allOf": [{"type": "integer"}] * 3_000}, "b" * 8_000_000),
    ):
        for limit in (100_000_000, 10**15):
            try:
                EventSchema({"properties": {"l": schema}}).require(
                    Event(id="e", type="A", time_us=0, key="k", data={"l": value}), 1, StepBudget.of(limit)
                )
            except EventBreaksSchema as error:
                assert len(error.message) < 2_000, len(error.message)
            else:
                raise AssertionError("taken")
    print("bounded")
"""


def test_no_event_takes_memory_for_all_of_its_faults():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HARMFUL)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.strip() == "bounded", done.stderr[-2_000:]
