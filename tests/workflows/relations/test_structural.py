"""Extraction from the structure of nets: whatever it finds holds on every trace."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.builders.nets import tree_to_net
from tests.builders.workflows import broken_parts, process_trees
from tests.references.nets import words_of_net
from workflows import ProcessTree, UnsoundWorkflow, order_fulfilment
from workflows.nets.net import Transition, WorkflowNet
from workflows.nets.tree_nets import can_be_net
from workflows.relations.compositional import extraction_of_tree
from workflows.relations.extraction import Method
from workflows.relations.structural import WARNING, extraction_of_structure


@st.composite
def nets(draw: st.DrawFn) -> WorkflowNet:
    """Up to 5 places and 6 steps of any kind, most of which never complete."""
    places = draw(st.integers(1, 5))
    some = st.lists(st.integers(0, places - 1), max_size=2).map(lambda found: tuple(sorted(found)))
    steps = st.builds(
        Transition,
        inputs=some.filter(bool) if draw(st.booleans()) else some,
        outputs=some,
        label=st.sampled_from(["A", "B", "C", "D", None]),
        resets=some if draw(st.booleans()) else st.just(()),
        waits=some if draw(st.booleans()) else st.just(()),
    )
    return WorkflowNet(
        places=tuple(f"place {number}" for number in range(places)),
        transitions=tuple(draw(st.lists(steps, min_size=1, max_size=6))),
        initial=draw(some.filter(bool)),
        finals=tuple(draw(st.lists(some, min_size=1, max_size=2))),
    )


@given(nets())
@settings(max_examples=200)
def test_what_is_found_in_any_net_holds(net: WorkflowNet) -> None:
    words = words_of_net(net, 5, 6)
    try:
        found = extraction_of_structure(net)
    except UnsoundWorkflow:
        assert not words
        return
    assume(words)
    assert {event for word in words for event in word} <= set(found.events)
    assert not broken_parts(found, words)


@given(process_trees(1_000, has_repeated_names=True).filter(can_be_net))
def test_what_is_found_in_nets_of_blocks_holds(tree: ProcessTree) -> None:
    found, exact = extraction_of_structure(tree_to_net(tree)), extraction_of_tree(tree)
    assert found.events == exact.events
    for name in ("prior", "exclusive", "require", "horn", "end"):
        assert set(getattr(found, name)) <= set(getattr(exact, name))


def test_the_structure_of_the_order_workflow_says_all_there_is_to_say_of_pairs() -> None:
    found, exact = extraction_of_structure(tree_to_net(order_fulfilment())), extraction_of_tree(order_fulfilment())
    assert set(found.exclusive) == set(exact.exclusive)
    assert set(found.require) == set(exact.require)
    assert set(exact.prior) - set(found.prior) == set()
    assert found.end == exact.end
    assert found.method is Method.STRUCTURAL
    assert found.warnings == (WARNING,)


def choice_after_start(label: str) -> WorkflowNet:
    """A, then B or ``label``, which needs a token that nothing adds."""
    return WorkflowNet(
        places=("beginning", "middle", "nowhere", "end"),
        transitions=(
            Transition(inputs=(0,), outputs=(1,), label="A"),
            Transition(inputs=(1,), outputs=(3,), label="B"),
            Transition(inputs=(1, 2), outputs=(3,), label=label),
        ),
        initial=(0,),
        finals=((3,),),
    )


def test_steps_that_get_no_tokens_are_no_events_and_are_named() -> None:
    found = extraction_of_structure(choice_after_start("Ship"))
    assert found.events == ("A", "B")
    assert found.require == (("A", "B"), ("B", "A"))
    assert found.warnings == (WARNING, "Ship: in no complete trace")


def test_a_net_that_cannot_complete_is_refused() -> None:
    stuck = WorkflowNet(
        places=("beginning", "end"),
        transitions=(Transition(inputs=(0, 1), outputs=(1,), label="A"),),
        initial=(0,),
        finals=((1,),),
    )
    with pytest.raises(UnsoundWorkflow, match="no path leads from its start to an end"):
        extraction_of_structure(stuck)
