"""The drawing of a process, from diagram interchange."""

from pathlib import Path

import pytest

from tests.builders.bpmn import process, read, sub_process, tasks
from workflows.diagram import Diagram, Edge, Shape
from workflows.formats.bpmn import read_bpmn
from workflows.model import ReadOptions

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "order.bpmn"
START = '<startEvent id="s" name="Begin  here"/>'


def shape(element: str, x: object = 0, y: object = 0, width: int = 10, height: int = 10, is_expanded: str = "") -> str:
    bounds = f'<Bounds xmlns="urn:dc" x="{x}" y="{y}" width="{width}" height="{height}"/>'
    return f'<BPMNShape bpmnElement="{element}" isExpanded="{is_expanded}">{bounds}</BPMNShape>'


def edge(element: str, *points: tuple[object, object]) -> str:
    written = "".join(f'<waypoint xmlns="urn:di" x="{x}" y="{y}"/>' for x, y in points)
    return f'<BPMNEdge bpmnElement="{element}">{written}</BPMNEdge>'


def page(*items: str) -> str:
    plane = f"<BPMNPlane>{''.join(items)}</BPMNPlane>"
    return f'<BPMNDiagram xmlns="http://www.omg.org/spec/BPMN/20100524/DI">{plane}</BPMNDiagram>'


def diagram_of(*parts: str, process: str | None = None, mapping: dict[str, str | None] | None = None) -> Diagram:
    diagram = read(*parts, process=process, mapping=mapping).diagram
    assert diagram is not None
    return diagram


def test_without_drawing_there_is_none() -> None:
    assert read(process(tasks("A"))).diagram is None
    assert read(process(tasks("A")), page(shape("elsewhere"))).diagram is None


def test_shapes_and_flows_have_their_places() -> None:
    diagram = diagram_of(
        process(START + tasks("A"), "s>A"),
        page(shape("s", 1, 2.5, 30, 30), shape("p:A", 50, -4, 100, 80), edge("s-A", (31, 17), ("40.5", 17), (50, 17))),
    )
    assert diagram.shapes == (
        Shape(element="s", kind="start", label="Begin here", x=1, y=2.5, width=30, height=30),
        Shape(element="A", kind="task", label="", x=50, y=-4, width=100, height=80, event="A"),
    )
    assert diagram.edges == (Edge(element="s-A", points=((31, 17), (40.5, 17), (50, 17))),)


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        ('<userTask id="x"/>', "task"),
        ('<callActivity id="x"/>', "task"),
        ('<callActivity id="x" calledElement="q"/>', "subprocess"),
        ('<subProcess id="x"/>', "subprocess"),
        ('<exclusiveGateway id="x"/>', "exclusive"),
        ('<parallelGateway id="x"/>', "parallel"),
        ('<inclusiveGateway id="x"/>', "inclusive"),
        ('<eventBasedGateway id="x"/>', "event-based"),
        ('<endEvent id="x"/>', "end"),
        ('<intermediateCatchEvent id="x"/>', "intermediate"),
        ('<intermediateThrowEvent id="x"/>', "intermediate"),
        ('<boundaryEvent id="x" attachedToRef="A"/>', "boundary"),
        ('<dataObjectReference id="x"/>', "data"),
        ('<laneSet><lane id="x"/></laneSet>', "lane"),
        ('<textAnnotation id="x"><text> so\n be it </text></textAnnotation>', "note"),
    ],
)
def test_every_element_has_its_kind_of_shape(element: str, kind: str) -> None:
    parts = process(tasks("A") + element), process(tasks("B"), identity="q"), page(shape("x"))
    (drawn,) = diagram_of(*parts, process="p").shapes
    assert drawn.kind == kind
    assert drawn.label == ("so be it" if kind == "note" else "")
    assert drawn.event == ("x" if kind == "task" else None)


