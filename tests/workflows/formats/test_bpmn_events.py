"""Events: starts, ends, borders, throwing and catching, links, compensation."""

import pytest

from tests.builders.bpmn import boundary, process, read, sub_process, tasks, words, words_of
from tests.builders.workflows import broken_parts
from workflows import check_trace, compile_workflow
from workflows.errors import ModelRefused

START = '<startEvent id="s"/>'
NOT_CUTTING = 'cancelActivity="false"'
ERROR = "<errorEventDefinition/>"
ESCALATION = "<escalationEventDefinition/>"
ERRORS = '<error id="e1" errorCode="1"/><error id="e2" errorCode="2"/><error id="also1" errorCode="1"/>'


def event(kind: str, identity: str, trigger: str = "", attributes: str = "") -> str:
    return f'<{kind} id="{identity}" {attributes}>{trigger}</{kind}>'


def error(reference: str) -> str:
    return f'<errorEventDefinition errorRef="{reference}"/>'


def problems_of(body: str, arrows: str = "", *others: str) -> list[tuple[str, str]]:
    with pytest.raises(ModelRefused) as caught:
        read(process(body, arrows), *others, process="p")
    return list(caught.value.problems)


def notices_of(body: str, arrows: str = "", *others: str) -> list[str]:
    return [str(notice) for notice in read(process(body, arrows), *others, process="p").notices]


# Starts and ends


def test_several_start_events_are_alternatives() -> None:
    assert words(START + '<startEvent id="t"/>' + tasks("A B C"), "s>A>C t>B>C") == {"A C", "B C"}


def test_without_start_event_all_that_no_flow_leads_to_starts() -> None:
    assert words(tasks("A B C"), "A>B") == {"A B C", "A C B", "C A B"}
    assert words(tasks("A")) == {"A"}


def test_without_end_event_what_no_flow_leaves_ends() -> None:
    assert words(START + tasks("A B"), "s>A s>B") == {"A B", "B A"}


def test_an_end_takes_one_token_and_lets_others_go_on() -> None:
    body = START + tasks("A B C") + event("endEvent", "e")
    assert words(body, "s>A>e s>B>C") == {"A B C", "B A C", "B C A"}


def test_a_start_event_alone_is_a_trace_without_events() -> None:
    assert words(START) == {""}


def test_flows_into_a_start_event_pass_through_it() -> None:
    body = START + tasks("A B") + '<exclusiveGateway id="g"/>'
    assert words(body, "s>A>g>B g>s", length=4) == {"A B", "A A B", "A A A B"}
    assert notices_of(body, "s>A>g>B g>s") == ["s: flows lead to start event (s); it is also passed through by them"]


def test_nothing_can_leave_an_end_event() -> None:
    assert problems_of(START + event("endEvent", "e") + tasks("A"), "s>e>A") == [
        ("e", "a flow leaves end event (e); none can, use an intermediate event or remove the flow")
    ]


def test_a_process_that_goes_round_without_start_is_refused() -> None:
    assert problems_of(tasks("A B"), "A>B>A") == [
        ("p", "nothing starts process (p): flows lead to all of its elements; add a start event")
    ]


def test_terminate_ends_the_trace_at_once() -> None:
    body = START + tasks("A B C") + event("endEvent", "e", "<messageEventDefinition/><terminateEventDefinition/>")
    assert words(body, "s>A>e s>B>C") == {"A", "B A", "B C A"}


def test_terminate_in_a_sub_process_ends_only_that() -> None:
    inner = sub_process("sub", tasks("A B") + event("endEvent", "e", "<terminateEventDefinition/>"), "A>e")
    assert words(START + inner + tasks("C"), "s>sub>C") == {"A C", "B A C"}


def test_definitions_that_stand_elsewhere_are_found() -> None:
    end = event("endEvent", "e", "<eventDefinitionRef>x:stop</eventDefinitionRef>")
    assert words(START + tasks("A B") + end, "s>A>e s>B", '<terminateEventDefinition id="stop"/>') == {"A", "B A"}


