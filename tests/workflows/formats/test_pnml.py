"""Nets in PNML."""

import time
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.errors import ModelRefused
from workflows.formats.pnml import read_pnml
from workflows.model import ModelFormat, ReadOptions, WorkflowModel
from workflows.nets.net import Places, Transition, WorkflowNet

ROOT = Path(__file__).resolve().parents[3]
REAL = ROOT.parent / "shared" / "data" / "models" / "pm4py"
PTNET = "http://www.pnml.org/version-2009/grammar/ptnet"
LINE = '<place id="i"/><transition id="t"><name><text>T</text></name></transition><place id="o"/>'
ARCS = '<arc id="a1" source="i" target="t"/><arc id="a2" source="t" target="o"/>'


def read(text: str | bytes, **options: object) -> WorkflowModel:
    content = text.encode() if isinstance(text, str) else text
    return read_pnml(content, ReadOptions(**options))  # type: ignore[arg-type]


def document(body: str, kind: str = PTNET) -> str:
    return f'<pnml xmlns="http://www.pnml.org/version-2009/grammar/pnml"><net id="n" type="{kind}">{body}</net></pnml>'


def net_of(body: str, **options: object) -> WorkflowNet:
    source = read(document(body), **options).source
    assert isinstance(source, WorkflowNet)
    return source


def problems_of(text: str | bytes, **options: object) -> list[tuple[str, str]]:
    with pytest.raises(ModelRefused) as caught:
        read(text, **options)
    return list(caught.value.problems)


def write(net: WorkflowNet, page_of: list[int]) -> str:
    """A net as PNML, its nodes spread over pages; arcs stand on the first page."""
    pages: list[list[str]] = [[], [], []]
    for number in range(len(net.places)):
        count = net.initial.count(number)
        marking = f"<initialMarking><text> {count} </text></initialMarking>" if count else ""
        pages[page_of[number % len(page_of)]].append(f'<place id="p{number}">{marking}</place>')
    for number, transition in enumerate(net.transitions):
        name = "" if transition.label is None else f"<name><text>{escape(transition.label)}</text></name>"
        pages[0].append(f"<transition id={quoteattr(f't{number}')}>{name}</transition>")
        pages[0] += arcs_of(number, transition)
    inner = f'<page id="g1">{"".join(pages[1])}<page id="g2">{"".join(pages[2])}</page></page>'
    markings = "".join(
        "<marking>"
        + "".join(
            f'<place idref="p{place}"><text>{final.count(place)}</text></place>' for place in range(len(net.places))
        )
        + "</marking>"
        for final in net.finals
    )
    return document(f'<page id="g0">{"".join(pages[0])}</page>{inner}<finalmarkings>{markings}</finalmarkings>')


def arcs_of(number: int, transition: Transition) -> list[str]:
    arcs = [("normal", f"p{place}", f"t{number}") for place in transition.inputs]
    arcs += [("normal", f"t{number}", f"p{place}") for place in transition.outputs]
    arcs += [("reset", f"p{place}", f"t{number}") for place in transition.resets]
    arcs += [("inhibitor", f"p{place}", f"t{number}") for place in transition.waits]
    return [
        f'<arc id="a{number}.{order}" source="{source}" target="{target}"><arctype><text>{kind}</text></arctype></arc>'
        for order, (kind, source, target) in enumerate(arcs)
    ]


@st.composite
def nets(draw: st.DrawFn) -> WorkflowNet:
    count = draw(st.integers(1, 5))
    several = st.lists(st.integers(0, count - 1), max_size=4).map(sorted).map(tuple)
    some = st.sets(st.integers(0, count - 1), max_size=2).map(sorted).map(tuple)
    names = st.none() | st.sampled_from(["A", "B & <C>", "Ü", "say 'it' \"now\""])
    transitions = st.builds(Transition, inputs=several, outputs=several, label=names, resets=some, waits=some)
    return WorkflowNet(
        places=tuple(f"place (p{number})" for number in range(count)),
        transitions=tuple(draw(st.lists(transitions, max_size=5))),
        initial=draw(several.filter(bool)),
        finals=tuple(draw(st.lists(several, min_size=1, max_size=3, unique=True))),
    )


