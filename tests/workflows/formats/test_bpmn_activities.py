"""Tasks, sub-processes and calls: what they emit, and how often."""

import pytest

from tests.builders.bpmn import boundary, definitions, process, read, sub_process, tasks, words, words_of
from workflows.errors import ModelRefused
from workflows.formats.bpmn.reading import read_bpmn
from workflows.model import ReadOptions
from workflows.nets.graph import FlowGraph, Repeat

START = '<startEvent id="s"/>'
KINDS = ["task", "userTask", "serviceTask", "sendTask", "receiveTask", "manualTask", "scriptTask", "businessRuleTask"]


def instances(content: str, attributes: str = "") -> str:
    return f"<multiInstanceLoopCharacteristics {attributes}>{content}</multiInstanceLoopCharacteristics>"


def problems_of(*parts: str, process: str | None = None) -> list[tuple[str, str]]:
    with pytest.raises(ModelRefused) as caught:
        read(*parts, process=process)
    return list(caught.value.problems)


def notices_of(*parts: str) -> list[str]:
    return [str(notice) for notice in read(*parts).notices]


@pytest.mark.parametrize("kind", [*KINDS, "mailTask"])
def test_tasks_of_all_kinds_emit(kind: str) -> None:
    assert words(START + f'<{kind} id="A"/>', "s>A") == {"A"}


def test_events_gateways_and_sub_processes_do_not_emit() -> None:
    inner = sub_process("sub", '<startEvent id="i" name="I"/><task id="A"/>', "i>A", 'name="Sub"')
    body = '<startEvent id="s" name="S"/><intermediateThrowEvent id="x" name="X"/><endEvent id="e" name="E"/>' + inner
    assert words(body, "s>x>sub>e") == {"A"}


def test_labels_are_names_with_white_space_normalised_else_ids() -> None:
    body = START + '<task id="t1" name="  Send \n\t the&#10;bill "/><task id="t2" name=" "/>'
    model = read(process(body, "s>t1>t2"))
    assert words_of(model) == {"Send the bill t2"}


def test_a_mapping_names_events_by_id_before_name_and_silences() -> None:
    body = START + '<task id="t1" name="Send  it"/><task id="t2" name="Send it"/><task id="t3" name="Quiet"/>'
    mapping = {"t2": "second", "Send \n it": "sent", "Quiet": None, "Absent": "x"}
    model = read(process(body, "s>t1>t2>t3"), mapping=mapping)
    assert words_of(model) == {"sent second"}
    assert [str(notice) for notice in model.notices] == [
        "the mapping names 'Absent', which is not a task of this model"
    ]


def test_tasks_of_one_name_emit_one_type() -> None:
    body = START + '<task id="t1" name="A"/><task id="t2" name="A"/>'
    assert words(body, "s>t1>t2") == {"A A"}


# Loops and instances


@pytest.mark.parametrize(
    ("marker", "found"),
    [
        ("<standardLoopCharacteristics/>", {"A", "A A", "A A A"}),
        ('<standardLoopCharacteristics testBefore="true"/>', {"", "A", "A A", "A A A"}),
        ('<standardLoopCharacteristics loopMaximum="2"/>', {"A", "A A"}),
        ('<standardLoopCharacteristics testBefore="1" loopMaximum="2"/>', {"", "A", "A A"}),
        (instances("", 'isSequential="true"'), {"", "A", "A A", "A A A"}),
        (instances(""), {"", "A", "A A", "A A A"}),
        (instances("<loopCardinality> 2 </loopCardinality>"), {"A A"}),
        (instances("<loopCardinality>=3</loopCardinality><completionCondition/>"), {"A", "A A", "A A A"}),
        (instances("<loopCardinality>${n}</loopCardinality>"), {"", "A", "A A", "A A A"}),
        (instances("<loopCardinality>0</loopCardinality>"), {""}),
    ],
)
def test_markers_say_how_often_a_task_happens(marker: str, found: set[str]) -> None:
    assert words(START + f'<task id="A">{marker}</task>', "s>A", length=3) == found


@pytest.mark.parametrize(
    ("said", "found"), [("one-or-more", {"A", "A A"}), ("zero-or-more", {"", "A", "A A"}), (None, {"", "A", "A A"})]
)
def test_a_mapping_says_whether_there_may_be_no_instance(said: str | None, found: set[str]) -> None:
    body = process(START + f'<task id="A">{instances("")}</task>', "s>A")
    model = read(body, mapping={} if said is None else {":instances": said})
    assert words_of(model, length=2) == found
    assert not model.notices


def test_other_words_for_instances_are_refused() -> None:
    with pytest.raises(ModelRefused, match=r"write zero-or-more .* or one-or-more"):
        read(process(START + '<task id="A"/>', "s>A"), mapping={":instances": "some"})


