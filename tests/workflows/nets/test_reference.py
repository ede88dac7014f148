"""The token game plays graphs and nets as their descriptions say."""

import pytest

from tests.builders.nets import flow_graph
from tests.references.nets import is_safe, words_of_graph, words_of_net
from workflows.errors import ModelRefused
from workflows.nets.graph import Block, Exit, Repeat
from workflows.nets.net import Transition, WorkflowNet


def words(graph, max_length=4):
    return {"".join(word) for word in words_of_graph(graph, max_length)}


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ("s > A > B > e", {"AB"}),
        ("s > A", {"A"}),
        ("s > x1 > A > x2 > e, x1 > B > x2", {"A", "B"}),
        ("s > p1 > A > p2 > C > e, p1 > B > p2", {"ABC", "BAC"}),
        ("s > p1 > A > x1 > C > e, p1 > B > x1", {"ACBC", "ABCC", "BACC", "BCAC"}),
        ("s > o1 > A > o2 > C > e, o1 > B > o2", {"AC", "BC", "ABC", "BAC"}),
        ("s > x1 > A > o2 > C > e, x1 > B > o2", {"AC", "BC"}),
        ("s > p1 > A > o2 > C > e, p1 > B > o2", {"ABC", "BAC"}),
        ("s > p1 > A > e1, p1 > B > t", {"B", "AB", "BA"}),
        ("s1 > A > e, s2 > B > e", {"A", "B"}),
        ("s > x1 > A > x1 > e", {"", "A", "AA", "AAA", "AAAA"}),
        ("s > x1 > A > p1 > e, x1 > B > p1", set()),
    ],
)
def test_gateways(flows, expected):
    assert words(flow_graph(flows)) == expected


def test_an_exit_that_interrupts_leaves_a_block_at_any_time():
    inner = flow_graph("s > A > B > e")
    block = Block(graph=inner, exits=(Exit(id="late"),))
    assert words(flow_graph("s > b1 > C > e1, b1.late > D > e2", b1=block)) == {"ABC", "D", "AD", "ABD"}


def test_a_block_whose_last_event_was_is_left_no_more():
    block = Block(graph=flow_graph("s > A"), exits=(Exit(id="late"),))
    assert words(flow_graph("s > b1 > C > e1, b1.late > D > e2", b1=block)) == {"AC", "D"}


def test_an_exit_that_does_not_interrupt_is_taken_once():
    block = Block(graph=flow_graph("s > A"), exits=(Exit(id="late", is_interrupting=False),))
    expected = {"AC", "DAC", "ADC", "ACD"}
    assert words(flow_graph("s > b1 > C > e1, b1.late > D > e2", b1=block)) == expected


def test_a_throw_takes_its_exit_only():
    block = Block(graph=flow_graph("s > A > x1 > B > e, x1 > q_late"), exits=(Exit(id="late", is_thrown=True),))
    assert words(flow_graph("s > b1 > C > e1, b1.late > D > e2", b1=block)) == {"ABC", "AD"}


def test_a_throw_ends_what_runs_beside_it():
    block = Block(graph=flow_graph("s > p1 > q_late, p1 > B > e"), exits=(Exit(id="late", is_thrown=True),))
    assert words(flow_graph("s > b1 > C > e1, b1.late > D > e2", b1=block)) == {"D", "BD"}


def test_a_throw_that_does_not_interrupt_goes_on():
    exits = (Exit(id="late", is_thrown=True, is_interrupting=False),)
    block = Block(graph=flow_graph("s > q_late > A > e"), exits=exits)
    assert words(flow_graph("s > b1 > e1, b1.late > D > e2", b1=block)) == {"AD", "DA"}


@pytest.mark.parametrize(
    ("repeat", "expected"),
    [
        (Repeat(least=0, most=1), {"", "AB"}),
        (Repeat(least=2, most=2), {"ABAB"}),
        (Repeat(least=0), {"", "AB", "ABAB"}),
        (Repeat(least=1, most=2, is_parallel=True), {"AB", "ABAB", "AABB"}),
        (Repeat(least=1, most=None, is_parallel=True), {"AB", "ABAB", "AABB"}),
        (Repeat(least=0, most=0), {""}),
    ],
)
def test_repeats(repeat, expected):
    block = Block(graph=flow_graph("s > A > B > e"), repeat=repeat)
    assert words(flow_graph("s > b1 > e", b1=block)) == expected


def test_terminate_ends_one_run_of_a_block():
    block = Block(graph=flow_graph("s > p1 > A > t, p1 > B > e"), repeat=Repeat(least=2, most=2))
    assert words(flow_graph("s > b1 > C > e", b1=block)) == {
        first + second + "C" for first in ("A", "AB", "BA") for second in ("A", "AB", "BA") if len(first + second) < 4
    }


def test_an_exit_that_nobody_has_is_refused():
    with pytest.raises(ModelRefused, match="late"):
        words_of_graph(flow_graph("s > q_late"), 2)


def test_safety_is_seen():
    assert is_safe(flow_graph("s > p1 > A > p2 > e, p1 > B > p2"), 3)
    assert not is_safe(flow_graph("s > p1 > A > x1 > C > e, p1 > B > x1"), 3)


def test_nets_reset_and_wait():
    net = WorkflowNet(
        places=("p", "q"),
        transitions=(
            Transition(inputs=(0,), outputs=(0, 1), label="A"),
            Transition(inputs=(0,), outputs=(), label="B", resets=(1,)),
            Transition(inputs=(0,), outputs=(), label="C", waits=(1,)),
        ),
        initial=(0,),
        finals=((),),
    )
    assert {"".join(word) for word in words_of_net(net, 3)} == {"B", "C", "AB", "AAB"}