@pytest.mark.parametrize(
    ("kind", "trigger"),
    [
        ("intermediateCatchEvent", "<timerEventDefinition/>"),
        ("intermediateCatchEvent", "<messageEventDefinition/>"),
        ("intermediateThrowEvent", "<signalEventDefinition/>"),
        ("intermediateThrowEvent", ""),
        ("intermediateThrowEvent", ESCALATION),
        ("intermediateThrowEvent", "<compensateEventDefinition/>"),
        ("implicitThrowEvent", ""),
    ],
)
def test_events_on_the_way_are_passed(kind: str, trigger: str) -> None:
    assert words(START + event(kind, "x", trigger) + tasks("A B"), "s>A>x>B") == {"A B"}


# Boundary events


def test_an_interrupted_task_emits_nothing() -> None:
    assert words(START + tasks("A B C") + boundary("x", "A"), "s>A>B x>C") == {"A B", "C"}


CAUGHT = (
    START
    + tasks("A B")
    + '<intermediateCatchEvent id="x" name="Paid in full"><{}EventDefinition/></intermediateCatchEvent>'
)
NAMED_THROW = (
    START
    + tasks("A B")
    + '<intermediateThrowEvent id="x" name="Sent"><messageEventDefinition/></intermediateThrowEvent>'
)


def mapped(body: str, arrows: str, **mapping: str | None) -> set[str]:
    model = read(process(body, arrows), mapping={name.replace("_", " "): label for name, label in mapping.items()})
    assert not [notice for notice in model.notices if "the mapping names" in notice.message]
    return {word.replace("Paid in full", "paid") for word in words_of(model)}


@pytest.mark.parametrize("trigger", ["message", "timer", "signal", "conditional"])
def test_a_catch_event_with_a_name_may_be_an_event_and_a_mapping_decides(trigger: str) -> None:
    body = CAUGHT.format(trigger)
    assert mapped(body, "s>A>x>B") == {"A paid B", "A B"}
    assert mapped(body, "s>A>x>B", Paid_in_full="Payment") == {"A Payment B"}
    assert mapped(body, "s>A>x>B", x="Payment") == {"A Payment B"}
    assert mapped(body, "s>A>x>B", x=None) == {"A B"}
    assert notices_of(body, "s>A>x>B") == [
        (
            "x: intermediate catch event 'Paid in full' (x) may emit 'Paid in full' or not; "
            "a mapping says that it always does (Paid in full: EVENT_TYPE) or never (Paid in full: null)"
        )
    ]


def test_a_catch_event_with_a_name_is_drawn_with_its_event_type() -> None:
    model = read(process(CAUGHT.format("message"), "s>A>x>B"), mapping={"x": "Payment"})
    assert "Payment" in str(model.source)


def test_a_throw_event_is_an_event_on_request() -> None:
    assert mapped(NAMED_THROW, "s>A>x>B") == {"A B"}
    assert mapped(NAMED_THROW, "s>A>x>B", Sent="Sent") == {"A Sent B"}


def test_events_after_an_event_based_gateway_are_alternatives() -> None:
    caught = [
        f'<intermediateCatchEvent id="{one}" name="{one}"><messageEventDefinition/></intermediateCatchEvent>'
        for one in ("yes", "no")
    ]
    body = START + tasks("A B C") + '<eventBasedGateway id="g"/>' + "".join(caught)
    model = read(process(body, "s>A>g>yes>B g>no>C"), mapping={"yes": "yes", "no": "no"})
    assert words_of(model) == {"A yes B", "A no C"}
    assert words(body, "s>A>g>yes>B g>no>C") == {"A yes B", "A B", "A no C", "A C"}


def test_a_boundary_event_without_flow_ends() -> None:
    assert words(START + tasks("A B") + boundary("x", "A"), "s>A>B") == {"A B", ""}