def test_instances_of_a_sub_process_run_at_once_unless_they_are_sequential() -> None:
    def run(attributes: str) -> set[str]:
        marker = instances("<loopCardinality>2</loopCardinality>", attributes)
        return words(START + sub_process("sub", marker + tasks("A B"), "A>B"), "s>sub")

    assert run('isSequential="true"') == {"A B A B"}
    assert run("") == {"A B A B", "A A B B"}


def test_a_loop_of_a_sub_process_repeats_all_of_it() -> None:
    body = sub_process("sub", "<standardLoopCharacteristics/>" + tasks("A B"), "A>B")
    assert words(START + body, "s>sub", length=4) == {"A B", "A B A B"}


def test_loop_limits_that_make_no_sense_are_left_out_with_a_notice() -> None:
    marker = '<standardLoopCharacteristics loopMaximum="5000"/>'
    model = read(process(START + f'<task id="A">{marker}</task>', "s>A"))
    assert words_of(model, 3) == {"A", "A A", "A A A"}
    assert [str(notice) for notice in model.notices] == [
        "A: loopMaximum '5000' is not a number from 1 to 1,000 and is left out"
    ]


def test_instances_beyond_bounds_are_refused() -> None:
    many = (
        "<multiInstanceLoopCharacteristics><loopCardinality>5000</loopCardinality></multiInstanceLoopCharacteristics>"
    )
    assert problems_of(process(START + f'<task id="A">{many}</task>', "s>A")) == [
        ("A", "task (A) has 5,000 instances; 1,000 can be read; leave the number out")
    ]
    cut = instances("<completionCondition/>")
    assert problems_of(process(START + sub_process("sub", cut + tasks("A B"), "A>B"), "s>sub")) == [
        (
            "sub",
            (
                "sub-process (sub) has a completion condition that can end instances half-way, which is not read; "
                "make the instances sequential or remove the condition"
            ),
        )
    ]


def test_activities_that_take_or_give_several_tokens_are_refused() -> None:
    body = START + '<task id="A" startQuantity="2" completionQuantity="3"/><task id="B" startQuantity="1"/>'
    assert problems_of(process(body, "s>A>B")) == [
        ("A", "task (A) waits for 2 tokens (startQuantity), which is not read; use 1"),
        ("A", "task (A) gives 3 tokens (completionQuantity), which is not read; use 1"),
    ]


# Sub-processes


@pytest.mark.parametrize("kind", ["subProcess", "transaction"])
def test_a_sub_process_runs_from_its_start_to_its_ends(kind: str) -> None:
    inner = sub_process("sub", '<startEvent id="i"/><endEvent id="e"/>' + tasks("B C"), "i>B>e i>C>e", kind=kind)
    assert words(START + tasks("A D") + inner, "s>A>sub>D") == {"A B C D", "A C B D"}


def test_a_sub_process_without_flows_does_all_at_once() -> None:
    assert words(START + sub_process("sub", tasks("A B")), "s>sub") == {"A B", "B A"}


def test_a_sub_process_without_content_is_silent_unless_it_is_mapped() -> None:
    part = process(START + '<subProcess id="sub" name="Rest"/>' + tasks("A"), "s>sub>A")
    model = read(part)
    assert words_of(model) == {"A"}
    assert [str(notice) for notice in model.notices] == [
        "sub: sub-process 'Rest' (sub) has no content in the file; it is silent, unless a mapping names it"
    ]
    mapped = read(part, mapping={"Rest": "rested"})
    assert words_of(mapped) == {"rested A"}
    assert mapped.notices == ()


def test_an_ad_hoc_sub_process_does_its_activities_in_any_order_and_number() -> None:
    part = process(START + sub_process("sub", tasks("A B"), kind="adHocSubProcess"), "s>sub")
    model = read(part)
    assert words_of(model, 2) == {"", "A", "B", "A A", "A B", "B A", "B B"}
    assert [str(notice) for notice in model.notices] == [
        "sub: ad-hoc sub-process (sub): its activities come in any order, any number of times"
    ]


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ('ordering="Sequential"', {"", "A B", "C", "C C", "C C C", "A B C", "C A B"}),
        ("", {"", "A B", "C", "C C", "C C C", "A B C", "C A B", "A C B"}),
    ],
)
def test_flows_in_an_ad_hoc_sub_process_make_fragments(attributes: str, found: set[str]) -> None:
    inner = sub_process("sub", tasks("A B C"), "A>B", attributes, kind="adHocSubProcess")
    assert words(START + inner, "s>sub", length=3) == found


def test_fragments_with_boundary_events_stay_together() -> None:
    inner = sub_process(
        "sub", tasks("A B C") + boundary("x", "A"), "x>B", 'ordering="Sequential"', kind="adHocSubProcess"
    )
    assert words(START + inner, "s>sub", length=2) == {"", "A", "B", "C"} | {f"{a} {b}" for a in "ABC" for b in "ABC"}


