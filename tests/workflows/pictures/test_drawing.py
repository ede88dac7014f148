"""Pictures are well-formed, hold every task, escape every text, and show what is highlighted."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.workflows import process_trees
from workflows import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    iterate_activities,
)
from workflows.diagram import Diagram, Edge, Shape
from workflows.model import ModelFormat, Source, WorkflowModel
from workflows.nets.graph import Block, Exit, Flow, FlowGraph, Node, NodeKind, Repeat
from workflows.nets.net import Transition, WorkflowNet
from workflows.pictures.drawing import MAX_ELEMENTS, MAX_PIXELS, draw
from workflows.pictures.labels import outside_labels
from workflows.pictures.svg import DARK, LIGHT
from workflows.pictures.symbols import Mark, symbol

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert('x')</script>&\"\x00\x1b\ud800]]>"


def model(source: Source, diagram: Diagram | None = None, name: str = "order") -> WorkflowModel:
    return WorkflowModel(name=name, format=ModelFormat.TREE, source=source, diagram=diagram)


def events_of(svg: str) -> Counter[str]:
    return Counter(event for item in fromstring(svg).iter(f"{SVG}g") if (event := item.get("data-event")))


def texts_of(svg: str) -> set[str]:
    return {"".join(item.itertext()) for item in fromstring(svg).iter(f"{SVG}text")}


def group_of(svg: str, event: str):
    return next(item for item in fromstring(svg).iter(f"{SVG}g") if item.get("data-event") == event)


def classes(group) -> set[str]:
    return {item.get("class") for item in group.iter() if item.get("class")}


@given(process_trees())
@settings(max_examples=60, deadline=None)
def test_every_activity_of_a_tree_is_drawn_once(tree) -> None:
    svg = draw(model(tree))
    assert events_of(svg) == Counter(activity.name for activity in iterate_activities(tree))
    assert draw(model(tree)) == svg


@given(process_trees())
@settings(max_examples=40, deadline=None)
def test_boxes_do_not_lie_on_one_another_and_arrows_avoid_them(tree) -> None:
    boxes = [
        tuple(float(box.get(side, "")) for side in ("x", "y", "width", "height"))
        for group in fromstring(draw(model(tree))).iter(f"{SVG}g")
        if group.get("data-event")
        for box in group.iter(f"{SVG}rect")
    ]
    for index, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[:index]:
            assert x + width <= left or left + wide <= x or y + height <= top or top + high <= y


GRAPH = FlowGraph(
    id="main",
    nodes=(
        Node(id="s", kind=NodeKind.START),
        Node(id="x", kind=NodeKind.EXCLUSIVE, name="Enough?"),
        Node(
            id="b",
            kind=NodeKind.BLOCK,
            name="Make",
            block=Block(
                graph=FlowGraph(
                    id="inner",
                    nodes=(
                        Node(id="i1", kind=NodeKind.START),
                        Node(id="i2", kind=NodeKind.ACTIVITY, name="Cut", label="Cut"),
                        Node(id="i3", kind=NodeKind.THROW, name="Broken"),
                    ),
                    flows=(Flow(id="f6", source="i1", target="i2"), Flow(id="f7", source="i2", target="i3")),
                ),
                exits=(Exit(id="late", name="Too late"), Exit(id="broken", is_thrown=True)),
                repeat=Repeat(least=1, most=None, is_parallel=True),
            ),
        ),
        Node(id="a", kind=NodeKind.ACTIVITY, name="Ask again", label="ask"),
        Node(id="t", kind=NodeKind.TERMINATE),
        Node(id="q", kind=NodeKind.SILENT),
        Node(id="p", kind=NodeKind.PARALLEL),
        Node(id="o", kind=NodeKind.INCLUSIVE),
    ),
    flows=(
        Flow(id="f1", source="s", target="x"),
        Flow(id="f2", source="x", target="b"),
        Flow(id="f3", source="b", target="t"),
        Flow(id="f4", source="b", target="a", exit="late"),
        Flow(id="f5", source="a", target="x"),
        Flow(id="f8", source="x", target="q"),
        Flow(id="f9", source="q", target="p"),
        Flow(id="f10", source="p", target="o"),
        Flow(id="f11", source="o", target="o"),
    ),
)
NET = WorkflowNet(
    places=("begin", "middle", "end"),
    transitions=(
        Transition(inputs=(0,), outputs=(1, 1), label="Split"),
        Transition(inputs=(1,), outputs=(2,), label=None, resets=(0,), waits=(2,)),
        Transition(inputs=(1,), outputs=(0,), label="Again"),
    ),
    initial=(0,),
    finals=((2,),),
)


def test_graphs_show_blocks_with_what_is_in_them() -> None:
    svg = draw(model(GRAPH))
    assert events_of(svg) == {"Cut": 1, "ask": 1}
    elements = {item.get("data-element") for item in fromstring(svg).iter(f"{SVG}g")}
    assert {node.id for node in GRAPH.nodes} <= elements
    assert {flow.id for flow in GRAPH.flows} | {"late", "broken", "i1", "f6"} <= elements
    assert {"Cut", "Ask again", "Enough?", "Too late", "Make (1 or more times, at once)"} <= texts_of(svg)


def test_nets_show_places_and_arcs() -> None:
    svg = draw(model(NET))
    assert events_of(svg) == {"Split": 1, "Again": 1}
    elements = {item.get("data-element") for item in fromstring(svg).iter(f"{SVG}g")}
    assert {"place-1", "place-2", "place-3", "transition-2", "transition-2-reset-1", "transition-2-wait-3"} <= elements
    assert {"2", "reset", "wait"} <= texts_of(svg)
    assert 'stroke-dasharray="5 4"' in svg


DIAGRAM = Diagram(
    shapes=(
        Shape(element="P", kind="pool", label="Shop", x=0, y=0, width=600, height=220),
        Shape(element="L", kind="lane", label="Desk", x=30, y=0, width=570, height=220),
        Shape(element="S", kind="subprocess", label="Deal", x=250, y=20, width=200, height=180),
        Shape(element="s", kind="start", label="Begin", x=60, y=60, width=36, height=36),
        Shape(element="T", kind="task", label="Take the order", x=130, y=50, width=100, height=60, event="Take"),
        Shape(element="I", kind="task", label="Inner", x=280, y=60, width=100, height=60, event="Inner"),
        *(
            Shape(element=f"k{place}", kind=kind, label=kind, x=40 * place, y=240, width=36, height=36)
            for place, kind in enumerate(
                ("exclusive", "parallel", "inclusive", "event-based", "complex", "end", "terminate", "intermediate")
            )
        ),
        *(
            Shape(element=f"m{place}", kind=kind, label=kind, x=40 * place, y=340, width=30, height=36)
            for place, kind in enumerate(
                ("boundary", "place", "transition", "silent", "note", "data", "group", "unheard-of")
            )
        ),
        Shape(element="V", kind="pool", label="Upright", x=700, y=0, width=100, height=300),
        Shape(element="C", kind="subprocess", label="Collapsed", x=500, y=60, width=80, height=60),
    ),
    edges=(
        Edge(element="e1", points=((96, 78), (130, 78)), label="go"),
        Edge(
            element="e2",
            points=((230, 80), (240, 80), (240, 150), (300, 150)),
            is_dashed=True,
            label="a long text of it",
        ),
        Edge(element="e3", points=((10, 10), (10, 10))),
    ),
)


def test_a_drawing_of_its_own_is_used() -> None:
    svg = draw(model(Activity("Take"), DIAGRAM))
    elements = [element for item in fromstring(svg).iter(f"{SVG}g") if (element := item.get("data-element"))]
    drawn = [*(shape.element for shape in DIAGRAM.shapes), *(edge.element for edge in DIAGRAM.edges)]
    assert sorted(elements) == sorted(drawn)
    assert events_of(svg) == {"Take": 1, "Inner": 1}
    left, top, width, height = map(float, fromstring(svg).get("viewBox", "").split())
    assert left <= 0
    assert top <= 0
    assert left + width >= 800
    assert top + height >= 376


def test_small_transitions_have_their_names_outside_and_uncut() -> None:
    small = Shape(element="t1", kind="transition", label="UseRemoteStock", x=0, y=0, width=30, height=30, event="U")
    fitting = replace(small, element="t2", label="A", x=100)
    svg = draw(model(Activity("U"), Diagram(shapes=(small, fitting), edges=())))
    assert "UseRemote" in svg
    assert "\N{HORIZONTAL ELLIPSIS}" not in svg
    halos = [item for item in fromstring(svg).iter(f"{SVG}text") if item.get("class") == "fw-halo"]
    assert ["".join(item.itertext()) for item in halos] == ["UseRemoteStock"]


def test_the_picture_is_as_large_as_its_labels() -> None:
    places = [Shape(element=f"p{x}", kind="place", label="finished", x=x, y=0, width=30, height=30) for x in (0, 200)]
    lines = tuple(Edge(element=f"e{y}", points=((150, y), (280, y))) for y in (-10, 40))
    diagram = Diagram(shapes=tuple(places), edges=lines)
    labels = outside_labels(diagram)
    left, top, width, height = map(float, fromstring(draw(model(Activity("A"), diagram))).get("viewBox", "").split())
    assert any(label.anchor != "middle" for label in labels.values())
    for held in (label.rectangle for label in labels.values()):
        assert left <= held.left < held.right <= left + width
        assert top <= held.top < held.bottom <= top + height


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1e300, -1e12, 1e6])
def test_a_drawing_that_is_no_drawing_is_made_anew(wrong) -> None:
    shape = Shape(element="T", kind="task", label="A", x=wrong, y=0, width=10, height=10, event="A")
    other = Shape(element="U", kind="task", label="B", x=0, y=0, width=10, height=10)
    svg = draw(model(Activity("A"), Diagram(shapes=(shape, other), edges=())))
    assert events_of(svg) == {"A": 1}
    assert "task-2" in svg
    assert "nan" not in svg
    empty = draw(model(Activity("A"), Diagram(shapes=(), edges=())))
    assert events_of(empty) == {"A": 1}


def test_texts_are_escaped_and_nothing_is_executed() -> None:
    tree = Sequence((Activity(NASTY), Activity("a" * 5_000), Activity("\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 40)))
    svg = draw(model(tree, name=NASTY), {NASTY: 3})
    root = fromstring(svg)
    allowed = {"svg", "title", "desc", "style", "g", "rect", "circle", "path", "text", "tspan"}
    assert {item.tag.removeprefix(SVG) for item in root.iter()} <= allowed
    assert not re.search(r"(href|url\(|@import|\bon\w+=|javascript:)", svg.replace("xmlns", ""))
    assert "&lt;script&gt;" in svg
    assert svg.encode()
    assert float(root.get("width", "")) < 2_000


def test_highlighted_events_are_filled_and_counted() -> None:
    tree = Sequence((Activity("A"), ExclusiveChoice((Activity("B"), Activity("C"))), Activity("A"), Activity("D")))
    svg = draw(model(tree), {"A": 12, "B": 0, "D": 20_000}, ["C", "A"])
    assert "fw-seen" in classes(group_of(svg, "A"))
    assert "fw-expected" in classes(group_of(svg, "A"))
    assert "fw-badge" in classes(group_of(svg, "A"))
    assert "12" in texts_of(svg)
    assert "20k" in texts_of(svg)
    assert classes(group_of(svg, "B")) == {"fw-box", "fw-text"}
    assert classes(group_of(svg, "C")) == {"fw-box", "fw-text", "fw-expected"}
    assert group_of(svg, "A").findtext(f"{SVG}title") == "A (seen 12 times, may come next)"
    assert (
        fromstring(svg).findtext(f"{SVG}desc")
        == "A process model. Filled: A, D. Outlined, as they may come next: A, C."
    )
    plain = draw(model(tree), ["B"])
    assert "fw-seen" in classes(group_of(plain, "B"))
    assert "fw-badge" not in classes(group_of(plain, "B"))


def test_every_kind_of_shape_can_be_highlighted() -> None:
    for shape in DIAGRAM.shapes:
        drawn = symbol(replace(shape, label=""), Mark(is_seen=True, times=1, is_expected=True))
        assert "fw-expected" in drawn
        assert "(seen once, may come next)" in drawn


def test_the_size_is_bounded() -> None:
    wide = Sequence(tuple(Activity(f"task {number}") for number in range(400)))
    root = fromstring(draw(model(wide)))
    assert float(root.get("width", "")) <= MAX_PIXELS
    assert len(events_of(draw(model(wide)))) == 400
    large = Parallel(tuple(Activity(f"task {number}") for number in range(MAX_ELEMENTS)))
    svg = draw(model(large))
    assert f"{MAX_ELEMENTS + 2} elements are too many for a picture" in texts_of(svg)
    assert len(svg) < 10_000


def test_many_crossing_arrows_take_bounded_time() -> None:
    layers = 40
    nodes = [Node(id=f"n{number}", kind=NodeKind.EXCLUSIVE) for number in range(layers)]
    flows = [Flow(id=f"f{a}-{b}", source=f"n{a}", target=f"n{b}") for a in range(layers) for b in range(a + 1, layers)]
    svg = draw(model(FlowGraph(id="g", nodes=tuple(nodes), flows=tuple(flows))))
    assert len(fromstring(svg).findall(f"{SVG}g")) == len(nodes) + len(flows)


def test_a_tree_keeps_its_probabilities_and_rounds() -> None:
    tree: ProcessTree = Sequence(
        (
            ExclusiveChoice((Activity("A"), Silent()), probabilities=(0.25, 0.75)),
            InclusiveChoice((Activity("B"), Activity("C")), probabilities=(0.5, 1.0)),
            Loop(body=Activity("D"), repetitions=3),
            Loop(body=Activity("E"), redo=Activity("F")),
            Instances(body=Activity("G")),
            Parallel((Activity("H"),)),
        )
    )
    assert {"25%", "75%", "50%", "100%", "3 times in all", "again", "one or more, at once"} <= texts_of(
        draw(model(tree))
    )


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_name_gives_well_formed_xml(name, activity) -> None:
    tree = Activity(activity or "A")
    root = fromstring(draw(model(tree, name=name), [activity]))
    assert root.tag == f"{SVG}svg"
    assert len(root.findall(f"{SVG}g[@data-event]")) == 1


def test_light_and_dark_have_the_same_roles_and_enough_contrast() -> None:
    assert LIGHT.keys() == DARK.keys()
    for palette in (LIGHT, DARK):
        for text, ground in (("text", "box"), ("text", "area"), ("seen-text", "seen"), ("badge-text", "badge")):
            assert contrast(palette[text]["fill"], palette[ground]["fill"]) >= 7
        assert contrast(palette["halo"]["fill"], palette["page"]["fill"]) >= 7
        for line in ("line", "expected", "box", "seen"):
            assert contrast(palette[line]["stroke"], palette["page"]["fill"]) >= 3


def contrast(first: str, second: str) -> float:
    """The contrast ratio of WCAG 2."""
    light, dark = sorted(map(luminance, (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
