"""Nothing comes between the last activity and an end."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.bpmn import boundary, process, read, sub_process, tasks, words
from tests.references.language import words_of
from tests.references.nets import words_of_graph
from workflows import compile_workflow
from workflows.formats.bpmn.endings import end_at_once
from workflows.nets.graph import FlowGraph

START = '<startEvent id="s"/>'
STOP = '<endEvent id="stop"><terminateEventDefinition/></endEvent>'
FORK = '<parallelGateway id="fork"/>'


def gateways(names: str) -> str:
    return "".join(f'<exclusiveGateway id="{name}"/>' for name in names.split())


@st.composite
def branches(draw: st.DrawFn) -> list[tuple[str, bool]]:
    """Branches side by side: how many tasks each has, and whether it terminates all."""
    counts = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
    letters = iter("ABCDEF")
    return [("".join(next(letters) for _ in range(count)), draw(st.booleans())) for count in counts]


def expected(branches: list[tuple[str, bool]]) -> set[str]:
    """All interleavings, which end with the last task of a branch that terminates, or any time if it has none."""

    def play(left: list[tuple[str, bool]]) -> Iterator[str]:
        if not any(names for names, _ in left) or any(ends and not names for names, ends in left):
            yield ""
        for index, (names, ends) in enumerate(left):
            if not names:
                continue
            if ends and len(names) == 1:
                yield names
                continue
            rest = [*left[:index], (names[1:], ends), *left[index + 1 :]]
            yield from (names[0] + word for word in play(rest))

    return {" ".join(word) for word in play(branches)}


@settings(max_examples=120, deadline=None)
@given(branches(), st.booleans())
def test_a_terminate_comes_with_the_last_task_of_its_branch(parts: list[tuple[str, bool]], is_inner: bool) -> None:
    body, arrows = START + FORK, "s>fork"
    for number, (names, ends) in enumerate(parts):
        end = f"e{number}"
        definition = "<terminateEventDefinition/>" if ends else ""
        body += tasks(" ".join(names)) + f'<endEvent id="{end}">{definition}</endEvent>'
        arrows += " " + ">".join(("fork", *names, end))
    if is_inner:
        assert words(sub_process("sub", body, arrows)) == expected(parts)
    else:
        assert words(body, arrows) == expected(parts)


@pytest.mark.parametrize("loop", ["x>x", "x>y>x"])
def test_a_terminate_ends_a_loop_in_which_nothing_happens(loop: str) -> None:
    model = read(process(START + FORK + tasks("A B") + gateways("x y") + STOP, f"s>fork>A>B>stop fork>{loop}"))
    assert isinstance(model.source, FlowGraph)
    automaton = compile_workflow(model).automaton
    assert automaton is not None
    assert words_of(automaton, 3) == {("A", "B")} == words_of_graph(model.source, 3)


def test_a_choice_to_terminate_is_made_before_the_task() -> None:
    body = START + FORK + tasks("A B C") + gateways("g h") + STOP
    assert words(body, "s>fork>A>g g>h h>stop g>C fork>B") == {"A", "B A", "A B C", "A C B", "B A C"}


def test_a_gateway_that_goes_nowhere_else_is_left_out() -> None:
    body = START + FORK + tasks("A B D") + gateways("g h") + STOP
    assert words(body, "s>fork>A>g g>h h>stop fork>B>g fork>D") == {"A", "B", "D A", "D B"}


def test_a_gateway_after_other_things_keeps_its_ways() -> None:
    body = START + FORK + '<intermediateCatchEvent id="x"/>' + tasks("A B C") + gateways("g") + STOP
    assert {"A", "B A", "A B"} <= words(body, "s>fork>A>g fork>B fork>x>g g>stop g>C", length=3)


@pytest.mark.parametrize("end", ["", "<terminateEventDefinition/>"])
def test_a_block_with_nothing_left_to_do_is_not_interrupted(end: str) -> None:
    inner = sub_process("sub", START + tasks("A B") + f'<endEvent id="e">{end}</endEvent>', "s>A>B>e")
    body = '<startEvent id="t"/>' + inner + boundary("x", "sub") + tasks("C D")
    assert words(body, "t>sub>C x>D") == {"A B C", "D", "A D"}


def test_nor_is_one_whose_last_step_is_a_choice_of_ends() -> None:
    ends = '<endEvent id="e1"/><endEvent id="e2"/>' + gateways("g h")
    inner = sub_process("sub", START + tasks("A B") + ends, "s>A>g g>e1 g>h h>e2 g>B>h")
    body = '<startEvent id="t"/>' + inner + boundary("x", "sub") + tasks("C D")
    assert words(body, "t>sub>C x>D") == {"A C", "A B C", "D", "A D"}
    inner = sub_process("sub", START + tasks("A") + ends, "s>A>g g>e1 g>h h>e2")
    body = '<startEvent id="t"/>' + inner + boundary("x", "sub") + tasks("C D")
    assert words(body, "t>sub>C x>D") == {"A C", "D"}


def test_an_error_ends_instances_that_run_at_once() -> None:
    """The error comes with the activity before it, also while another instance runs."""
    throw = '<endEvent id="e"><errorEventDefinition/></endEvent>'
    at_once = (
        "<multiInstanceLoopCharacteristics><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics>"
    )
    body = START + gateways("x") + tasks("A D") + throw + '<endEvent id="f"/>' + at_once
    instances = sub_process("sub", body, "s>A>x x>e x>D>f")
    caught = boundary("b", "sub", "<errorEventDefinition/>") + tasks("B C")
    assert words(instances + caught, "b>B sub>C") == {"A B", "A A B", "A D A B", "A D A D C", "A A D D C"}


def test_an_error_is_thrown_before_anything_else_happens() -> None:
    throw = '<endEvent id="e"><errorEventDefinition/></endEvent>'
    inner = sub_process("sub", START + FORK + tasks("A B") + throw, "s>fork>A>e fork>B")
    outer = sub_process("outer", inner + boundary("x", "sub", "<errorEventDefinition/>") + tasks("C"), "x>C")
    assert words(outer) == {"A C", "B A C"}


def test_graphs_without_branches_stay_as_they_are() -> None:
    model = read(process(START + tasks("A B") + gateways("g") + STOP + '<endEvent id="e"/>', "s>A>g g>stop g>B>e"))
    assert isinstance(model.source, FlowGraph)
    assert [node.id for node in model.source.nodes] == ["s", "A", "B", "g", "stop", "e"]
    assert end_at_once(model.source) == model.source


def test_too_many_pairs_of_activities_and_ends_are_left_in_two_steps() -> None:
    names = [f"T{number}" for number in range(70)]
    inner = START + FORK + tasks(" ".join(names)) + gateways("g")
    ends = "".join(f'<endEvent id="e{n}"><errorEventDefinition errorRef="x{n}"/></endEvent>' for n in range(30))
    arrows = "s>fork " + " ".join(f"fork>{name}>g" for name in names) + "".join(f" g>e{n}" for n in range(30))
    catchers = "".join(boundary(f"b{n}", "sub", f'<errorEventDefinition errorRef="x{n}"/>') for n in range(30))
    model = read(process(sub_process("sub", inner + ends, arrows) + catchers))
    assert isinstance(model.source, FlowGraph)
    block = next(node.block for node in model.source.nodes if node.id == "sub")
    assert block is not None
    assert len(block.graph.nodes) == 103
    assert words_of_graph(model.source, 0) == frozenset()
