"""Nets of flow graphs have the traces that the graphs' own game has."""

import pytest
from hypothesis import HealthCheck, assume, given, settings

from tests.builders.nets import flow_graph, flow_graphs, to_net
from tests.references.nets import is_safe, words_of_graph, words_of_net
from workflows.errors import ModelRefused
from workflows.nets.graph import Block, Exit, Flow, FlowGraph, Node, NodeKind, Repeat
from workflows.nets.translation import MOST_JOINED, MOST_SPLIT, translate

MAX_LENGTH = 3
MOST_LOOKS = 3_000  # a graph in a thousand would take minutes


def words(net, max_length=4):
    return {"".join(word) for word in words_of_net(net, max_length)}


@given(flow_graphs(depth=1))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_a_net_has_the_traces_of_its_graph(graph):
    assume(is_safe(graph, MAX_LENGTH, most_looks=MOST_LOOKS))
    translation = translate(graph)
    assert not translation.notices
    assert words_of_net(translation.net, MAX_LENGTH) == words_of_graph(graph, MAX_LENGTH)


@pytest.mark.parametrize(
    "flows",
    [
        # an inclusive join in a loop, and one with a way around another
        "s > x1 > o1 > A > o2 > x2 > e, o1 > B > o2, x2 > C > x1",
        "s > o1 > A > o2 > C > o3 > e, o1 > B > o2, o1 > D > o3",
        # two inclusive joins that wait for each other's tokens
        "s > p1 > x1 > A > o1 > x3 > e1, x1 > o2, p1 > x2 > B > o2 > x4 > e2, x2 > o1, x3 > C > o2",
        "s > p1 > A > t, p1 > B > C > e",
        "s > p1 > A > p2 > D > e, p1 > x1 > B > p2, x1 > C > p2",
    ],
)
def test_graphs_without_blocks(flows):
    graph = flow_graph(flows)
    assert words_of_net(to_net(graph), 4) == words_of_graph(graph, 4)


@pytest.mark.parametrize("inner", ["s > A", "s > A > e", "s > p1 > A > e1, p1 > B > e2", "s > p1 > A > t, p1 > B > e"])
@pytest.mark.parametrize("is_interrupting", [True, False])
@pytest.mark.parametrize("repeat", [None, Repeat(least=2, most=2), Repeat(least=0), Repeat(most=2, is_parallel=True)])
def test_blocks_with_an_exit(inner, is_interrupting, repeat):
    exits = (Exit(id="late", is_interrupting=is_interrupting),)
    block = Block(graph=flow_graph(inner), exits=exits, repeat=repeat)
    graph = flow_graph("s > b1 > C > e1, b1.late > D > e2", b1=block)
    assert words_of_net(to_net(graph), 4) == words_of_graph(graph, 4)


@pytest.mark.parametrize("is_interrupting", [True, False])
@pytest.mark.parametrize("inner", ["s > A > x1 > q_late > e, x1 > B > e", "s > p1 > q_late > A > e1, p1 > B > e2"])
def test_blocks_with_a_thrown_exit(inner, is_interrupting):
    exits = (Exit(id="late", is_interrupting=is_interrupting, is_thrown=True),)
    middle = Block(graph=flow_graph("s > b2 > e", b2=Block(graph=flow_graph(inner))), exits=exits)
    graph = flow_graph("s > b1 > C > e1, b1.late > D > e2", b1=middle)
    assert words_of_net(to_net(graph), 4) == words_of_graph(graph, 4)


@pytest.mark.parametrize("repeat", [None, Repeat(least=2, most=2), Repeat(most=2, is_parallel=True)])
@pytest.mark.parametrize("is_interrupting", [True, False])
@pytest.mark.parametrize("is_thrown", [True, False])
def test_an_exit_without_a_flow_ends_its_graph(is_thrown, is_interrupting, repeat):
    exits = (Exit(id="late", is_interrupting=is_interrupting, is_thrown=is_thrown),)
    last = "q_late" if is_thrown else "B"
    inner = Block(graph=flow_graph(f"s > x1 > A > e, x1 > {last}"), exits=exits)
    outer = Block(graph=flow_graph("s > b1 > D > e", b1=inner), repeat=repeat)
    graph = flow_graph("s > b2 > C > e", b2=outer)
    assert words_of_net(to_net(graph), 5) == words_of_graph(graph, 5)


