"""Gateways, and what several flows without one mean."""

import pytest

from tests.builders.bpmn import process, read, tasks, words, words_of
from workflows.errors import ModelRefused
from workflows.nets.graph import FlowGraph

START = '<startEvent id="s"/>'


def gateway(kind: str, identity: str, attributes: str = "") -> str:
    return f'<{kind}Gateway id="{identity}" {attributes}/>'


def shuffled(*orders: str) -> set[str]:
    return {" ".join(order) for order in orders}


@pytest.mark.parametrize("kind", ["exclusive", "eventBased"])
def test_one_flow_is_taken(kind: str) -> None:
    body = START + gateway(kind, "g") + tasks("A B C") + gateway("exclusive", "j")
    assert words(body, "s>g g>A g>B A>j B>j j>C") == {"A C", "B C"}


def test_a_default_flow_of_an_exclusive_gateway_is_one_of_the_choices() -> None:
    body = START + gateway("exclusive", "g", 'default="g-B"') + tasks("A B")
    assert words(body, "s>g g?>A g>B") == {"A", "B"}


def test_all_flows_are_taken_and_waited_for() -> None:
    body = START + gateway("parallel", "g") + tasks("A B C") + gateway("parallel", "j")
    assert words(body, "s>g g>A g>B A>j B>j j>C") == {"A B C", "B A C"}


def test_any_flows_are_taken_and_waited_for() -> None:
    body = START + gateway("inclusive", "g") + tasks("A B C") + gateway("inclusive", "j")
    assert words(body, "s>g g?>A g?>B A>j B>j j>C") == {"A C", "B C", "A B C", "B A C"}


@pytest.mark.parametrize("before", ["s>g", "s>i>g s>g"])
def test_the_default_of_an_inclusive_gateway_comes_alone(before: str) -> None:
    body = START + tasks("A B D C") + gateway("inclusive", "g", 'default="g-D"') + gateway("inclusive", "j")
    if "i" in before:
        body += '<intermediateThrowEvent id="i"/>'
    found = words(body, f"{before} g?>A g?>B g>D A>j B>j D>j j>C")
    assert found == {"D C", "A C", "B C", "A B C", "B A C"}


def test_a_gateway_joins_and_splits_at_once() -> None:
    body = START + gateway("exclusive", "g") + tasks("A B C")
    assert words(body, "s>g g>A A>g g>B", length=3) == {"B", "A B", "A A B"}
    body = START + gateway("parallel", "x") + gateway("parallel", "y") + tasks("A B C D")
    assert words(body, "s>x x>A x>B A>y B>y y>C y>D") == shuffled("ABCD", "ABDC", "BACD", "BADC")


def test_several_flows_out_of_a_task_are_all_taken() -> None:
    assert words(START + tasks("A B C"), "s>A A>B A>C") == {"A B C", "A C B"}


def test_several_conditional_flows_out_of_a_task_are_an_inclusive_choice() -> None:
    assert words(START + tasks("A B C"), "s>A A?>B A?>C") == {"A B", "A C", "A B C", "A C B"}


def test_the_default_flow_of_a_task_comes_if_no_condition_holds() -> None:
    body = START + '<task id="A" default="A-D"/>' + tasks("B C D")
    assert words(body, "s>A A?>B A>D") == {"A B", "A D"}
    assert words(body, "s>A A?>B A?>C A>D") == {"A B", "A C", "A D", "A B C", "A C B"}


def test_unconditional_flows_are_taken_besides_conditional_ones() -> None:
    assert words(START + tasks("A B C"), "s>A A>B A?>C") == {"A B", "A B C", "A C B"}
    body = START + '<task id="A" default="A-D"/>' + tasks("B C D")
    assert words(body, "s>A A>B A?>C A>D") == {"A B C", "A C B", "A B D", "A D B"}


def test_a_default_without_conditions_beside_it_is_a_flow_like_others() -> None:
    body = START + '<task id="A" default="A-C"/>' + tasks("B C")
    assert words(body, "s>A A>B A>C") == {"A B C", "A C B"}
    assert words(body, "s>A A>C") == {"A C"}


def test_a_single_conditional_flow_is_taken() -> None:
    assert words(START + tasks("A B"), "s>A A?>B") == {"A B"}


def test_every_token_passes_a_task_that_several_flows_lead_to() -> None:
    assert words(START + tasks("A B C"), "s>A s>B A>C B>C") == {"A B C C", "A C B C", "B A C C", "B C A C"}


def test_a_gateway_without_outgoing_flow_is_an_end() -> None:
    model = read(process(START + tasks("A B") + gateway("parallel", "g"), "s>A s>B A>g B>g"))
    assert words_of(model) == {"A B", "B A"}
    assert [str(notice) for notice in model.notices] == ["g: no flow leaves parallel gateway (g); it is an end"]


def test_complex_gateways_are_refused() -> None:
    body = START + '<complexGateway id="g" name="2 of 3"/>' + tasks("A")
    with pytest.raises(ModelRefused) as caught:
        read(process(body, "s>g g>A"))
    assert caught.value.problems == (
        (
            "g",
            "complex gateway '2 of 3' (g): complex gateways are not read; use exclusive, inclusive or parallel ones",
        ),
    )


def test_gateways_that_create_instances_are_starts() -> None:
    catches = '<intermediateCatchEvent id="x"/><receiveTask id="R"/>'
    body = gateway("eventBased", "g", 'instantiate="true"') + catches + tasks("A")
    assert words(body, "g>x g>R x>A") == {"A", "R"}
    assert words(START + tasks("B") + body, "s>B g>x g>R x>A") == {"A", "R", "B"}
    every = gateway("eventBased", "g", 'instantiate="true" eventGatewayType="Parallel"') + catches + tasks("A")
    assert words(every, "g>x g>R x>A") == {"A R", "R A"}


def test_a_gateway_that_waits_for_what_never_starts_is_refused() -> None:
    body = START + tasks("A B C") + gateway("parallel", "j")
    with pytest.raises(ModelRefused) as caught:
        read(process(body, "s>A A>j B>j j>C"))
    assert caught.value.problems == (
        (
            "j",
            (
                "parallel gateway (j) waits for flow B-j from task (B), to which nothing leads; "
                "connect its source or remove the flow"
            ),
        ),
    )


def test_messages_about_gateways_have_their_names() -> None:
    body = START + '<exclusiveGateway id="g" name="In\n stock?"/>' + tasks("A B")
    source = read(process(body, "s>g g>A g>B")).source
    assert isinstance(source, FlowGraph)
    assert str(source.nodes[1]) == "exclusive gateway 'In stock?' (g)"
    assert source.nodes[1].name == "In stock?"
