"""What a join is explained to do."""

from __future__ import annotations

from typing import Any

import pytest

from joins import JoinRefused, explain, read_join

ONE: dict[str, Any] = {"stream": "a", "as": "o"}
BY_WORKFLOW = "when the workflow leaves no more of its events in the trace, or the trace ends"
BY_TYPE = "when its trace ends, or with an event of type Last"
OTHER: dict[str, Any] = {"stream": "b", "as": "p"}
THIRD: dict[str, Any] = {"stream": "c", "as": "q"}


LIMITS = (
    "One event of a key leads to at most 10,000 results at once. With 200,000 more than 20 for each event, in one "
    "shard, the join is suspended."
)


def explained(*inputs: dict[str, Any], **more: Any) -> list[str]:
    return explain(read_join({"inputs": inputs, "return": {"x": "id(o)"}, **more}))


def test_a_join_of_windows_alone() -> None:
    *found, warning = explained(ONE, OTHER, window="90 min")
    assert warning.startswith(
        "Nothing bounds how many events of one key o and p have at a time, so n events of each make up to n²"
    )
    assert found == [
        "WJoin: no input finishes its keys, so an event is dropped when it leaves its window.",
        "o: events are kept until they are 90 min old; it finishes no key.",
        "p: events are kept until they are 90 min old; it finishes no key.",
        "Each combination is emitted at its last event, once the time of all inputs has passed it.",
        LIMITS,
    ]


def test_a_join_of_keys_that_are_finished() -> None:
    found = explained({**ONE, "closed_by": "workflow"}, {**OTHER, "closed_by": ["end", {"type": "Last"}]}, outer=["p"])
    assert found[:-1] == [
        "PJoin: there are no windows, so an event is dropped when no other input can join it.",
        f"o: events are kept until p has finished their key; a key of it is finished {BY_WORKFLOW}.",
        f"p: events are kept until o has finished their key; a key of it is finished {BY_TYPE}.",
        "Each combination is emitted at its last event, once the time of all inputs has passed it.",
        "An event without p is emitted once no p can join it any more.",
        LIMITS,
    ]


def test_three_inputs_with_both() -> None:
    third = {**THIRD, "closed_by": "clustered"}
    found = explained({**ONE, "closed_by": "unique"}, {**OTHER, "window": {"last": 3}}, third, window="2 s")
    assert found[0].startswith("MPWJoin: ")
    assert found[2] == (
        "p: events are kept until 3 newer ones of their key have come or until o and q have finished their key; "
        "it finishes no key."
    )


def test_the_key_of_many_events_is_a_whole_number_where_keys_must_be() -> None:
    assert "such as 0, suspends" in explained(ONE, OTHER, wait="auto")[-1]
    assert "such as 'unknown', suspends" in explained(ONE, OTHER, window="2 s")[-1]


@pytest.mark.parametrize("emit", ["each", "on_close"])
def test_every_input_has_a_sentence(emit: str) -> None:
    returned = {"n": "count(p)"} if emit == "on_close" else {"x": "id(o)"}
    found = explain(
        read_join(
            {
                "inputs": [
                    {**ONE, "closed_by": "unique", "window": "1 d"},
                    OTHER,
                    {"stream": "c", "as": "q", "window": "2 s"},
                ],
                "return": returned,
                "emit": emit,
            }
        )
    )
    assert [sentence.partition(":")[0] for sentence in found[1:4]] == ["o", "p", "q"]
    assert "o has finished their key and its events have left their window" in found[2]


def test_three_inputs_two_of_which_may_be_absent() -> None:
    inputs = {**ONE, "window": "1 d"}, {**OTHER, "closed_by": "unique"}, {**THIRD, "closed_by": "unique"}
    found = explained(*inputs, outer=["p", "q"], window="2 s")
    assert found[1] == (
        "o: events are kept until they are 1 d old or until p and q have finished their key; it finishes no key."
    )
    assert found[2].startswith("p: events are kept until they are 2 s old; ")
    assert found[-2:] == [
        (
            "A combination that lacks any of p, q, and is part of no larger one, is emitted once no missing input can "
            "join it any more."
        ),
        LIMITS,
    ]


def test_a_window_of_an_input_that_may_be_absent_bounds_no_other() -> None:
    inputs = [ONE, {**OTHER, "closed_by": "unique", "window": "2 s"}, {**THIRD, "window": "2 s"}]
    document = {"inputs": inputs, "return": {"o": "id(o)"}}
    assert read_join({**document, "outer": ["q"]}).optional == (2,)
    with pytest.raises(JoinRefused, match="nothing bounds the events of the input 'o'"):
        read_join({**document, "outer": ["p"]})


def test_totals_need_keys_that_finish_which_they_also_do_with_wait() -> None:
    total = {"emit": "on_close", "return": {"n": "count(o)"}}
    pair = {"inputs": [ONE, OTHER], "window": "2 s", **total}
    three = {"inputs": [ONE, {**OTHER, "closed_by": "unique", "window": "2 s"}, {**THIRD, "window": "2 s"}], **total}
    for document, problem in ((pair, "an input whose keys finish"), ({**three, "outer": ["p"]}, "keys that finish")):
        with pytest.raises(JoinRefused, match=f"emit: on_close needs {problem}: .*, or the join 'wait: auto'"):
            read_join(document)
        assert read_join({**document, "wait": "auto"}).emit == "on_close"