def test_a_boundary_event_that_does_not_interrupt_happens_at_most_once() -> None:
    body = START + tasks("A B C") + boundary("x", "A", attributes=NOT_CUTTING)
    assert words(body, "s>A>B x>C") == {"A B", "C A B", "A C B", "A B C"}
    assert notices_of(body, "s>A>B x>C") == ["x: this event happens at most once whenever task (A) is active"]


def test_several_flows_out_of_a_boundary_event_are_all_taken() -> None:
    assert words(START + tasks("A B C") + boundary("x", "A"), "s>A x>B x>C") == {"A", "B C", "C B"}


def test_a_boundary_event_interrupts_a_sub_process_half_way() -> None:
    body = START + sub_process("sub", tasks("A B"), "A>B") + boundary("x", "sub") + tasks("C D")
    assert words(body, "s>sub>C x>D") == {"A B C", "D", "A D"}


def test_a_boundary_event_interrupts_all_rounds_of_a_loop() -> None:
    looped = '<task id="A"><standardLoopCharacteristics/></task>'
    assert words(START + looped + boundary("x", "A") + tasks("B"), "s>A x>B", length=3) == {
        "A", "A A", "A A A", "B", "A B", "A A B",
    }  # fmt: skip


def test_a_silent_task_with_a_boundary_event_is_no_event_but_can_be_left() -> None:
    model = read(process(START + tasks("A B") + boundary("x", "A"), "s>A x>B"), mapping={"A": None})
    assert words_of(model) == {"", "B"}


@pytest.mark.parametrize("host", ["", "s", "absent"])
def test_a_boundary_event_needs_an_activity(host: str) -> None:
    assert problems_of(START + tasks("A") + boundary("x", host), "s>A x>A") == [
        (
            "x",
            (
                f"boundary event (x) is on '{host}' (attachedToRef), which is not an activity of the same level; "
                "attach it to one"
            ),
        )
    ]


def test_no_flow_leads_to_a_boundary_event() -> None:
    found = problems_of(START + tasks("A B") + boundary("x", "A"), "s>A s>x")
    assert ("x", "a flow leads to boundary event (x); remove it, or use an intermediate event") in found


# Errors, escalations, cancellations


def test_an_error_that_is_thrown_leaves_by_the_boundary_event_only_then() -> None:
    inner = sub_process("sub", tasks("A B") + event("endEvent", "e", ERROR), "A>e")
    body = START + inner + boundary("x", "sub", ERROR) + tasks("C D")
    assert words(body, "s>sub>C x>D") == {"A D", "B A D"}


def test_an_error_that_nobody_throws_can_happen_at_any_time() -> None:
    body = START + sub_process("sub", tasks("A")) + boundary("x", "sub", ERROR) + tasks("B")
    assert words(body, "s>sub x>B") == {"A", "B"}


@pytest.mark.parametrize(
    ("thrown", "found"),
    [
        (error("e1"), {"A B"}),
        (error("t:also1"), {"A B"}),
        (error("e2"), {"A D"}),
        (error("unknown"), {"A D"}),
        (ERROR, {"A D"}),
    ],
)
def test_an_error_is_caught_by_its_code_before_by_any(thrown: str, found: set[str]) -> None:
    inner = sub_process("sub", tasks("A") + event("endEvent", "e", thrown), "A>e")
    catchers = boundary("x", "sub", error("e1")) + boundary("y", "sub", ERROR)
    body = START + inner + catchers + tasks("B D")
    never = {word for word in words(body, "s>sub x>B y>D", ERRORS) if word.startswith("A")}
    assert never == found


def test_an_error_without_code_goes_to_any_that_catches_errors() -> None:
    inner = sub_process("sub", tasks("A") + event("endEvent", "e", ERROR), "A>e")
    catchers = boundary("x", "sub", error("e1")) + boundary("y", "sub", error("e2"))
    assert words(START + inner + catchers + tasks("B D"), "s>sub x>B y>D", ERRORS) == {"A B", "A D"}


