"""Folding finds the blocks of drawn models, and never changes their traces."""

import pytest
from hypothesis import HealthCheck, example, given, settings

from tests.builders.nets import flow_graph, flow_graphs, to_net, tree_to_graph, tree_to_net
from tests.builders.workflows import process_trees
from tests.references.nets import words_of_graph, words_of_net
from tests.references.workflows import words_of_tree
from workflows.nets.folding import fold_graph, fold_net
from workflows.nets.graph import Block, Exit, Repeat
from workflows.nets.net import Transition, WorkflowNet
from workflows.nets.tree_nets import can_be_net
from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    Sequence,
    Silent,
    iterate_activities,
)

A, B, C, D = map(Activity, "ABCD")
MAX_LENGTH = 4


@given(flow_graphs(depth=1))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_folds_has_the_traces_of_the_graph(graph):
    tree = fold_graph(graph)
    assert tree is None or words_of_tree(tree, 3) == words_of_graph(graph, 3)
    net = to_net(graph)
    folded = fold_net(net)
    assert folded is None or words_of_tree(folded, 3) == words_of_net(net, 3)


_AB = Loop(body=A, redo=B)


@given(process_trees(most_words=300))
@example(InclusiveChoice((Silent(), Parallel((Silent(), Parallel((Silent(), _AB)))))))
@example(Parallel((Silent(), InclusiveChoice((Silent(), Sequence((Silent(), A)))))))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_drawn_trees_fold_to_their_own_language(tree):
    words = words_of_tree(tree, MAX_LENGTH)
    graph = tree_to_graph(tree)
    folded = fold_graph(graph)
    assert folded is not None
    assert words_of_tree(folded, MAX_LENGTH) == words
    if can_be_net(tree):
        again = fold_net(tree_to_net(tree))
        assert again is not None
        assert words_of_tree(again, MAX_LENGTH) == words


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ("s > A > i > B > e", Sequence((A, B))),
        ("s > x1 > A > x2 > e, x1 > x2", ExclusiveChoice((A, Silent()))),
        ("s > x1 > A > e1, x1 > B > e2", ExclusiveChoice((A, B))),
        ("s1 > A > e, s2 > B > e", ExclusiveChoice((A, B))),
        ("s > p1 > A > e1, p1 > B > e2", Parallel((A, B))),
        ("s > p1 > A > p2 > C > e, p1 > B > p2", Sequence((Parallel((A, B)), C))),
        ("s > o1 > A > o2 > C > e, o1 > B > o2", Sequence((InclusiveChoice((A, B)), C))),
        ("s > o1 > A > e1, o1 > B > e2", InclusiveChoice((A, B))),
        ("s > p1 > A > o1, p1 > x1 > B > o1, x1 > C > o1 > e", Parallel((A, ExclusiveChoice((B, C))))),
        ("s > x1 > A > x2 > e, x2 > x1", Loop(body=A)),
        ("s > x1 > A > x2 > e, x2 > B > x1", Loop(body=A, redo=B)),
        ("s > x1 > A > x1 > e", Loop(body=Silent(), redo=A)),
        ("s > x1 > A > t, x1 > B > e", ExclusiveChoice((A, B))),
        (
            "s > p1 > A > p2, p1 > B > p2 > x1 > C > t, x1 > e",
            Sequence((Parallel((A, B)), ExclusiveChoice((C, Silent())))),
        ),
        ("s > p1 > A > t, p1 > B > e", None),
        ("s > p1 > A > p2 > e, p1 > x1 > B > p2, x1 > C > e2", None),
        ("s > A > e, B > e", None),
        ("s > p1 > A > x1 > C > e, p1 > B > x1", None),
    ],
)
def test_shapes(flows, expected):
    assert fold_graph(flow_graph(flows)) == expected


@pytest.mark.parametrize(
    ("repeat", "expected"),
    [
        (None, Sequence((A, B))),
        (Repeat(), Loop(body=Sequence((A, B)))),
        (Repeat(least=0, most=1), ExclusiveChoice((Sequence((A, B)), Silent()))),
        (Repeat(least=3, most=3), Loop(body=Sequence((A, B)), repetitions=3)),
        (Repeat(is_parallel=True), Instances(body=Sequence((A, B)))),
        (Repeat(least=2, most=2, is_parallel=True), Parallel((Sequence((A, B)), Sequence((A, B))))),
        (Repeat(least=0, most=10_000), None),
    ],
)
def test_repeated_blocks(repeat, expected):
    block = Block(graph=flow_graph("s > A > B > e"), repeat=repeat)
    assert fold_graph(flow_graph("s > b1 > e", b1=block)) == expected


@pytest.mark.parametrize("repeat", [Repeat(least=0), Repeat(least=2), Repeat(least=1, most=3, is_parallel=True)])
def test_repeated_blocks_have_their_words(repeat):
    graph = flow_graph("s > b1 > C > e", b1=Block(graph=flow_graph("s > A > B > e"), repeat=repeat))
    tree = fold_graph(graph)
    assert tree is not None
    assert words_of_tree(tree, 5) == words_of_graph(graph, 5)


