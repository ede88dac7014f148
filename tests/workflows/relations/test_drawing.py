"""Origins of constraints in drawn models that are not made of blocks."""

import pytest

from constraints import Clause, Constraint, Exclusive, Prior, Require
from tests.builders.nets import flow_graph
from workflows.nets.graph import Block, Exit, FlowGraph, Repeat
from workflows.nets.net import Transition, WorkflowNet
from workflows.relations.drawing import Drawing, lazily
from workflows.relations.extraction import Extraction, Method

CROSSED = flow_graph("s > x1 > A > x2 > C > e1, x1 > B > x3 > D > e2, x2 > x3")
PARALLEL = flow_graph("s > p1 > A > e1, p1 > B > e2")
INSIDE = flow_graph("s > A > x1 > B > e, x1 > C > e")


@pytest.mark.parametrize(
    ("graph", "constraint", "words"),
    [
        (CROSSED, Exclusive("A", "B"), "the ways to A and B part at exclusive 'x1' (g.x1)"),
        (CROSSED, Exclusive("C", "D"), "the ways to C and D part at exclusive 'x2' (g.x2)"),
        (CROSSED, Prior("B", "A"), "the ways to B and A part at exclusive 'x1' (g.x1)"),
        (CROSSED, Prior("A", "C"), "a way leads from A to C, and none back"),
        (CROSSED, Prior("A", "A"), "no way leads from A back to A"),
        (CROSSED, Prior("C", "A"), ""),
        (CROSSED, Require("C", "A"), "every way to C passes A"),
        (CROSSED, Require("B", "D"), "every way on from B passes D"),
        (CROSSED, Require("A", "C"), ""),
        (flow_graph("s > A > x1 > B > x1, x1 > e"), Clause(frozenset(), "A"), "every way through the model passes A"),
        (flow_graph("s > A > x1 > B > x1, x1 > e"), Clause(frozenset(), "B"), ""),
        (flow_graph("s > A > x1 > B > x1, x1 > e"), Prior("B", "B"), ""),
        (CROSSED, Clause(frozenset("AB"), "C"), ""),
        (CROSSED, Exclusive("A", "Z"), ""),
    ],
)
def test_ways_of_a_graph(graph: FlowGraph, constraint: Constraint, words: str) -> None:
    assert Drawing.of_graph(graph).explain(constraint) == words


def test_ways_lead_through_blocks_and_out_by_their_exits() -> None:
    exits = (Exit(id="late"),)
    drawing = Drawing.of_graph(flow_graph("s > b1 > D > e1, b1.late > E > e2", b1=Block(graph=INSIDE, exits=exits)))
    assert drawing.explain(Require("D", "A")) == "every way to D passes A"
    assert drawing.explain(Require("E", "A")) == ""
    assert drawing.explain(Prior("B", "E")) == "a way leads from B to E, and none back"
    assert drawing.explain(Exclusive("B", "C")) == "the ways to B and C part at exclusive 'x1' (g.b1/g.x1)"


def test_a_block_that_repeats_leads_back() -> None:
    repeated = Block(graph=INSIDE, repeat=Repeat(least=0))
    drawing = Drawing.of_graph(flow_graph("s > b1 > D > e", b1=repeated))
    assert drawing.explain(Prior("A", "B")) == ""
    assert drawing.explain(Require("D", "A")) == ""


def test_ways_of_a_net() -> None:
    net = WorkflowNet(
        places=("place 'start' (p1)", "place 'end' (p2)"),
        transitions=(
            Transition(inputs=(0,), outputs=(1,), label="A", element="transition 'A' (t1)"),
            Transition(inputs=(0,), outputs=(1,), label="B", element="transition 'B' (t2)"),
            Transition(inputs=(), outputs=(1,), label="C", element="transition 'C' (t3)"),
        ),
        initial=(0,),
        finals=((1,),),
    )
    drawing = Drawing.of_net(net)
    assert drawing.explain(Exclusive("A", "B")) == "the ways to A and B part at place 'start' (p1)"
    assert drawing.explain(Exclusive("A", "C")) == ""


def test_the_drawing_is_made_when_it_is_asked_for() -> None:
    extraction = Extraction(
        events=("A", "B", "C", "D"),
        prior=(("A", "C"), ("C", "A")),
        exclusive=(),
        require=(),
        horn=(),
        end=(),
        method=Method.AUTOMATON,
    )
    made = []

    def draw() -> Drawing:
        made.append(True)
        return Drawing.of_graph(CROSSED)

    origins = lazily(draw, extraction)
    assert not made
    found = "found by all traces together, in the automaton of the model"
    assert dict(origins) == {
        Prior("A", "C"): "a way leads from A to C, and none back",
        Prior("C", "A"): f"no trace has activity 'C' (g.C) after activity 'A' (g.A): {found}",
    }
    drawing = Drawing.of_graph(CROSSED)
    a, b, c = (f"activity '{name}' (g.{name})" for name in "ABC")
    for constraint, said in (
        (Prior("A", "A"), f"no trace has {a} twice"),
        (Exclusive("A", "B"), f"no trace has {a} and {b} together"),
        (Require("A", "B"), f"no trace has {a} without {b}"),
        (Clause(frozenset(), "A"), f"every trace has {a}"),
        (Clause(frozenset({"A", "B"}), "C"), f"no trace has {a} and {b} without {c}"),
        (Clause(frozenset({"A", "B", "C"}), None), f"no trace has {a} and {b} and {c} together"),
    ):
        assert drawing.restate(constraint, "so") == f"{said}: so"
    assert len(made) == 1