def test_an_error_goes_out_until_it_is_caught() -> None:
    called = process(tasks("A") + event("endEvent", "e", error("e1")), "A>e", identity="q")
    inner = sub_process(
        "sub", '<callActivity id="c" calledElement="q"/>' + boundary("x", "c", error("e2")) + tasks("N"), "x>N"
    )
    body = START + inner + boundary("y", "sub", error("e1")) + tasks("B")
    assert words(body, "s>sub y>B", called, ERRORS) == {"A B", "N"}


def test_an_error_that_nobody_catches_is_a_plain_end_with_a_notice() -> None:
    body = START + tasks("A B") + event("endEvent", "e", ERROR)
    assert words(body, "s>A>e s>B") == {"A B", "B A"}
    assert notices_of(body, "s>A>e s>B") == ["e: nothing catches the error of end event (e); it is a plain end"]


def test_an_escalation_goes_on_beside_what_catches_it() -> None:
    inner = sub_process("sub", tasks("A B") + event("intermediateThrowEvent", "t", ESCALATION), "A>t>B")
    body = START + inner + boundary("x", "sub", ESCALATION, NOT_CUTTING) + tasks("C")
    assert words(body, "s>sub x>C") == {"A B C", "A C B"}
    assert notices_of(body, "s>sub x>C") == []


def test_an_escalation_can_interrupt() -> None:
    inner = sub_process("sub", tasks("A B") + event("intermediateThrowEvent", "t", ESCALATION), "A>t>B")
    assert words(START + inner + boundary("x", "sub", ESCALATION) + tasks("C"), "s>sub x>C") == {"A C"}


def test_an_escalation_without_code_goes_to_any_and_on() -> None:
    escalations = '<escalation id="k1" escalationCode="1"/><escalation id="k2" escalationCode="2"/>'
    inner = sub_process("sub", tasks("A B") + event("intermediateThrowEvent", "t", ESCALATION), "A>t>B")
    catchers = "".join(
        boundary(f"x{n}", "sub", f'<escalationEventDefinition escalationRef="k{n}"/>', NOT_CUTTING) for n in (1, 2)
    )
    found = words(START + inner + catchers + tasks("C D"), "s>sub x1>C x2>D", escalations)
    assert found == {"A B C", "A C B", "A B D", "A D B"}


def test_a_transaction_that_is_cancelled_leaves_by_its_cancel_event() -> None:
    end = event("endEvent", "e", "<cancelEventDefinition/>")
    inner = sub_process("sub", tasks("A B") + end, "A>e", kind="transaction")
    cancel = boundary("x", "sub", "<cancelEventDefinition/>", NOT_CUTTING)
    assert words(START + inner + cancel + tasks("C D"), "s>sub>C x>D") == {"A D", "B A D"}


def test_a_cancel_end_that_nobody_catches_is_refused() -> None:
    assert problems_of(START + event("endEvent", "e", "<cancelEventDefinition/>"), "s>e") == [
        ("e", "end event (e) needs a cancel event on a transaction around it")
    ]


# Event sub-processes


def watching(start: str, body: str, arrows: str, attributes: str = "") -> str:
    begin = event("startEvent", "w", start, attributes)
    return sub_process("watch", begin + body, arrows, 'triggeredByEvent="true"')


def test_an_event_sub_process_interrupts_its_level() -> None:
    body = START + tasks("A B") + watching("<messageEventDefinition/>", tasks("X"), "w>X")
    assert words(body, "s>A>B") == {"A B", "X", "A X"}


def test_an_event_sub_process_can_run_beside_its_level() -> None:
    body = START + tasks("A") + watching("<messageEventDefinition/>", tasks("X"), "w>X", 'isInterrupting="false"')
    assert words(body, "s>A") == {"A", "A X", "X A"}
    assert notices_of(body, "s>A") == ["w: this event happens at most once whenever process (p) is active"]


def test_an_event_sub_process_catches_errors_of_its_level() -> None:
    body = START + tasks("A") + event("endEvent", "e", ERROR) + watching(ERROR, tasks("X"), "w>X")
    assert words(body, "s>A>e") == {"A X"}


