"""Warnings about nets, in words."""

import pytest

from workflows.errors import AutomatonTooLarge, UnsoundWorkflow
from workflows.limits import CompileLimits
from workflows.nets.markings import explore
from workflows.nets.net import Transition, WorkflowNet
from workflows.nets.soundness import check

LIMITS = CompileLimits(max_markings=1000)
NAMES = ("the start", "the end", "before Pay", "before Ship", "after Pay", "after Ship", "a spare")


def net(*transitions: Transition, finals=((1,),)) -> WorkflowNet:
    return WorkflowNet(places=NAMES, transitions=transitions, initial=(0,), finals=finals)


def task(inputs, outputs, label, **more) -> Transition:
    return Transition(inputs=inputs, outputs=outputs, label=label, element=f"task '{label}'", **more)


def silent(inputs, outputs, element, **more) -> Transition:
    return Transition(inputs=inputs, outputs=outputs, element=element, **more)


SPLIT = silent((0,), (2, 3), "parallel gateway 'Both'")
PAY, SHIP = task((2,), (4,), "Pay"), task((3,), (5,), "Ship")
JOIN = silent((4, 5), (1,), "parallel gateway 'Done'")


def test_sound_net_has_no_warnings():
    assert check(explore(net(SPLIT, PAY, SHIP, JOIN), LIMITS)) == ()


def test_join_that_waits_for_an_alternative_is_a_deadlock():
    choice = silent((0,), (2,), "exclusive gateway 'Which'")
    with pytest.raises(UnsoundWorkflow) as refused:
        check(explore(net(choice, PAY, SHIP, JOIN), LIMITS))
    assert str(refused.value) == (
        "no trace of the model completes: deadlock: tokens in after Pay, where parallel gateway 'Done' waits for a "
        "token in after Ship (after Pay)"
    )


def test_way_that_gets_stuck_is_named_with_events_that_lead_there():
    lost = task((2,), (6,), "Lose")
    dead, deadlock = check(explore(net(SPLIT, PAY, SHIP, JOIN, lost), LIMITS))
    assert dead == "dead task: task 'Lose' occurs in no complete trace, so no trace has the event Lose"
    assert deadlock == (
        "deadlock: tokens in after Ship and a spare, where parallel gateway 'Done' waits for a token in after Pay "
        "(after Ship, Lose)"
    )


def test_dead_task_is_named():
    never = task((6,), (1,), "Never")
    again = task((6,), (1,), "Pay")
    assert check(explore(net(SPLIT, PAY, SHIP, JOIN, never, again), LIMITS)) == (
        "dead task: task 'Never' can never occur, so no trace has the event Never",
        "dead task: task 'Pay' can never occur",
    )


def test_tokens_that_are_left_at_the_end_are_named():
    early = task((2,), (1,), "Cancel")
    warnings = check(explore(net(SPLIT, PAY, SHIP, JOIN, early), LIMITS))
    assert warnings[1] == (
        "the end is reached while tokens are left in after Ship, so the trace is never complete (after Ship, Cancel)"
    )


def test_tokens_that_disappear_are_named():
    warnings = check(explore(net(SPLIT, PAY, SHIP, JOIN, task((2,), (), "Drop", resets=(3, 5))), LIMITS))
    assert warnings == (
        "dead task: task 'Drop' occurs in no complete trace, so no trace has the event Drop",
        "all tokens are gone before an end is reached (after Drop)",
    )


def test_step_that_waits_for_an_empty_place_is_named():
    blocked = task((0,), (1,), "Sum up", waits=(6,))
    ways = task((0,), (0, 6), "Add")
    warnings = check(explore(net(blocked, task((0,), (2, 6), "Stay"), task((2,), (1,), "Go", waits=(6,))), LIMITS))
    assert warnings[-1] == (
        "deadlock: tokens in before Pay and a spare, where task 'Go' waits for a spare to be empty (after Stay)"
    )
    with pytest.raises(UnsoundWorkflow, match="a spare can hold any number"):
        check(explore(net(blocked, ways), LIMITS))


def test_steps_that_go_on_for_ever_are_told():
    warnings = check(explore(net(task((0,), (1,), "Pay"), task((0,), (2,), "Try"), task((2,), (2,), "Retry")), LIMITS))
    assert (
        warnings[-1]
        == "no end can be reached any more: steps continue for ever through task 'Retry', tokens in before Pay "
        "(after Try)"
    )


def test_only_few_ways_are_told_and_long_ones_are_cut():
    chain = [task((0,), (2,), "A0")]
    chain += [task((2,), (2, 6), f"A{number}") for number in range(1, 20)]
    stuck = [task((0,), (place,), f"To {NAMES[place]}") for place in (2, 3, 4, 5, 6)]
    warnings = check(explore(net(task((0,), (1,), "Pay"), *stuck), LIMITS))
    assert len([warning for warning in warnings if warning.startswith("deadlock")]) == 3
    with pytest.raises(UnsoundWorkflow):
        check(explore(net(*chain), LIMITS))


def test_limit_of_markings_is_kept():
    with pytest.raises(AutomatonTooLarge, match="more than 3 markings"):
        explore(net(SPLIT, PAY, SHIP, JOIN), CompileLimits(max_markings=3))


def test_markings_are_explored_once_for_all():
    markings = explore(net(SPLIT, PAY, SHIP, JOIN), LIMITS)
    assert check(markings) == ()
    assert len(markings) == 6
    assert [markings.net.transitions[number].label for number in markings.way_to(5)][-1] is None


def test_a_livelock_without_tokens_is_named():
    take, circle = task((0,), (), "Take"), task((), (), "Wait")
    with pytest.raises(UnsoundWorkflow) as refused:
        check(explore(net(take, circle), LIMITS))
    assert str(refused.value).endswith(
        "no end can be reached any more: steps continue for ever through task 'Wait', no token is left (after Take)"
    )
