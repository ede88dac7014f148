"""Files: which process is meant, namespaces, repairs, refusals, garbage."""

import random
from pathlib import Path

import pytest

from tests.builders.bpmn import MODEL, definitions, process, read, sub_process, tasks, words, words_of
from workflows.errors import ModelRefused
from workflows.formats.bpmn import read_bpmn
from workflows.formats.reading import format_of, read_model
from workflows.model import ModelFormat, ReadOptions
from workflows.nets.graph import FlowGraph

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "order.bpmn"
START = '<startEvent id="s"/>'


def flow(identity: str, attributes: str) -> str:
    return f'<sequenceFlow id="{identity}" {attributes}/>'


def problems_of(*parts: str, process: str | None = None) -> list[tuple[str, str]]:
    with pytest.raises(ModelRefused) as caught:
        read(*parts, process=process)
    return list(caught.value.problems)


def notices_of(*parts: str, process: str | None = None) -> list[str]:
    return [str(notice) for notice in read(*parts, process=process).notices]


# Which process

POOLS = (
    '<collaboration id="c"><participant id="pool1" name="Our  shop" processRef="x:p1"/>'
    '<participant id="pool2" name="Customer" processRef="p2"/><participant id="pool3" name="Customer" processRef="p3"/>'
    '<participant id="pool4" name="Bank"/><messageFlow id="m1"/><messageFlow id="m2"/></collaboration>'
)
THREE = (
    POOLS,
    process(tasks("A"), identity="p1"),
    process(tasks("B"), identity="p2", attributes='name="Buying"'),
    process(tasks("C"), identity="p3"),
    process('<laneSet id="l"/>', identity="p4"),
)


@pytest.mark.parametrize(
    ("chosen", "found"), [("p1", "A"), ("pool1", "A"), ("Our shop", "A"), ("Buying", "B"), ("p2", "B"), ("pool3", "C")]
)
def test_a_process_is_chosen_by_id_or_by_its_pool(chosen: str, found: str) -> None:
    assert words_of(read(*THREE, process=chosen)) == {found}


def test_several_processes_are_refused_with_the_list() -> None:
    assert problems_of(*THREE) == [
        (
            "",
            (
                "the file has 3 processes, 3 with activities; choose one by its id (--process): "
                "'p1' (Our shop), 'p2' (Buying), 'p3' (Customer)"
            ),
        )
    ]


def test_of_several_processes_the_only_one_with_activities_is_read() -> None:
    other = process('<startEvent id="t"/><endEvent id="u"/>', "t>u", identity="q")
    model = read(process(tasks("A")), other)
    assert words_of(model) == {"A"}
    (notice,) = (notice for notice in model.notices if "this process is read" in notice.message)
    assert str(notice) == "p: this process is read; the others of the file, 'q', have no activities"


def test_a_wrong_choice_is_refused_with_the_list() -> None:
    listed = "choose one of 'p1' (Our shop), 'p2' (Buying), 'p3' (Customer)"
    assert problems_of(*THREE, process="p9") == [("", f"there is no process 'p9'; {listed}")]
    assert problems_of(*THREE, process="Customer") == [("", f"2 processes are called 'Customer'; {listed}")]
    assert problems_of(*THREE, process="Bank") == [("", f"there is no process 'Bank'; {listed}")]
    assert problems_of(*THREE, process="p4") == [("p4", "this process is empty; give it activities, or choose another")]


def test_processes_without_flow_nodes_do_not_count() -> None:
    assert words_of(read(process(tasks("A")), process("", identity="q"))) == {"A"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "the file has no process; save it as BPMN 2.0 with the process, not the collaboration alone"),
        ((process(""),), "no process of the file has an activity, event or gateway; export the file with its elements"),
        (('<choreography id="c"/>',), "the file has a choreography, which is not read; a process with activities is"),
        (
            ('<collaboration id="c"><conversation id="t"/></collaboration>',),
            "the file has conversations, which are not read; a process with activities is",
        ),
    ],
)
def test_files_without_process_are_refused(parts: tuple[str, ...], message: str) -> None:
    assert problems_of(*parts) == [("", message)]