def test_events_are_those_of_the_mapping() -> None:
    mapping: dict[str, str | None] = {"A": "first", "B": None, "rest": "Rest"}
    body = tasks("A B C") + '<subProcess id="rest"/>'
    diagram = diagram_of(process(body), page(*map(shape, ["A", "B", "C", "rest"])), mapping=mapping)
    assert [(drawn.element, drawn.kind, drawn.event) for drawn in diagram.shapes] == [
        ("A", "task", "first"),
        ("B", "task", None),
        ("C", "task", "C"),
        ("rest", "task", "Rest"),
    ]


def test_what_contains_others_stands_behind_them() -> None:
    pool = '<collaboration id="c"><participant id="pool" name="Shop" processRef="p"/></collaboration>'
    lanes = '<laneSet><lane id="lane"/><lane id="part"/></laneSet>'
    body = lanes + tasks("A") + sub_process("sub", tasks("B") + sub_process("inner", tasks("C")))
    body += '<boundaryEvent id="b" attachedToRef="A"/>'
    sizes = {"b": 5, "A": 10, "C": 10, "inner": 20, "B": 10, "sub": 40, "part": 45, "lane": 50, "pool": 90}
    drawn = [shape(element, 0, 0, size, size) for element, size in sizes.items()]
    diagram = diagram_of(pool, process(body), page(*drawn))
    assert [item.element for item in diagram.shapes] == ["pool", "lane", "part", "sub", "inner", "A", "C", "B", "b"]
    assert diagram.shapes[0].label == "Shop"


def test_only_the_chosen_process_is_drawn() -> None:
    parts = process(tasks("A")), process(tasks("B"), identity="q"), page(shape("A"), shape("B"))
    assert [item.element for item in diagram_of(*parts, process="q").shapes] == ["B"]


def test_of_several_pages_the_one_with_most_of_it_is_taken() -> None:
    pages = page(shape("A")), page(shape("A", 7), shape("B", 8)), page(shape("B"))
    assert [item.x for item in diagram_of(process(tasks("A B")), *pages).shapes] == [7, 8]


def test_what_is_in_a_collapsed_sub_process_is_not_drawn() -> None:
    body = process(sub_process("sub", tasks("A B"), "A>B"))
    items = shape("A"), shape("B"), edge("A-B", (0, 0), (1, 1))
    collapsed = diagram_of(body, page(shape("sub", is_expanded="false"), *items))
    assert [item.element for item in collapsed.shapes] == ["sub"]
    assert collapsed.edges == ()
    expanded = diagram_of(body, page(shape("sub", is_expanded="true"), *items))
    assert len(expanded.shapes) == 3


def test_associations_are_dashed() -> None:
    body = tasks("A") + '<textAnnotation id="n"/><association id="a" sourceRef="A" targetRef="n"/>'
    diagram = diagram_of(process(body), page(shape("A"), edge("a", (0, 0), (1, 1))))
    assert diagram.edges == (Edge(element="a", points=((0, 0), (1, 1)), is_dashed=True),)


def test_shapes_and_lines_without_sensible_place_are_left_out_with_a_notice() -> None:
    odd = [
        shape("B", "nan"),
        shape("B", "1e300"),
        shape("B", width=-1),
        shape("B", "left"),
        '<BPMNShape bpmnElement="B"/>',
    ]
    lines = [edge("A-B", (0, 0)), edge("A-B", (0, "inf"), (1, 1))]
    model = read(process(tasks("A B"), "A>B"), page(shape("A"), *odd, *lines))
    assert model.diagram is not None
    assert [item.element for item in model.diagram.shapes] == ["A"]
    assert model.diagram.edges == ()
    assert [str(notice) for notice in model.notices] == ["7 shapes or lines of the drawing have no readable position"]


def test_the_example_is_drawn_completely() -> None:
    diagram = read_bpmn(EXAMPLE.read_bytes(), ReadOptions()).diagram
    assert diagram is not None
    assert len(diagram.shapes) == 31
    assert len(diagram.edges) == 32
    places = [(item.x, item.y, item.x + item.width, item.y + item.height) for item in diagram.shapes]
    assert not [
        (one, other)
        for index, one in enumerate(places)
        for other in places[index + 1 :]
        if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    ]
