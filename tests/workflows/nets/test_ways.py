"""Ways through a graph, forwards and backwards."""

from hypothesis import given, settings

from tests.builders.nets import flow_graph, flow_graphs
from tests.references.nets import arrivals
from workflows.nets.graph import Block, Exit
from workflows.nets.ways import Ways, find_exit, iterate_nodes, thrown_in


@given(flow_graphs(depth=1))
@settings(max_examples=60, deadline=None)
def test_both_directions_find_the_same_ways(graph):
    ways = Ways(graph)
    for node in graph.nodes:
        heading = ways.heading_for(node)
        assert all(heading.get(flow.id, frozenset()) == arrivals(ways, (flow,), node) for flow in graph.flows)


def test_ways_lead_around_the_gateway():
    graph = flow_graph("s > x1 > A > o1 > B > x1, x1 > o1")
    ways = Ways(graph)
    gateway = ways.nodes["g.o1"]
    incoming = {flow.source: flow.id for flow in ways.into(gateway)}
    assert arrivals(ways, ways.out_of(ways.nodes["g.s"]), gateway) == set(incoming.values())
    assert arrivals(ways, ways.out_of(ways.nodes["g.A"]), gateway) == {incoming["g.A"]}


def test_blocks_are_searched():
    block = Block(graph=flow_graph("s > q_late"), exits=(Exit(id="late", is_thrown=True),))
    graph = flow_graph("s > b1 > e1, b1.late > A > e2, i > e3", b1=block)
    assert thrown_in(graph) == {"late"}
    assert len(list(iterate_nodes(graph))) == len(graph.nodes) + 2
    node = Ways(graph).nodes["g.b1"]
    assert find_exit((node,), "late") == (node, block.exits[0])
    assert find_exit((node,), "early") is None
    assert [node.id for node in Ways(graph).reached()] == ["g.b1", "g.e1", "g.A", "g.e2"]