def test_what_is_beside_the_process_is_left_out_with_a_notice() -> None:
    others = (
        '<choreography id="x"/><collaboration id="c"><messageFlow id="m"/><subConversation id="t"/></collaboration>'
    )
    assert notices_of(process(tasks("A")), others) == [
        "x: choreography is left out: only one process is read",
        "c: 1 message flow is left out",
        "c: conversations are left out: only one process is read",
    ]


def test_the_model_is_called_like_the_process_or_its_pool() -> None:
    assert read(*THREE, process="p1").name == "Our shop"
    assert read(*THREE, process="p2").name == "Buying"
    assert read(process(tasks("A"))).name == "p"
    assert read(process(tasks("A"))).format is ModelFormat.BPMN


# Names of elements


@pytest.mark.parametrize(
    "namespace",
    [
        MODEL,
        "",
        "http://schema.omg.org/spec/BPMN/2.0",
        "http://www.omg.org/bpmn20",
        "https://www.omg.org/spec/BPMN/20100501/MODEL",
    ],
)
def test_all_namespaces_of_bpmn_are_known(namespace: str) -> None:
    model = read_bpmn(definitions(process(START + tasks("A"), "s>A"), namespace=namespace), ReadOptions())
    assert words_of(model) == {"A"}


@pytest.mark.parametrize(
    "namespace", ["http://www.omg.org/spec/DMN/20180521/MODEL/", "http://schemas.xmlsoap.org/wsdl/"]
)
def test_definitions_of_other_notations_are_refused(namespace: str) -> None:
    with pytest.raises(ModelRefused, match=r"the root is <definitions>; a BPMN 2\.0 file has"):
        read_bpmn(definitions(process(tasks("A")), namespace=namespace), ReadOptions())


def test_elements_of_other_namespaces_are_ignored() -> None:
    foreign = '<task xmlns="urn:other" id="X"/><extensionElements><task id="Y"/></extensionElements>'
    assert words(START + tasks("A") + foreign, "s>A") == {"A"}
    assert notices_of(process(START + tasks("A") + foreign, "s>A")) == []


def test_unknown_elements_are_left_out_with_a_notice() -> None:
    body = START + tasks("A") + '<oddity id="o"/><dataObject id="d"/><textAnnotation id="n"/><group id="g"/>'
    assert notices_of(process(body, "s>A")) == ["o: <oddity> is not known and is left out"]


def test_unknown_elements_that_flows_touch_are_refused() -> None:
    body = START + tasks("A") + '<oddity id="o"/>' + flow("f1", 'sourceRef="A" targetRef="o"')
    (element, message), *_ = problems_of(process(body, "s>A"))
    assert (element, message) == ("o", "<oddity> is not known here, and flows touch it; use a task")


def test_choreography_activities_are_refused() -> None:
    assert problems_of(process(tasks("A") + '<choreographyTask id="t"/>')) == [
        ("t", "<choreographyTask> is part of a choreography, which is not read; draw it as a task")
    ]


# Flows


def test_a_flow_without_one_end_is_refused_with_both_reasons() -> None:
    body = START + tasks("A") + flow("f1", 'sourceRef="s"') + flow("f2", 'sourceRef="gone" targetRef="A"')
    what = "is not an activity, event or gateway of the process; connect it or remove it"
    assert problems_of(process(body)) == [
        ("f1", f"this flow has no target: targetRef '' {what}"),
        ("f2", f"this flow has no source: sourceRef 'gone' {what}"),
    ]


def test_a_flow_without_both_ends_is_left_out() -> None:
    part = process(START + tasks("A") + flow("f", ""), "s>A")
    assert notices_of(part) == ["f: this flow has neither a source nor a target in the process and is left out"]