def in_order(net: WorkflowNet, places: list[int]) -> WorkflowNet:
    """The net with its places in another order: the old index of each."""
    new = {old: number for number, old in enumerate(places)}

    def moved(marking: Places) -> Places:
        return tuple(sorted(new[place] for place in marking))

    return WorkflowNet(
        places=tuple(net.places[old] for old in places),
        transitions=tuple(
            Transition(
                inputs=moved(transition.inputs),
                outputs=moved(transition.outputs),
                label=transition.label,
                resets=moved(transition.resets),
                waits=moved(transition.waits),
            )
            for transition in net.transitions
        ),
        initial=moved(net.initial),
        finals=tuple(moved(final) for final in net.finals),
    )


@given(nets(), st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_a_net_that_is_written_reads_back(net: WorkflowNet, page_of: list[int]) -> None:
    source = read(write(net, page_of)).source
    pages = [page_of[number % len(page_of)] for number in range(len(net.places))]
    assert source == in_order(net, sorted(range(len(net.places)), key=lambda number: pages[number]))


@pytest.mark.skipif(not REAL.exists(), reason="shared data absent (issue #5)")
def test_nets_of_other_tools_are_read() -> None:
    found = {path.stem: read(path.read_bytes()) for path in sorted(REAL.glob("*.pnml"))}
    sizes = {}
    for name, model in found.items():
        assert isinstance(model.source, WorkflowNet)
        assert model.notices == ()
        assert len(model.source.initial) == len(model.source.finals) == 1
        sizes[name] = (len(model.source.places), len(model.source.transitions), len(model.source.labels))
    assert sizes == {
        "SampleNet": (4, 4, 4),
        "ex1": (8, 5, 5),
        "receipt_one_variant": (6, 5, 5),
        "roadtraffic": (29, 34, 11),
    }
    assert found["SampleNet"].name == "my petri net"
    assert found["SampleNet"].diagram is None  # all nodes are drawn in one place


def test_the_order_example_has_its_events_and_its_drawing() -> None:
    model = read((ROOT / "docs" / "examples" / "order.pnml").read_bytes())
    assert isinstance(model.source, WorkflowNet)
    assert (model.name, model.format, model.notices) == ("order", ModelFormat.PNML, ())
    assert (len(model.source.places), len(model.source.transitions), len(model.source.labels)) == (22, 24, 21)
    assert model.diagram is not None
    kinds = [shape.kind for shape in model.diagram.shapes]
    assert (kinds.count("place"), kinds.count("transition"), kinds.count("silent")) == (22, 21, 3)
    assert {shape.event for shape in model.diagram.shapes if shape.kind == "transition"} == model.source.labels
    assert len(model.diagram.edges) == 50


def test_silent_transitions() -> None:
    body = """
      <place id="i"><initialMarking><text>1</text></initialMarking></place><place id="o"/>
      <transition id="a"/><transition id="b"><name/></transition>
      <transition id="c"><name><text>  </text></name></transition>
      <transition id="d"><name><text>skip</text></name><toolspecific tool="X" activity="$invisible$"/></transition>
      <transition id="e" invisible="true"><name><text>E</text></name></transition>
      <transition id="f"><name><text> Check\n  credit </text></name></transition>
      <transition id="g"><name><text>tau</text></name></transition>
      <arc id="1" source="i" target="a"/><arc id="2" source="a" target="o"/>"""
    model = read(document(body))
    assert isinstance(model.source, WorkflowNet)
    assert [transition.label for transition in model.source.transitions] == [None] * 5 + ["Check credit", "tau"]
    assert [transition.element for transition in model.source.transitions[2:6]] == [
        "silent transition (c)",
        "silent transition 'skip' (d)",
        "silent transition 'E' (e)",
        "transition 'Check credit' (f)",
    ]
    assert [str(notice) for notice in model.notices] == [
        "g: the name 'tau' is an event type; a silent transition has no name"
    ]


def test_a_mapping_names_silences_and_wakes() -> None:
    body = LINE + ARCS + '<transition id="u"><name><text>U</text></name></transition><transition id="v"/>'
    model = read(document(body), mapping={"t": "by id", "T": "by name", "U": None, "v": "V", "w": None})
    assert isinstance(model.source, WorkflowNet)
    assert [transition.label for transition in model.source.transitions] == ["by id", None, "V"]
    assert "the mapping names 'w', which is not a task of this model" in [str(notice) for notice in model.notices]


def test_without_markings_a_net_runs_from_its_source_to_its_sinks() -> None:
    model = read(
        document(LINE + '<place id="o2"/><place id="alone"/>' + ARCS + '<arc id="a3" source="t" target="o2"/>')
    )
    assert isinstance(model.source, WorkflowNet)
    assert model.source.initial == (0,)
    assert model.source.finals == ((1,), (2,))
    assert [str(notice) for notice in model.notices] == [
        "i: there is no initial marking: a trace begins with one token in the only source place"
    ]


def test_final_markings_are_taken_at_their_word() -> None:
    marking = '<marking><place idref="o"><text>2</text></place></marking><marking/>'
    given = f"<toolspecific><finalmarkings>{marking}</finalmarkings></toolspecific>"
    assert net_of(LINE + ARCS + given).finals == ((1, 1), ())
    assert net_of(LINE + ARCS + "<finalmarkings/>").finals == ((1,),)


def test_arcs_have_weights_and_kinds() -> None:
    arcs = """
      <arc id="1" source="i" target="t"><inscription><text>2</text></inscription></arc>
      <arc id="2" source="i" target="t"><name><text>7</text></name></arc>
      <arc id="3" source="t" target="o"><inscription><value>Default,3</value></inscription><type value="normal"/></arc>
      <arc id="4" source="p" target="t"><type value="inhibitor"/></arc>
      <arc id="5" source="q" target="t" type="reset"/>
      <arc id="6" source="q" target="t"><arctype><text>Read</text></arctype></arc>
      <arc id="7" source="q" target="t" type="testArc"/>"""
    net = net_of(LINE + '<place id="p"/><place id="q"><initialMarking><text>1</text></initialMarking></place>' + arcs)
    assert net.transitions == (
        Transition(inputs=(0, 0, 0, 3, 3), outputs=(1, 1, 1, 3, 3), label="T", resets=(3,), waits=(2,)),
    )


def test_references_stand_for_what_they_name() -> None:
    body = f"""<page id="g">{LINE}</page>
      <page id="h"><referencePlace id="r" ref="q"/><referencePlace id="q" ref="o"/><referenceTransition id="s" ref="t"/>
      <arc id="a1" source="i" target="s"/><arc id="a2" source="t" target="r"/></page>
      <finalmarkings><marking><place idref="r"><text>1</text></place></marking></finalmarkings>"""
    net = net_of(body)
    assert net.places == ("place (i)", "place (o)")
    assert net.transitions == (Transition(inputs=(0,), outputs=(1,), label="T"),)
    assert net.finals == ((1,),)


def test_a_net_or_a_page_is_chosen_by_its_id() -> None:
    def one(name: str) -> str:
        return (
            LINE.replace('"i"', f'"i{name}"')
            .replace('"o"', f'"o{name}"')
            .replace('"t"', f'"t{name}"')
            .replace(">T<", f">{name}<")
            + f'<arc id="a{name}" source="i{name}" target="t{name}"/>'
            + f'<arc id="b{name}" source="t{name}" target="o{name}"/>'
        )

    text = f"""<pnml><net id="n1" type="{PTNET}"><name><text>First</text></name><page id="g1">{one("A")}</page></net>
      <net id="n2" type="{PTNET}"><page id="g2">{one("B")}<page id="g3">{one("C")}</page></page></net></pnml>"""
    listed = "net 'n1' (First), page 'g1', net 'n2', page 'g2', page 'g3'"
    assert problems_of(text) == [("", f"the file has 2 nets; choose one by its id: {listed}")]
    assert problems_of(text, process="x") == [("", f"no net and no page has the id 'x'; the file has {listed}")]
    first, page = read(text, process="n1"), read(text, process="g3")
    assert isinstance(first.source, WorkflowNet)
    assert isinstance(page.source, WorkflowNet)
    assert (first.name, first.source.labels) == ("First", {"A"})
    assert (page.name, page.source.labels) == ("g3", {"C"})
    assert problems_of(text, process="n2")[0][1].startswith(
        "there is no initial marking, and not exactly one source place"
    )


def marking(*places: str, count: int = 1) -> str:
    entries = (f'<place idref="{place}"><text>{count}</text></place>' for place in places)
    return f"<marking>{''.join(entries)}</marking>"


PAGES = f'<page id="g">{LINE}{ARCS}</page><page id="h"><page id="k"><place id="p"/></page><transition id="u"/></page>'


@pytest.mark.parametrize(
    ("markings", "finals", "is_complete"),
    [
        (marking("i") + marking("p", count=0), ((0,),), True),
        (marking("i", "p") + marking("p") + marking("o", "i") + marking("p", "i"), ((0,), (0, 1)), False),
        (marking("p") + "<marking/>", ((1,),), False),
    ],
)
def test_a_page_has_the_final_markings_of_the_net_around_it(
    markings: str, finals: tuple[Places, ...], is_complete: bool
) -> None:
    model = read(document(f"{PAGES}<finalmarkings>{markings}</finalmarkings>"), process="g")
    assert isinstance(model.source, WorkflowNet)
    assert model.source.finals == finals
    left_out = "p: a final marking names places outside the chosen page; they are left out"
    assert (left_out in [str(notice) for notice in model.notices]) is not is_complete


def test_final_markings_of_a_page_itself_come_first() -> None:
    own = f"<finalmarkings>{marking('i')}</finalmarkings>"
    body = PAGES.replace(ARCS, ARCS + own) + f"<finalmarkings>{marking('o')}</finalmarkings>"
    assert net_of(body, process="g").finals == ((0,),)
    for wrong in ("x", "u", "t"):
        given = f"<finalmarkings>{marking(wrong)}</finalmarkings>"
        problem = [(wrong, "a final marking names it, but there is no such place")]
        assert problems_of(document(PAGES + given), process="g") == problem
        assert problems_of(document(PAGES.replace(ARCS, ARCS + given)), process="g") == problem


def test_positions_become_a_drawing() -> None:
    body = """
      <place id="i"><graphics><position x="100" y="50"/><dimension x="20" y="20"/></graphics></place>
      <transition id="t"><name><text>T</text></name><graphics><position x="200" y="50"/></graphics></transition>
      <transition id="s"><graphics><position x="200" y="150"/></graphics></transition>
      <place id="o"><graphics><position x="300" y="50"/></graphics></place>
      <arc id="a1" source="i" target="t"/><arc id="a2" source="t" target="o"/><arc id="a3" source="s" target="o"/>
      <arc id="a4" source="i" target="s"><graphics><position x="100" y="150"/></graphics></arc>"""
    diagram = read(document(body)).diagram
    assert diagram is not None
    assert [(shape.element, shape.kind, shape.x, shape.y, shape.width, shape.event) for shape in diagram.shapes] == [
        ("i", "place", 90.0, 40.0, 20.0, None),
        ("t", "transition", 185.0, 35.0, 30.0, "T"),
        ("s", "silent", 195.0, 135.0, 10.0, None),
        ("o", "place", 285.0, 35.0, 30.0, None),
    ]
    assert diagram.edges[0].points == ((110.0, 50.0), (185.0, 50.0))
    assert diagram.edges[3].points == ((100.0, 60.0), (100.0, 150.0), (195.0, 150.0))
    assert read(document(body.replace('x="300"', 'x="nan"'))).diagram is None
    assert read(document(body.replace('x="300"', 'x="200"'))).diagram is None


def test_what_is_not_known_is_left_out_with_a_notice() -> None:
    body = LINE.replace("<name>", "<delay/><name>").replace('id="t"', 'id="t" guard="x &gt; 5"') + ARCS + "<gadget/>"
    assert {str(notice) for notice in read(document(body)).notices} == {
        "<gadget> is not known and left out",
        "t: <delay> is not known and left out",
        "t: a guard is left out: the transition counts as possible whatever the data",
        "i: there is no initial marking: a trace begins with one token in the only source place",
    }


SMALL = '<place id="i"/><transition id="t"/>'
REFUSED = [
    ("<xml/>", "", "the root is <xml>; a PNML file begins with <pnml>"),
    ("<pnml/>", "", "the file has no <net>"),
    ("<pnml", "line 1, column 1", "this is not well-formed XML"),
    (document("", "http://www.pnml.org/version-2009/grammar/highlevelnet"), "n", "high-level; only place/transition"),
    (document("", "http://www.pnml.org/version-2009/grammar/symmetricnet"), "n", "high-level; only place/transition"),
    (document("<declaration/>" + LINE + ARCS), "n", "<declaration> belongs to a high-level net"),
    (
        document(LINE + ARCS + '<place id="p"><hlinitialMarking/></place>'),
        "p",
        "<hlinitialMarking> belongs to a high-level",
    ),
    (
        document(LINE + ARCS + '<place id="p"><type><structure/></type></place>'),
        "p",
        "<type> belongs to a high-level net",
    ),
    (
        document(LINE + ARCS + '<arc id="x" source="i" target="t"><hlinscription/></arc>'),
        "x",
        "belongs to a high-level",
    ),
    (document(LINE + ARCS + '<place id="i"/>'), "i", "the id is given twice"),
    (document(LINE + ARCS + "<place/>"), "", "a place has no id"),
    (document(LINE + ARCS + '<arc id="x" source="i"/>'), "x", "an arc needs a source and a target"),
    (
        document(LINE + ARCS + '<arc id="x" source="i" target="no"/>'),
        "x",
        "the arc joins 'no', which is not in the net",
    ),
    (document(LINE + ARCS + '<arc source="i" target="no"/>'), "arc from i to no", "the arc joins 'no'"),
    (document(LINE + ARCS + '<arc id="x" source="i" target="o"/>'), "x", "an arc from place (i) to place (o)"),
    (document(LINE + ARCS + '<arc id="x" source="t" target="t"/>'), "x", "it must join a place and a transition"),
    (document(LINE + ARCS + '<arc id="x" source="i" target="t" type="odd"/>'), "x", "unknown type of arc 'odd'"),
    (document(LINE + ARCS + '<arc id="x" source="t" target="i" type="reset"/>'), "x", "a reset arc leads from a place"),
    (
        document(LINE + ARCS + '<inhibitorArc id="x" source="i" target="t"/>'),
        "x",
        "<inhibitorArc> is an unknown kind of arc",
    ),
    (
        document(LINE.replace('"i"/>', '"i"><initialMarking><text>-1</text></initialMarking></place>') + ARCS),
        "i",
        "is -1",
    ),
    (
        document(LINE.replace('"i"/>', '"i"><initialMarking><text>x</text></initialMarking></place>') + ARCS),
        "i",
        "'x' is no",
    ),
    (
        document(LINE.replace('"i"/>', '"i"><initialMarking><text>9999</text></initialMarking></place>') + ARCS),
        "i",
        "9999",
    ),
    (
        document(LINE.replace('"i"/>', f'"i"><initialMarking><text>{"9" * 50}</text></initialMarking></place>') + ARCS),
        "i",
        "it must lie between 0 and 1,000",
    ),
    (document(LINE + ARCS + '<referencePlace id="r"/>'), "r", "the reference place has no ref"),
    (document(LINE + ARCS + '<referencePlace id="r" ref="no"/>'), "r", "refers to 'no', which does not exist"),
    (document(LINE + ARCS + '<referencePlace id="r" ref="t"/>'), "r", "refers to 't', which is a transition"),
    (document(LINE + ARCS + '<referencePlace id="r" ref="r"/>'), "r", "refers to 'r', which leads back to it"),
    (
        document(
            LINE + '<arc id="x" source="r" target="t"/><referencePlace id="r" ref="s"/><referencePlace id="s" ref="r"/>'
        ),
        "s",
        "refers to 'r', which leads back to it",
    ),
    (document(SMALL + '<arc id="a" source="i" target="t"/>'), "", "there are no final markings and no sink place"),
    (
        document(SMALL + '<arc id="a" source="t" target="i"/>'),
        "",
        "there is no initial marking, and not exactly one source",
    ),
    (
        document(
            LINE + ARCS + '<finalmarkings><marking><place idref="t"><text>1</text></place></marking></finalmarkings>'
        ),
        "t",
        "a final marking names it, but there is no such place",
    ),
    (
        document(
            LINE + ARCS + '<finalmarkings><marking><place idref="o"><text>-1</text></place></marking></finalmarkings>'
        ),
        "o",
        "the final marking is -1",
    ),
    (
        document(LINE + '<arc id="x" source="i" target="t"><inscription><text>0</text></inscription></arc>'),
        "x",
        "an arc of weight 0 means nothing",
    ),
    (
        document(
            LINE
            + ARCS
            + '<arc id="x" source="i" target="t" type="inhibitor"><inscription><text>2</text></inscription></arc>'
        ),
        "x",
        "an inhibitor arc of weight 2",
    ),
]


@pytest.mark.parametrize("ids", [("a", "a"), ("", ""), ("i", "t")])
def test_arcs_without_or_with_equal_ids_are_read(ids: tuple[str, str]) -> None:
    arcs = f'<arc id="{ids[0]}" source="i" target="t"/><arc id="{ids[1]}" source="t" target="o"/>'
    model = read_pnml(document(LINE + arcs.replace(' id=""', "")).encode(), ReadOptions())
    said = [str(notice) for notice in model.notices if "initial marking" not in notice.message]
    assert said == ["a: the id is given twice; the arc is read without it"] * (ids[0] == "a")
    assert isinstance(model.source, WorkflowNet)
    assert (len(model.source.transitions), model.source.initial, model.source.finals) == (1, (0,), ((1,),))


@pytest.mark.parametrize(("text", "element", "message"), REFUSED)
def test_what_is_wrong_is_said_with_its_id(text: str, element: str, message: str) -> None:
    problems = problems_of(text)
    assert [(where, message in said) for where, said in problems] == [(element, True)], problems


def test_every_problem_is_listed() -> None:
    body = LINE + '<place id="i"/><arc id="x" source="i" target="?"/><arc id="y" source="i" target="o" type="odd"/>'
    assert [element for element, _ in problems_of(document(body))] == ["i", "y", "x", "y"]
    arcs = "".join(f'<arc id="x{number}" source="i" target="?"/>' for number in range(500))
    assert problems_of(document(LINE + arcs))[200:] == [("", "and 300 problems more")]


BOMBS = {
    "10 MB of bytes": bytes(range(256)) * 40_000,
    "entities": b'<!DOCTYPE p [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><pnml>&b;</pnml>',
    "external": b'<!DOCTYPE p SYSTEM "file:///etc/passwd"><pnml/>',
    "deep pages": document('<page id="g">' * 50_000 + "</page>" * 50_000).encode(),
    "many places": document("".join(f'<place id="p{number}"/>' for number in range(150_000))).encode(),
    "many pages": document("".join(f'<page id="p{number}"/>' for number in range(90_000))).encode(),
    "many tokens": document(
        LINE
        + ARCS
        + "".join(f'<place id="p{n}"><initialMarking><text>1000</text></initialMarking></place>' for n in range(999))
    ).encode(),
    "many weights": document(
        LINE + '<arc source="i" target="t"><inscription><text>1000</text></inscription></arc>' * 999
    ).encode(),
    "long references": document(
        LINE
        + ARCS
        + ARCS
        + "".join(f'<referencePlace id="r{n}" ref="r{n + 1}"/>' for n in range(30_000))
        + '<place id="r30000"/>' * 2
    ).encode(),
    "long ids": document(f'<arc id="{"x" * 900_000}" source="a" target="b"/>').encode(),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_bounded_time(name: str) -> None:
    start = time.process_time()
    problems = problems_of(BOMBS[name])
    assert time.process_time() - start < 10.0
    assert all(message for _, message in problems)
    assert sum(len(element) + len(message) for element, message in problems) < 100_000