def test_plain_blocks_make_plain_nets():
    block = Block(graph=flow_graph("s > p1 > A > e1, p1 > B > e2"), repeat=Repeat())
    net = to_net(flow_graph("s > x1 > b1 > x2 > e, x1 > C > x2", b1=block))
    assert not any(step.waits or step.resets for step in net.transitions)


def test_single_activities_at_once_are_a_loop():
    block = Block(graph=flow_graph("s > A > e"), repeat=Repeat(is_parallel=True))
    translation = translate(flow_graph("s > b1 > e", b1=block))
    assert not translation.notices
    assert words(translation.net, 3) == {"A", "AA", "AAA"}


def test_bigger_blocks_at_once_are_read_loosely():
    block = Block(graph=flow_graph("s > A > B > e"), repeat=Repeat(is_parallel=True))
    graph = flow_graph("s > b1 > C > e", b1=block)
    translation = translate(graph)
    assert [element for element, _ in translation.notices] == ["g.b1"]
    assert words_of_net(translation.net, 4) > words_of_graph(graph, 4)
    assert all({"A", "B"} <= set(word) for word in words(translation.net))


def test_large_numbers_of_bigger_blocks_at_once_have_one_run():
    block = Block(graph=flow_graph("s > p1 > A > e1, p1 > B > e2"), repeat=Repeat(least=99, most=99, is_parallel=True))
    translation = translate(flow_graph("s > b1 > e", b1=block))
    assert [element for element, _ in translation.notices] == ["g.b1"]
    assert words(translation.net, 3) == {"AB", "BA", "AAB", "ABA", "BAA", "ABB", "BAB", "BBA"}


def test_bigger_blocks_at_once_may_be_left_out():
    block = Block(graph=flow_graph("s > A > B > e"), repeat=Repeat(least=0, is_parallel=True))
    assert words(to_net(flow_graph("s > b1 > e", b1=block)), 1) == {"", "A", "B"}


def test_large_numbers_of_runs_are_not_counted():
    block = Block(graph=flow_graph("s > A > e"), repeat=Repeat(least=1, most=1000))
    translation = translate(flow_graph("s > b1 > e", b1=block))
    assert [element for element, _ in translation.notices] == ["g.b1"]
    assert words(translation.net, 3) == {"A", "AA", "AAA"}


@pytest.mark.parametrize(("count", "is_join"), [(MOST_JOINED + 1, True), (MOST_SPLIT + 1, False)])
def test_wide_inclusive_gateways_are_refused(count, is_join):
    branches = [f"p1 > A{index} > o1" if is_join else f"o1 > A{index} > e" for index in range(count)]
    flows = ", ".join(["s > p1" if is_join else "s > o1", *branches, *(["o1 > e"] if is_join else [])])
    with pytest.raises(ModelRefused, match="o1"):
        to_net(flow_graph(flows))


def test_exits_that_nobody_has_are_refused():
    with pytest.raises(ModelRefused, match="late"):
        to_net(flow_graph("s > q_late"))


def test_dangling_flows_and_split_activities_are_refused():
    start = Node(id="start", kind=NodeKind.START)
    graph = FlowGraph(id="g", nodes=(start,), flows=(Flow(id="f", source="start", target="away"),))
    with pytest.raises(ModelRefused, match="away"):
        to_net(graph)
    with pytest.raises(ModelRefused, match="2 flows"):
        to_net(flow_graph("s > A > e1, A > e2"))


def test_steps_say_which_element_they_are():
    net = to_net(flow_graph("s > A > e"))
    assert [step.element for step in net.transitions] == ["activity 'A' (g.A)"]