def test_an_error_in_an_event_sub_process_goes_further_out() -> None:
    handler = watching(ERROR, tasks("X") + event("endEvent", "again", ERROR), "w>X>again")
    inner = sub_process("sub", tasks("A") + event("endEvent", "e", ERROR) + handler, "A>e")
    assert words(START + inner + boundary("x", "sub", ERROR) + tasks("B"), "s>sub x>B") == {"A X B"}


def test_interrupting_takes_also_what_runs_beside() -> None:
    beside = sub_process(
        "beside",
        event("startEvent", "b", "<messageEventDefinition/>", 'isInterrupting="false"') + tasks("Y Z"),
        "b>Y>Z",
        'triggeredByEvent="true"',
    )
    body = START + tasks("A") + event("endEvent", "e", ERROR) + beside + watching(ERROR, tasks("X"), "w>X")
    assert words(body, "s>A>e") == {"A X", "Y A X", "A Y X", "Y Z A X"} - {"A Y X"}


def test_terminate_ends_event_sub_processes_too() -> None:
    end = event("endEvent", "e", "<terminateEventDefinition/>")
    handler = watching("<messageEventDefinition/>", tasks("X Y"), "w>X>Y", 'isInterrupting="false"')
    inner = sub_process("sub", tasks("A") + end + handler, "A>e")
    assert words(START + inner + tasks("B"), "s>sub>B") == {"A B", "X A B", "X Y A B"}


@pytest.mark.parametrize("way", ["x>t", "x>B>t"])
def test_a_process_continues_after_terminate_ended_its_event_sub_processes(way: str) -> None:
    inner = '<startEvent id="i"/><exclusiveGateway id="x"/>' + tasks("A") + event("intermediateCatchEvent", "B")
    inner += event("endEvent", "t", "<terminateEventDefinition/>")
    beside = watching("<messageEventDefinition/>", tasks("X"), "w>X", 'isInterrupting="false"')
    model = read(process(tasks("Z") + sub_process("sub", inner + beside, f"i>x x>A {way}"), "sub>Z"))
    found = compile_workflow(model)
    traces = {tuple(word.split()) for word in words_of(model, 4)}
    assert ("Z",) in traces
    assert not broken_parts(found.extraction, traces)
    assert all(check_trace(found, trace).conforms for trace in traces)


def test_terminate_in_an_event_sub_process_ends_only_that() -> None:
    end = event("endEvent", "e", "<terminateEventDefinition/>")
    handler = watching("<messageEventDefinition/>", tasks("X Y") + end, "w>X>e w>Y", 'isInterrupting="false"')
    assert words(START + tasks("A") + handler, "s>A", length=2) == {"A", "A X", "X A"}


def test_event_sub_processes_must_say_when_they_start() -> None:
    none = sub_process("watch", tasks("X"), attributes='triggeredByEvent="true"')
    assert problems_of(START + tasks("A") + none, "s>A") == [
        ("watch", "event sub-process (watch) has no start event; add one that says when it happens")
    ]
    mixed = watching("", event("startEvent", "w2", "", 'isInterrupting="false"') + tasks("X"), "w>X w2>X")
    assert problems_of(START + tasks("A") + mixed, "s>A") == [
        (
            "watch",
            (
                "event sub-process (watch) has start events that interrupt and others that do not; "
                "draw two event sub-processes"
            ),
        )
    ]


def test_no_flow_leads_to_an_event_sub_process() -> None:
    found = problems_of(START + watching("", tasks("X"), "w>X"), "s>watch")
    assert ("watch", "event sub-process (watch) starts by an event; remove the flows to and from it") in found


# Links


def link(kind: str, identity: str, name: str) -> str:
    return event(kind, identity, f'<linkEventDefinition name="{name}"/>')


def test_links_lead_on_where_they_are_caught() -> None:
    throws = link("intermediateThrowEvent", "t1", "L") + link("intermediateThrowEvent", "t2", "L")
    body = START + tasks("A B C") + throws + link("intermediateCatchEvent", "c", "L") + '<exclusiveGateway id="g"/>'
    assert words(body, "s>g g>A>t1 g>B>t2 c>C") == {"A C", "B C"}
    assert words(throws + link("intermediateCatchEvent", "c", "L") + tasks("A"), "c>A") == {"A A"}


