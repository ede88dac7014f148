"""What a BPMN file says of itself that a reader should know: ids, namespaces, imports, calls, tasks without flows."""

import pytest

from tests.builders.bpmn import MODEL
from workflows import ModelRefused, ReadOptions, read_model

START = '<startEvent id="s"/><task id="a" name="Pay"/>'
FLOW = '<sequenceFlow id="f" sourceRef="s" targetRef="a"/>'


def notices_of(body, namespace=f' xmlns="{MODEL}"', before="", after=""):
    text = f'<definitions{namespace}>{before}<process id="p">{body}</process>{after}</definitions>'
    return [str(notice) for notice in read_model(text.encode(), ReadOptions(), None).notices]


def test_a_flow_without_id_is_told_by_name_line_and_ends():
    with pytest.raises(ModelRefused) as caught:
        notices_of(START + FLOW + '\n<sequenceFlow name="on" sourceRef="a"/>')
    ((element, message),) = caught.value.problems
    assert element == "sequence flow 'on' from 'a' to '' (without id, line 2)"
    assert message.endswith("connect it, give it an id or remove it")


@pytest.mark.parametrize(
    ("namespace", "said"),
    [("", "no namespace"), (' xmlns="http://schema.omg.org/spec/BPMN/1.1"', "the namespace 'http://schema.omg")],
)
def test_another_namespace_than_that_of_bpmn_2_is_noted(namespace, said):
    (notice,) = notices_of(START + FLOW, namespace)
    assert notice.startswith(f"the file has {said}")
    assert notices_of(START + FLOW) == []


def test_imports_and_calls_of_what_is_elsewhere_are_noted():
    call = '<callActivity id="c" name="Ship" calledElement="q:ship"/><sequenceFlow id="g" sourceRef="a" targetRef="c"/>'
    found = notices_of(START + FLOW + call, before='<import location="other.bpmn"/>')
    assert found == [
        "the import of 'other.bpmn' (line 1) is not read: only this file is",
        "c: call activity 'Ship' (c) calls 'q:ship', which is not a process of this file; it is read as a task",
    ]


CALLED = (
    '<process id="q"><startEvent id="t"/><task id="b"/><sequenceFlow id="h" sourceRef="t" targetRef="b"/></process>'
)
CALL = '<callActivity id="c" calledElement="q"/><sequenceFlow id="g" sourceRef="a" targetRef="c"/>'


def test_the_only_process_that_nobody_calls_is_chosen():
    assert notices_of(START + FLOW + CALL, after=CALLED) == [
        "p: this process is read; others of the file, 'q', are called by it"
    ]


def test_where_two_are_called_by_nobody_one_has_to_be_named():
    third = CALLED.replace('"q"', '"r"').replace('"t"', '"t2"').replace('"b"', '"b2"').replace('"h"', '"h2"')
    for body, after in ((START + FLOW, CALLED), (START + FLOW + CALL, CALLED + third)):
        with pytest.raises(ModelRefused, match="choose one by its id"):
            notices_of(body, after=after)


def test_a_task_that_no_flow_touches_is_named():
    begun = notices_of(START + FLOW + '<task id="x" name="Lost"/>')
    assert begun == ["x: nothing leads to task 'Lost' (x), so it never happens and is left out"]
    loose = '<task id="a"/><task id="b"/><task id="x" name="Lost"/><sequenceFlow id="f" sourceRef="a" targetRef="b"/>'
    (notice,) = notices_of(loose)
    assert notice.startswith("x: no flow leads to or from task 'Lost' (x)")
