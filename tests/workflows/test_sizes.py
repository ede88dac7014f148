"""Models beyond the limits are refused before anything is derived from them, and those within cost little memory."""

import resource
import subprocess
import sys

import orjson
import pytest

from tests.builders.bpmn import MODEL
from workflows import CompileLimits, ModelFormat, ReadOptions, WorkflowTooLarge, compile_workflow, read_model

DEEP = pytest.mark.deep  # ten seconds each
ROOM = 1 << 30  # bytes of address space that deriving may take beside the interpreter and its libraries

WITHIN = """
import resource, sys
from service.registering.joining import Derived, effective_set
from constraints import ConstraintSet, analyse, check_set, parse_constraints, to_document
from nfa import build_query, parse_pattern
from streams import StreamDeclaration
from workflows import ModelFormat, compile_workflow, draw, read_model
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]),) * 2)
model = read_model(sys.stdin.buffer.read(), None, ModelFormat.TREE)
derived = Derived.of(compile_workflow(model), "w")
again = Derived.from_findings(derived.to_findings(), "w", 1)
for mode in ("exact", "tables"):
    joined = effective_set(ConstraintSet(), StreamDeclaration(name="s", key="key"), again, mode)
    assert not check_set(joined)
    parsed = parse_constraints(to_document(joined)).constraint_set
    query = build_query(parse_pattern("PATTERN p EVENT SEQ(T1 a, NOT T2 x, T9 b)"))
    assert parsed == joined and len(analyse(parsed, [query]).patterns) == 1
draw(model)
"""


def tree_of(operator, names):
    return orjson.dumps({"tree": {operator: list(names)}})


def names_of(count):
    return [f"T{number}" for number in range(count)]


def bpmn_of(body):
    return f'<definitions xmlns="{MODEL}"><process id="p">{body}</process></definitions>'.encode()


def parallel_branches(count):
    gateways = '<startEvent id="s"/><endEvent id="e"/><parallelGateway id="g"/><parallelGateway id="h"/>'
    ways = '<sequenceFlow id="i" sourceRef="s" targetRef="g"/><sequenceFlow id="o" sourceRef="h" targetRef="e"/>'
    branches = "".join(
        f'<task id="t{number}" name="T{number}"/><sequenceFlow id="f{number}" sourceRef="g" targetRef="t{number}"/>'
        f'<sequenceFlow id="k{number}" sourceRef="t{number}" targetRef="h"/>'
        for number in range(count)
    )
    return bpmn_of(gateways + ways + branches)


def refused(content, model_format, **limits):
    model = read_model(content, ReadOptions(), model_format)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(WorkflowTooLarge) as caught:
        compile_workflow(model, CompileLimits(**limits))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB
    return caught.value


@pytest.mark.parametrize("count", [301, 4_000, 9_900])
def test_a_long_sequence_is_refused_by_its_event_types(count):
    error = refused(tree_of("sequence", names_of(count)), ModelFormat.TREE)
    assert error.details == {"limit": "max_event_types", "most": 300}
    assert "more than 300 event types" in error.message


def test_two_thousand_parallel_branches_are_refused():
    assert refused(parallel_branches(2_000), ModelFormat.BPMN).limit == "max_event_types"


def test_many_elements_of_few_types_are_refused():
    error = refused(tree_of("sequence", ["T0"] * 6_000), ModelFormat.TREE)
    assert error.details == {"limit": "max_elements", "most": 5_000}


def test_blocks_in_blocks_count():
    inner = {"sequence": ["A", {"xor": [{"branch": "B"}, {"branch": "C"}]}]}
    content = orjson.dumps({"tree": inner})
    assert refused(content, ModelFormat.TREE, max_event_types=2).limit == "max_event_types"
    compile_workflow(read_model(content, ReadOptions(), ModelFormat.TREE), CompileLimits(max_event_types=3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "parts"),
    [("sequence", 3), *(pytest.param(name, 1, marks=DEEP) for name in ("sequence", "and", "xor"))],
)
def test_as_many_types_as_are_taken_fit_into_a_gigabyte(operator, parts):
    """A part of the types fits into a part of the room: what is derived are pairs."""
    names, room = names_of(CompileLimits().max_event_types // parts), ROOM // parts**2
    if operator == "and":  # the product of 300 branches has no automaton; one of few long branches has
        names = [{"sequence": names[first::2]} for first in range(2)]
    content = tree_of(operator, names if operator != "xor" else [{"branch": name} for name in names])
    done = subprocess.run([sys.executable, "-c", WITHIN, str(room)], input=content, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()[-2000:]
