"""Models to all that follows from them, whichever form they came in."""

from pathlib import Path

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from constraints import Exclusive, Prior
from tests.builders.nets import drawn_blocks, flow_graph, flow_graphs, tree_to_net
from tests.builders.workflows import broken_parts, process_trees
from tests.references.nets import words_of_graph
from workflows import (
    Activity,
    AutomatonTooLarge,
    CompiledWorkflow,
    CompileLimits,
    Extraction,
    Method,
    ModelFormat,
    ModelNotice,
    ModelRefused,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    UnsoundWorkflow,
    WorkflowModel,
    check_trace,
    compile_workflow,
    order_fulfilment,
    playable,
    read_model,
)
from workflows.model import Source
from workflows.nets.graph import Block, Exit, FlowGraph, Repeat
from workflows.nets.net import Transition, WorkflowNet
from workflows.nets.tree_nets import can_be_net
from workflows.relations.compositional import extraction_of_tree

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
CROSSED = "s > x1 > A > x2 > C > e1, x1 > B > x3 > D > e2, x2 > x3"


def model_of(source: Source, *notices: ModelNotice) -> WorkflowModel:
    """A model as a reader would give it."""
    return WorkflowModel(name="m", format=ModelFormat.TREE, source=source, notices=notices)


def compiled(source: Source, limits: CompileLimits | None = None) -> CompiledWorkflow:
    """All that follows from a tree, a graph or a net."""
    return compile_workflow(model_of(source), limits)


def relations(extraction: Extraction) -> dict[str, object]:
    """What holds, however it was found."""
    document = extraction.to_document()
    return {name: document[name] for name in ("prior", "exclusive", "require", "horn", "end", "events")}


@pytest.mark.parametrize("form", ["bpmn", "pnml", "yaml"])
def test_the_order_workflow_says_the_same_in_every_form(form: str) -> None:
    read = compile_workflow(read_model((EXAMPLES / f"order.{form}").read_bytes()))
    exact = extraction_of_tree(order_fulfilment())
    assert relations(read.extraction) == relations(exact)
    assert read.extraction.method is Method.COMPOSITIONAL
    assert read.tree is not None
    yaml = compile_workflow(read_model((EXAMPLES / "order.yaml").read_bytes()))
    assert read.automaton == yaml.automaton
    assert read.automaton is not None


def test_a_graph_that_is_not_made_of_blocks_goes_by_its_automaton() -> None:
    found = compiled(flow_graph(CROSSED))
    assert found.extraction.method is Method.AUTOMATON
    assert found.tree is None
    assert found.net is not None
    assert found.automaton is not None
    assert found.extraction.exclusive == (("A", "B"), ("B", "C"), ("C", "D"))
    assert found.extraction.origins[Exclusive("A", "B")] == "the ways to A and B part at exclusive 'x1' (g.x1)"


@pytest.mark.parametrize("limits", [CompileLimits(max_states=1), CompileLimits(max_markings=1)])
def test_beyond_the_limits_it_goes_by_its_structure_and_says_why(limits: CompileLimits) -> None:
    found = compiled(flow_graph(CROSSED), limits)
    assert found.extraction.method is Method.STRUCTURAL
    assert found.automaton is None
    assert found.without_automaton
    assert any("from the structure" in warning for warning in found.extraction.warnings)
    assert ("A", "B") in found.extraction.exclusive
    assert Prior("A", "C") in found.extraction.origins


def test_blocks_without_an_automaton_lose_no_constraint() -> None:
    branches = (Sequence(tuple(Activity(f"task{row}{place}") for place in range(3))) for row in range(12))
    tree = Parallel(tuple(branches))
    found = compiled(tree)
    assert found.automaton is None
    assert "16777216" in found.without_automaton
    assert found.extraction == extraction_of_tree(tree)
    assert found.net is None


def test_notices_and_what_is_wrong_with_the_net_are_warnings() -> None:
    graph = flow_graph(CROSSED)
    found = compile_workflow(model_of(graph, ModelNotice(element="m_1", message="message flow ignored")))
    assert found.extraction.warnings == ("m_1: message flow ignored",)
    net = WorkflowNet(
        places=("the beginning", "the middle", "the end"),
        transitions=(
            Transition(inputs=(0,), outputs=(2,), label="A", element="task 'A'"),
            Transition(inputs=(0,), outputs=(1,), label="B", element="task 'B'"),
        ),
        initial=(0,),
        finals=((2,),),
    )
    stuck = compiled(net)
    assert stuck.extraction.events == ("A",)
    assert any("B" in warning for warning in stuck.extraction.warnings)


def test_a_model_that_never_completes_is_refused() -> None:
    net = WorkflowNet(
        places=("the beginning", "the end"),
        transitions=(Transition(inputs=(0, 1), outputs=(1,), label="A", element="task 'A'"),),
        initial=(0,),
        finals=((1,),),
    )
    with pytest.raises(UnsoundWorkflow):
        compiled(net)


@given(process_trees(300, has_repeated_names=True).filter(can_be_net))
@settings(max_examples=50)
def test_trees_and_their_nets_have_the_same_constraints(tree: ProcessTree) -> None:
    of_tree, of_net = compiled(tree), compiled(tree_to_net(tree))
    assert relations(of_tree.extraction) == relations(of_net.extraction)
    assert of_tree.automaton == of_net.automaton