def test_links_without_name_are_those_of_the_events() -> None:
    throw = event("intermediateThrowEvent", "t", "<linkEventDefinition/>", 'name="On"')
    catch = event("intermediateCatchEvent", "c", "<linkEventDefinition/>", 'name="On"')
    assert words(START + throw + catch + tasks("A"), "s>t c>A") == {"A"}


def test_links_without_one_end_are_refused() -> None:
    assert problems_of(START + link("intermediateThrowEvent", "t", "L"), "s>t") == [
        ("t", "0 events of the same level catch link 'L' of intermediate throw event (t); exactly one must")
    ]
    catches = link("intermediateCatchEvent", "c", "L") + link("intermediateCatchEvent", "d", "L")
    assert problems_of(START + link("intermediateThrowEvent", "t", "L") + catches, "s>t") == [
        ("t", "2 events of the same level catch link 'L' of intermediate throw event (t); exactly one must")
    ]
    throw = link("intermediateThrowEvent", "t", "L") + link("intermediateCatchEvent", "c", "L")
    assert ("t", "a flow leaves intermediate throw event (t); a link continues where it is caught") in problems_of(
        START + throw + tasks("A"), "s>t>A c>A"
    )


def test_a_link_that_nobody_throws_never_happens() -> None:
    body = START + tasks("A B") + link("intermediateCatchEvent", "c", "L")
    assert words(body, "s>A c>B") == {"A"}
    assert notices_of(body, "s>A c>B") == [
        "B: nothing leads to task (B), so it never happens and is left out",
        "c: nothing leads to intermediate catch event (c), so it never happens and is left out",
    ]


# Compensation

COMPENSATE = "<compensateEventDefinition/>"


@pytest.mark.parametrize("marker", ['isForCompensation="true"', ""])
def test_compensation_handlers_are_left_out_with_a_notice(marker: str) -> None:
    handler = f'<task id="U" {marker}/><association id="a" sourceRef="x" targetRef="U"/>'
    body = START + tasks("A") + boundary("x", "A", COMPENSATE) + handler
    assert words(body, "s>A") == {"A"}
    assert notices_of(body, "s>A") == ["U: task (U) is for compensation only and is left out"]


@pytest.mark.parametrize("kind", ["intermediateThrowEvent", "endEvent"])
def test_throwing_compensation_is_refused_where_there_are_handlers(kind: str) -> None:
    body = START + tasks("A") + boundary("x", "A", COMPENSATE) + '<task id="U" isForCompensation="true"/>'
    assert problems_of(body + event(kind, "t", COMPENSATE), "s>A>t") == [
        (
            "t",
            ("end event" if kind == "endEvent" else "intermediate throw event")
            + " (t) starts compensation, here by U, which is not read; draw what happens then with flows, or remove it",
        )
    ]


def test_compensation_event_sub_processes_are_left_out() -> None:
    inner = sub_process("sub", tasks("A") + watching(COMPENSATE, tasks("U"), "w>U"))
    assert words(START + inner, "s>sub") == {"A"}
    assert notices_of(START + inner, "s>sub") == [
        "watch: event sub-process (watch) is for compensation only and is left out"
    ]


def test_a_task_for_compensation_that_flows_lead_through_is_an_ordinary_one() -> None:
    body = START + '<task id="U" isForCompensation="true"/>'
    assert words(body, "s>U") == {"U"}
    assert notices_of(body, "s>U") == ["U: task (U) is for compensation, but flows lead through it"]


def test_events_on_a_handler_are_left_out_with_it() -> None:
    body = START + tasks("A") + '<task id="U" isForCompensation="true"/>' + boundary("x", "U")
    assert words(body, "s>A") == {"A"}
    assert "x: boundary event (x) is left out with the activity that it is on" in notices_of(body, "s>A")
