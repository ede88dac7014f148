"""Nets of trees have their traces, and end in one sink."""

import pytest
from hypothesis import HealthCheck, assume, given, settings

from tests.builders.nets import tree_to_graph, tree_to_net
from tests.builders.workflows import MOST_ROUNDS, process_trees
from tests.references.nets import words_of_graph, words_of_net
from tests.references.workflows import enumerate_language, words_of_tree
from workflows.errors import ModelRefused, UnderivableWorkflow
from workflows.nets.assembly import MOST_STEPS, Assembly, fuse_silent
from workflows.nets.net import Transition, WorkflowNet
from workflows.nets.normal_forms import is_short
from workflows.nets.tree_nets import can_be_net
from workflows.tree import Activity, ExclusiveChoice, InclusiveChoice, Instances, Loop, Parallel, Sequence, Silent

A, B, C, D, E = map(Activity, "ABCDE")
SETTINGS = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@given(process_trees(most_words=300))
@SETTINGS
def test_nets_have_the_words_of_their_trees(tree):
    assume(can_be_net(tree))
    net = tree_to_net(tree)
    assert words_of_net(net, 4) == words_of_tree(tree, 4)
    assert len(net.finals) == 1
    assert len(net.finals[0]) == 1
    assert not any(step.resets or step.waits for step in net.transitions)


@given(process_trees(most_words=100))
@SETTINGS
def test_graphs_have_the_words_of_their_trees(tree):
    assert words_of_graph(tree_to_graph(tree), 3) == words_of_tree(tree, 3)


@given(process_trees(most_words=300))
@SETTINGS
def test_short_words_are_those_of_the_language(tree):
    language = enumerate_language(tree, MOST_ROUNDS)
    assert {word for word in language if len(word) <= 3} <= words_of_tree(tree, 3)
    assert {word for word in words_of_tree(tree, 2) if word} <= {word for word in language if len(word) <= 2}


def test_a_wide_inclusive_choice_decides_branch_after_branch():
    tree = InclusiveChoice((A, B, C, D, E))
    net = tree_to_net(tree)
    assert len(net.transitions) < 2**5
    assert words_of_net(net, 2) == words_of_tree(tree, 2)


def test_instances_of_one_event_are_a_loop():
    assert words_of_net(tree_to_net(Instances(body=A)), 2) == {("A",), ("A", "A")}


def test_instances_of_more_events_are_refused():
    with pytest.raises(UnderivableWorkflow, match="A, B"):
        tree_to_net(Sequence((Instances(body=Sequence((A, B))), C)))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (A, True),
        (ExclusiveChoice((A, B, Silent())), True),
        (Sequence((A, Silent())), True),
        (Parallel((A, B)), False),
        (Loop(body=A), False),
        (Loop(body=Silent()), True),
    ],
)
def test_short_trees(tree, expected):
    assert is_short(tree) is expected


def test_fusing_keeps_a_choice_that_can_fail():
    """From ``p`` either an event, or a wait in ``q`` for what never comes: that stays to be seen."""
    net = WorkflowNet(
        places=("p", "q", "r", "end"),
        transitions=(
            Transition(inputs=(0,), outputs=(3,), label="A"),
            Transition(inputs=(0,), outputs=(1,)),
            Transition(inputs=(1, 2), outputs=(3,), label="B"),
        ),
        initial=(0,),
        finals=((3,),),
    )
    assert fuse_silent(net) == net


def test_fusing_leaves_out_what_makes_no_difference():
    net = WorkflowNet(
        places=("begin", "p", "q", "r", "end"),
        transitions=(
            Transition(inputs=(0,), outputs=(1,), label="A"),
            Transition(inputs=(1,), outputs=(2, 3)),
            Transition(inputs=(2,), outputs=()),
            Transition(inputs=(3,), outputs=(4,), label="B"),
        ),
        initial=(0,),
        finals=((4,),),
    )
    fused = fuse_silent(net)
    assert [step.label for step in fused.transitions] == ["A", "B"]
    assert len(fused.places) == 3
    assert words_of_net(fused, 3) == {("A", "B")}


def test_nets_do_not_grow_without_end():
    assembly = Assembly()
    place = assembly.place("p")
    for _ in range(MOST_STEPS):
        assembly.silent((place,), (place,))
    with pytest.raises(ModelRefused, match="repeat less"):
        assembly.silent((place,), (place,))