def test_an_activity_that_can_be_interrupted_is_a_choice():
    block = Block(graph=flow_graph("s > A"), exits=(Exit(id="late"),))
    graph = flow_graph("s > b1 > x1 > e, b1.late > D > x1", b1=block)
    assert fold_graph(graph) == ExclusiveChoice((A, D))


def test_an_exit_that_does_not_interrupt_runs_beside_the_rest():
    block = Block(graph=flow_graph("s > A > B > e"), exits=(Exit(id="late", is_interrupting=False),))
    graph = flow_graph("s > b1 > C > e1, b1.late > D > e2", b1=block)
    tree = fold_graph(graph)
    assert tree is not None
    assert words_of_tree(tree, 4) == words_of_graph(graph, 4)
    assert sum(1 for _ in iterate_activities(tree)) == 4


def test_a_thrown_exit_is_a_choice():
    block = Block(graph=flow_graph("s > A > x1 > B > e, x1 > q_late"), exits=(Exit(id="late", is_thrown=True),))
    graph = flow_graph("s > b1 > x1 > e, b1.late > D > x1", b1=block)
    assert fold_graph(graph) == Sequence((A, ExclusiveChoice((B, D))))


def test_origins_name_the_elements():
    tree = fold_graph(flow_graph("s > x1 > A > x2 > e, x1 > p1 > B > p2 > x2, p1 > C > p2"))
    assert isinstance(tree, ExclusiveChoice)
    assert tree.origin == "exclusive 'x1' (g.x1)"
    assert [activity.origin for activity in iterate_activities(tree)] == [f"activity '{n}' (g.{n})" for n in "ABC"]
    (block,) = (branch for branch in tree.branches if isinstance(branch, Parallel))
    assert block.origin == "parallel 'p1' (g.p1)"


def net_of(steps, initial="i", finals=("o",)):
    """A net from (inputs, label, outputs), each place a letter."""
    places = sorted({place for inputs, _, outputs in steps for place in inputs + outputs} | set(initial))
    number = {place: index for index, place in enumerate(places)}

    def numbers(names):
        return tuple(sorted(number[name] for name in names))

    return WorkflowNet(
        places=tuple(places),
        transitions=tuple(
            Transition(inputs=numbers(inputs), outputs=numbers(outputs), label=label or None, element=label)
            for inputs, label, outputs in steps
        ),
        initial=numbers(initial),
        finals=tuple(map(numbers, finals)),
    )


def test_a_net_as_the_inductive_miner_writes_it():
    steps = [
        ("i", "A", "a"),
        ("a", "", "b"),  # into the loop
        ("b", "", "cd"),  # parallel split
        ("c", "B", "e"),
        ("c", "", "e"),  # skip
        ("d", "C", "f"),
        ("ef", "", "g"),  # parallel join
        ("g", "D", "b"),  # redo
        ("g", "", "h"),  # out of the loop
        ("h", "E", "o"),
    ]
    inner = Parallel((ExclusiveChoice((B, Silent())), C))
    assert fold_net(net_of(steps)) == Sequence((A, Loop(body=inner, redo=D), Activity("E")))


def test_splits_and_joins_may_be_shared():
    steps = [("i", "A", "ab"), ("a", "B", "c"), ("b", "C", "d"), ("cd", "D", "ab"), ("cd", "E", "o")]
    assert fold_net(net_of(steps)) == Sequence((A, Loop(body=Parallel((B, C)), redo=D), Activity("E")))


@pytest.mark.parametrize(
    "net",
    [
        net_of([("i", "A", "aa"), ("aa", "B", "o")]),
        net_of([("i", "A", "ab"), ("a", "B", "o"), ("b", "C", "o")]),
        net_of([("i", "A", "a"), ("a", "B", "o"), ("x", "C", "o")]),
        net_of([("i", "A", "ab"), ("a", "B", "c"), ("b", "C", "d"), ("c", "D", "o")]),
        net_of([("i", "A", "o")], finals=("io",)),
        net_of([("i", "A", "o")], finals=()),
        net_of([("", "A", "o"), ("i", "B", "o")]),
    ],
)
def test_other_nets_do_not_fold(net):
    assert fold_net(net) is None


def test_arcs_that_reset_or_wait_do_not_fold():
    step = Transition(inputs=(0,), outputs=(1,), label="A", resets=(1,))
    assert fold_net(WorkflowNet(places=("i", "o"), transitions=(step,), initial=(0,), finals=((1,),))) is None


def test_large_models_fold_whole():
    activities = [Activity(f"T{index}") for index in range(200)]
    blocks = [Parallel((activities[i], ExclusiveChoice((activities[i + 1], Silent())))) for i in range(0, 200, 2)]
    tree = Sequence(tuple(blocks))
    assert fold_graph(tree_to_graph(tree)) == tree