@given(flow_graphs())
@settings(max_examples=40)
def test_what_is_found_in_any_graph_holds_on_its_short_traces(graph: FlowGraph) -> None:
    words = words_of_graph(graph, 4, most_tokens=3, most_looks=2_000)  # some graphs have too many games
    assume(words)
    try:
        found = compiled(graph, CompileLimits(max_markings=10_000)).extraction
        sound = compiled(graph, CompileLimits(max_markings=1)).extraction
    except (UnsoundWorkflow, ModelRefused):
        reject()
    for extraction in (found, sound):
        assert {event for word in words for event in word} <= set(extraction.events)
        assert not broken_parts(extraction, words)
        assert not [pair for pair in extraction.exclusive if any(set(pair) <= set(word) for word in words)]
        assert not [
            pair for pair in extraction.require if any(pair[0] in word and pair[1] not in word for word in words)
        ]
        assert not [name for name in extraction.end if any(name in word[:-1] for word in words)]
        for clause in extraction.horn:
            assert all(not clause.body <= set(word) or clause.head in word for word in words)


ENTERED_TWICE = (
    "s > p1 > x1 > b1 > C > t, p1 > x1",
    "s > p1 > x1 > b1 > C > e, p1 > D > x1",
    "s > p1 > b1 > x1 > C > e, p1 > D > x1 > b1",
    "s > o1 > b1 > o2 > C > e, o1 > D > o2, o1 > B > b1",
)


@st.composite
def entered_twice(draw: st.DrawFn) -> FlowGraph:
    """Graphs with a block that a token enters while another is in it."""
    block = draw(drawn_blocks("late", -1))
    exits = "".join(f", b1.{leaves.id} > E > {draw(st.sampled_from(['e9', 't9']))}" for leaves in block.exits)
    return flow_graph(draw(st.sampled_from(ENTERED_TWICE)) + exits, b1=block)


@given(entered_twice())
@settings(max_examples=80, deadline=None)
def test_what_is_found_holds_if_a_block_is_entered_while_it_runs(graph: FlowGraph) -> None:
    words = words_of_graph(graph, 4, most_tokens=8, most_looks=6_000)
    try:
        found = compiled(graph, CompileLimits(max_markings=10_000))
    except UnsoundWorkflow as error:
        if words and "without bound" not in str(error):
            raise
        reject()
    assert {event for word in words for event in word} <= set(found.extraction.events)
    assert not broken_parts(found.extraction, words)
    assert found.automaton is None or all(map(found.automaton.accepts, words))


WAITING = "s > x1 > A > e1, x1 > p1 > P > p2 > R > p3 > S > e2, p1 > p3, p2 > Q"
THROWING = "s > x1 > A > e1, x1 > P > q_late > p1 > Q > e2, p1 > R > e3"
ALONGSIDE = (Exit(id="late", is_interrupting=False, is_thrown=True),)


@pytest.mark.parametrize(
    ("flows", "block", "trace"),
    [
        ("s > p1 > X > b1 > C > t, p1 > Y > b1", Block(graph=flow_graph(WAITING)), "XYPAC"),
        (
            "s > p1 > b1 > C > t, p1 > p2 > b1, b1.late > H > p2",
            Block(graph=flow_graph(THROWING), exits=ALONGSIDE),
            "PHAC",
        ),
    ],
)
def test_a_block_that_waits_and_is_entered_while_it_runs_has_no_automaton(flows: str, block: Block, trace: str) -> None:
    graph = flow_graph(flows, b1=block)
    found = compiled(graph)
    assert tuple(trace) in words_of_graph(graph, 5, most_tokens=8)
    assert not broken_parts(found.extraction, [tuple(trace)])
    assert check_trace(found, tuple(trace)).conforms
    assert found.extraction.method is Method.STRUCTURAL
    assert found.automaton is None
    reason = "block 'b1' (g.b1) can be entered again while it runs, and an automaton cannot keep its runs apart"
    assert found.without_automaton == reason
    assert found.extraction.warnings[0] == reason
    with pytest.raises(AutomatonTooLarge, match="can be entered again"):
        playable(model_of(graph))


def test_one_that_only_joins_has_a_warning() -> None:
    inner = flow_graph("s > p1 > A > p2 > e, p1 > B > p2")
    found = compiled(flow_graph("s > p1 > X > b1 > C > t, p1 > Y > b1", b1=Block(graph=inner)))
    assert found.extraction.method is Method.AUTOMATON
    assert found.extraction.warnings == (
        "block 'b1' (g.b1) can be entered again while it runs; read as if branches of different runs could meet",
    )


@pytest.mark.parametrize("flows", ["s > b1 > x1 > C > e, x1 > b1", "s > p1 > b1 > p2 > C > e, p1 > X > p2"])
@pytest.mark.parametrize("repeat", [None, Repeat(least=0), Repeat(most=2, is_parallel=True)])
def test_one_that_is_entered_again_after_it_ended_has_an_automaton(flows: str, repeat: Repeat | None) -> None:
    block = Block(graph=flow_graph(WAITING), exits=(Exit(id="late"),), repeat=repeat)
    found = compiled(flow_graph(f"{flows}, b1.late > D > t", b1=block))
    assert found.extraction.method is Method.AUTOMATON
    assert not [warning for warning in found.extraction.warnings if "again" in warning]


def test_what_a_net_cannot_say_exactly_is_a_warning() -> None:
    many = Block(graph=flow_graph("s > P > Q > e"), repeat=Repeat(least=1, is_parallel=True))
    source = flow_graph(CROSSED.replace("A", "b1"), b1=many)
    found = compiled(source).extraction
    assert [warning for warning in found.warnings if "b1" in warning]
    assert ("P", "Q") in found.require


def test_a_model_without_events_is_told() -> None:
    (warning,) = compiled(Silent()).extraction.warnings
    assert warning.startswith("the model emits no events")