def test_a_missing_end_is_that_of_the_node_that_mentions_the_flow() -> None:
    body = '<startEvent id="s"><outgoing>f</outgoing></startEvent><task id="A"><incoming>f</incoming></task>'
    part = process(body + flow("f", 'sourceRef="s"'))
    assert words_of(read(part)) == {"A"}
    assert notices_of(part) == ["f: targetRef is missing; A, which mentions the flow, is taken for it"]


def test_a_flow_that_only_nodes_mention_is_read() -> None:
    body = '<startEvent id="s"><outgoing>f</outgoing></startEvent><task id="A"><incoming>f</incoming></task>'
    assert words_of(read(process(body))) == {"A"}
    assert notices_of(process(body)) == ["f: this flow is only mentioned, by s and by A"]


def test_mentions_that_lead_nowhere_do_no_harm() -> None:
    body = '<startEvent id="s"><outgoing>gone</outgoing></startEvent><task id="A"><incoming>other</incoming></task>'
    assert words(body, "s>A") == {"A"}


def test_references_may_have_prefixes() -> None:
    assert words(START + tasks("A") + flow("f", 'sourceRef="x:s" targetRef="x:A"')) == {"A"}


def test_a_flow_that_stands_in_another_process_is_found() -> None:
    parts = (
        process(START + tasks("A B"), "A>B"),
        process(tasks("Z") + flow("f", 'sourceRef="s" targetRef="A"'), identity="q"),
    )
    assert words_of(read(*parts, process="p")) == {"A B"}
    assert notices_of(*parts, process="p") == ["f: this flow is in another process than its ends"]


def test_a_flow_across_the_border_of_a_sub_process_is_refused() -> None:
    found = problems_of(process(START + tasks("A") + sub_process("sub", tasks("B C"), "C>B"), "s>A>sub A>B"))
    where = "which is on another level, on the border of an activity or for compensation"
    what = "a flow stays within its process or sub-process"
    assert found == [("A-B", f"this flow leads from A to B, {where}; {what}")]


def test_a_flow_that_stands_twice_is_read_once() -> None:
    once = flow("f", 'sourceRef="s" targetRef="A"')
    assert words(START + tasks("A") + once + once) == {"A"}
    assert notices_of(process(START + tasks("A") + once + once)) == [
        "f: this flow is in the file twice and is read once"
    ]


def test_flows_of_one_id_are_told_apart_by_their_ends() -> None:
    both = flow("f", 'sourceRef="s" targetRef="A"') + flow("f", 'sourceRef="A" targetRef="B"')
    assert words(START + tasks("A B") + both) == {"A B"}
    assert notices_of(process(START + tasks("A B") + both)) == [
        "f: several flows have this id; they are distinguished by their ends"
    ]


def test_flows_need_no_id() -> None:
    body = (
        START + tasks("A B") + '<sequenceFlow sourceRef="s" targetRef="A"/><sequenceFlow sourceRef="A" targetRef="B"/>'
    )
    assert words(body) == {"A B"}


# Ids


def test_nodes_of_one_id_are_refused_where_flows_name_it() -> None:
    body = START + '<task id="A" name="first"/><task id="A" name="second"/>'
    assert problems_of(process(body, "s>A")) == [
        ("A", "task 'second' (A) and task 'first' (A) have one id, and flows name it; give each its own")
    ]


def test_nodes_of_one_id_are_told_apart_where_no_flow_names_it() -> None:
    body = '<task id="A" name="first"/><task id="A" name="second"/>'
    assert words(body) == {"first second", "second first"}
    assert notices_of(process(body)) == ["A: this id is used twice; task 'second' (A#1) is distinguished"]


def test_nodes_without_id_get_one() -> None:
    assert words('<task name="A"/>') == {"A"}
    said = "p: task 'A' (without id, line 1) has no id, so that no flow can name it; p#0 is made: add id=\"...\""
    assert notices_of(process('<task name="A"/>')) == [said]