def test_sub_processes_are_nested_to_a_bound() -> None:
    deep = tasks("A")
    for level in range(39):
        deep = sub_process(f"n{level}", deep)
    assert words(deep) == {"A"}
    assert problems_of(process(sub_process("n39", sub_process("n40", deep)))) == [
        ("n0", "sub-processes and calls are nested more than 40 deep")
    ]


def test_a_sub_process_that_nothing_starts_is_refused() -> None:
    assert problems_of(process(START + sub_process("sub", tasks("A B"), "A>B>A"), "s>sub")) == [
        ("sub", "nothing starts sub-process (sub): flows lead to all of its elements; add a start event")
    ]


# Calls


def test_a_called_process_of_the_file_is_put_in() -> None:
    called = process('<startEvent id="s"/>' + tasks("X Y"), "s>X>Y", identity="q")
    body = START + tasks("A") + '<callActivity id="c" name="Call" calledElement="q"/>'
    body += '<callActivity id="d" name="Again" calledElement="tns:q"/>'
    assert words(body, "s>A>c>d", called) == {"A X Y X Y"}


@pytest.mark.parametrize("target", ["", 'calledElement="elsewhere"', 'calledElement="global"'])
def test_a_call_of_anything_else_is_an_activity(target: str) -> None:
    body = START + f'<callActivity id="c" name="Call  it" {target}/>'
    assert words(body, "s>c", '<globalUserTask id="global" name="G"/>') == {"Call it"}


def test_a_call_of_an_empty_process_is_an_activity_with_a_notice() -> None:
    parts = (process(START + '<callActivity id="c" calledElement="q"/>', "s>c"), process("", identity="q"))
    assert words_of(read(*parts)) == {"c"}
    assert notices_of(*parts) == ["c: call activity (c) calls process 'q', which is empty; it is read as a task"]


def test_a_call_with_content_of_its_own_is_like_a_sub_process() -> None:
    assert words(START + sub_process("c", tasks("A"), kind="callActivity"), "s>c") == {"A"}


def test_calls_in_a_cycle_are_refused_with_the_cycle() -> None:
    first = process('<callActivity id="c1" name="To q" calledElement="q"/>')
    second = process('<callActivity id="c2" calledElement="r"/>', identity="q")
    third = process('<callActivity id="c3" calledElement="q"/>', identity="r")
    assert problems_of(first, second, third, process="p") == [
        (
            "c3",
            (
                "processes call each other in a cycle, which has no end: "
                "q -> r (by call activity (c2)) -> q (by call activity (c3))"
            ),
        )
    ]
    assert problems_of(process('<callActivity id="c" calledElement="p"/>')) == [
        ("c", "processes call each other in a cycle, which has no end: p -> p (by call activity (c))")
    ]


def test_ids_are_unique_although_a_process_is_put_in_twice() -> None:
    called = process(tasks("X"), identity="q")
    calls = '<callActivity id="c" calledElement="q"/><callActivity id="d" calledElement="q"/>'
    source = read(process(calls, "c>d"), called, process="p").source
    assert isinstance(source, FlowGraph)
    inner = [node.block.graph for node in source.nodes if node.block is not None]
    assert [[node.id for node in graph.nodes] for graph in inner] == [["c/X", "c/q#start"], ["d/X", "d/q#start"]]


def test_calls_that_multiply_are_refused_in_bounded_time() -> None:
    parts = [
        process(
            f'<callActivity id="a" calledElement="p{n + 1}"/><callActivity id="b" calledElement="p{n + 1}"/>',
            "",
            f"p{n}",
        )
        for n in range(30)
    ]
    found = problems_of(*parts, process(tasks("A"), identity="p30"), process="p0")
    assert [message for _, message in found] == ["the process has more than 20,000 elements, called ones included"]


@pytest.mark.slow
def test_calls_of_a_large_process_are_refused_in_bounded_time() -> None:
    calls = "".join(f'<callActivity id="a{n}" calledElement="q"/>' for n in range(2_000))
    found = problems_of(process(calls), process("<dataObject/>" * 2_000 + tasks("A"), identity="q"), process="p")
    assert [message for _, message in found] == ["processes call each other too many times to be read"]


def test_a_chain_of_calls_is_bounded() -> None:
    parts = [process(f'<callActivity id="a" calledElement="p{n + 1}"/>', "", f"p{n}") for n in range(45)]
    assert problems_of(*parts, process(tasks("A"), identity="p45"), process="p0") == [
        ("p41", "sub-processes and calls are nested more than 40 deep")
    ]


def test_a_repeated_task_is_a_block_with_the_task_in_it() -> None:
    body = '<userTask id="A" name="Do it"><standardLoopCharacteristics/></userTask>'
    model = read_bpmn(definitions(process(START + body, "s>A")), ReadOptions())
    assert isinstance(model.source, FlowGraph)
    block = model.source.nodes[1].block
    assert block is not None
    assert block.repeat == Repeat(least=1)
    assert [str(node) for node in block.graph.nodes] == ["user task 'Do it' (A)"] * 2
    assert block.graph.nodes[1].label == "Do it"
