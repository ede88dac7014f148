"""What checking an event may cost is known before it begins."""

import subprocess
import sys

import orjson
import pytest

from service import EventSchema, Limits
from service.event_schemas import SchemaBudget
from streams import Event, EventBreaksSchema, SchemaTooCostly

HOSTILE = """
import resource
from service import EventSchema
from streams import Event, EventBreaksSchema

schema = EventSchema({"properties": {"list": {"items": {"allOf": [{"pattern": f"^x{n}"} for n in range(300)]}}}})
event = Event(id="e", type="A", time_us=0, key="k", data={"list": ["a" * 40] * 200_000})
used = int(next(l for l in open("/proc/self/status") if l.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + 400_000_000, used + 400_000_000))
try:
    schema.require(event, 1)
except EventBreaksSchema as error:
    print(error.message.count("does not match"))
"""


def event(**data):
    return Event(id="e1", type="A", time_us=0, key="k", data=data)


@pytest.mark.parametrize(
    ("schema", "weight"),
    [
        ({}, 1),
        ({"type": "object"}, 2),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "number"}}}, 6),
        ({"$defs": {"d": {"minimum": 1}}, "allOf": [{"$ref": "#/$defs/d"}] * 3}, 1 + 3 + 1 + 3 * 3),
        ({"enum": list(range(100))}, 1 + 8 + 100),
        ({"enum": [{"a": 1}] * 10}, 1 + 8 + 10 * 9),
        ({"pattern": "a" * 160}, 2 + 10),
    ],
)
def test_the_weight_of_a_schema_counts_parts_references_values_and_expressions(schema, weight):
    assert EventSchema(schema).weight == weight


def test_steps_are_the_weight_times_the_bytes():
    assert EventSchema({"type": "object"}).steps(event(a="xyz")) == 2 * len('{"a":"xyz"}')


def test_an_event_may_take_a_fortieth_of_the_budget():
    schema = EventSchema({"type": "object"})
    steps = schema.steps(event(a="xyz"))
    SchemaBudget(40 * steps).take(schema, event(a="xyz"))
    with pytest.raises(SchemaTooCostly, match="FORESTALL_LIMITS__MAX_SCHEMA_STEPS"):
        SchemaBudget(40 * steps - 1).take(schema, event(a="xyz"))


def test_events_share_the_budget_of_their_request():
    schema = EventSchema({"type": "object"})
    budget = SchemaBudget(40 * schema.steps(event(a="xyz")))
    for _ in range(40):
        budget.take(schema, event(a="xyz"))
    with pytest.raises(SchemaTooCostly, match="send fewer at a time"):
        budget.take(schema, event(a="xyz"))


def test_ordinary_batches_of_ten_megabytes_are_within_the_default():
    properties = {f"p{n}": {"type": "string", "maxLength": 100} for n in range(30)}
    schema = EventSchema({"type": "object", "required": list(properties), "properties": properties})
    large = event(**dict.fromkeys(properties, "x" * 25))
    assert 10_000 * len(orjson.dumps(large.data)) > 8_000_000
    assert 10_000 * schema.steps(large) < Limits().max_schema_steps
    assert 40 * schema.steps(event(text="x" * 1_000_000)) < 2 * Limits().max_schema_steps


def test_few_faults_are_told_and_of_a_large_event_the_first():
    schema = EventSchema({"items": {"minimum": 9}, "properties": {"list": {"items": {"minimum": 9}}}})
    with pytest.raises(EventBreaksSchema) as small:
        schema.require(event(list=[1, 2, 3, 4]), 1)
    assert small.value.message.count("less than the minimum") == 3
    with pytest.raises(EventBreaksSchema) as large:
        schema.require(event(list=[1] * 100_000), 1)
    assert large.value.message.count("less than the minimum") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="#17: RLIMIT_DATA bounds all memory on Linux only")
def test_faults_that_nobody_is_told_are_not_built():
    done = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