def test_what_nothing_leads_to_is_left_out_with_a_notice() -> None:
    part = process(START + tasks("A B C"), "s>A B>C")
    assert words_of(read(part)) == {"A"}
    assert notices_of(part) == [
        f"{name}: nothing leads to task ({name}), so it never happens and is left out" for name in "BC"
    ]


def test_all_problems_are_listed_at_once() -> None:
    body = START + '<complexGateway id="g"/>' + tasks("A") + '<boundaryEvent id="b"/>' + flow("f", 'sourceRef="s"')
    assert [element for element, _ in problems_of(process(body))] == ["f", "b", "g"]


def test_very_many_problems_and_notices_are_cut_short() -> None:
    found = problems_of(process(tasks("A") + "".join(f'<complexGateway id="g{n}"/>' for n in range(300))))
    assert len(found) == 201
    assert found[-1] == ("", "and 100 problems more")
    notices = notices_of(process(tasks("A") + "".join(f'<odd id="g{n}"/>' for n in range(300))))
    assert notices[-1] == "and 100 notices more"
    long = notices_of(process(tasks("A") + f'<subProcess id="x" name="{"n" * 5_000}"/>'))
    assert len(long[0]) < 1_100


def test_a_process_of_too_many_elements_is_refused() -> None:
    found = problems_of(process("".join(f'<task id="t{n}"/>' for n in range(20_001))))
    assert found == [("t20000", "the process has more than 20,000 elements, called ones included")]


# Forms and garbage


def test_the_form_is_seen_from_the_file() -> None:
    assert format_of(definitions(process(tasks("A")))) is ModelFormat.BPMN
    assert format_of(b"\xef\xbb\xbf <pnml/>") is ModelFormat.PNML
    assert format_of("<?xml version='1.0' encoding='UTF-16'?><pnml/>".encode("utf-16")) is ModelFormat.PNML
    assert format_of(b"tree: A") is ModelFormat.TREE
    assert format_of(b'{"tree": "A"}') is ModelFormat.TREE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<Package/>", "this is XML with the root <Package>, which is not a known form of model; BPMN 2.0"),
        (b"  ", "the file is empty; BPMN 2.0 .XML., PNML .XML., and process trees .YAML or JSON. are read"),
        (b"\x89PNG\r\n\x1a\n\x00", "this is neither XML nor text in UTF-8; BPMN 2.0"),
        (b"<a b='", "not well-formed XML"),
    ],
)
def test_other_forms_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(ModelRefused, match=message):
        read_model(content)


def test_models_of_all_forms_are_read() -> None:
    bpmn = read_model(definitions(process(tasks("A"))))
    assert (bpmn.format, words_of(bpmn)) == (ModelFormat.BPMN, {"A"})
    assert read_model(b"tree: A").format is ModelFormat.TREE
    assert read_model(EXAMPLE.with_suffix(".pnml").read_bytes()).format is ModelFormat.PNML
    assert read_model(EXAMPLE.read_bytes(), format=ModelFormat.BPMN).name == "order"
    with pytest.raises(ModelRefused):
        read_model(b"tree: A", ReadOptions(), ModelFormat.BPMN)


def test_broken_files_are_refused_or_read_but_never_crash() -> None:
    source = random.Random(23)
    seed = EXAMPLE.read_bytes()
    outcomes = {"read": 0, "refused": 0}
    for round_ in range(150):
        content = bytearray(seed[: source.randrange(len(seed))] if round_ % 10 == 0 else seed)
        for _ in range(source.randrange(1, 4)):
            place = content.find(b'="', source.randrange(len(content))) + 2
            content[place : place + source.randrange(4)] = source.choice([b"", b"x", b"check_credit", b"&", b"order"])
        try:
            model = read_bpmn(bytes(content), ReadOptions())
            assert isinstance(model.source, FlowGraph)
            outcomes["read"] += 1
        except ModelRefused:
            outcomes["refused"] += 1
    assert outcomes["read"] > 10
    assert outcomes["refused"] > 10
