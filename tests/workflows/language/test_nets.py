"""Automata of nets, against all games with tokens played one by one."""

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import ProcessAutomaton
from tests.builders.nets import automaton_of_net
from tests.builders.workflows import process_trees
from tests.references.language import words_of
from tests.references.nets import fire
from workflows.errors import AutomatonTooLarge, UnsoundWorkflow
from workflows.language.minimal import minimal
from workflows.language.nets import automaton_of
from workflows.language.trees import automaton_of_tree
from workflows.limits import CompileLimits
from workflows.nets import eager
from workflows.nets.markings import explore
from workflows.nets.net import Transition, WorkflowNet
from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
)

LIMITS = CompileLimits(max_markings=20_000)
FEW = CompileLimits(max_markings=1_500)
MOST = 4


def play(net: WorkflowNet, most: int, most_situations: int = 1000) -> frozenset[tuple[str, ...]] | None:
    """All complete traces of at most ``most`` events, by the definitions; None beyond ``most_situations``."""
    begin: tuple[tuple[str, ...], tuple[int, ...]] = ((), tuple(sorted(net.initial)))
    finals = {tuple(sorted(final)) for final in net.finals}
    seen, ways, found = {begin}, [begin], set()
    while ways:
        word, marking = ways.pop()
        if marking in finals:
            found.add(word)
        for transition in net.transitions:
            next_marking = fire(transition, marking)
            if next_marking is None or (transition.label and len(word) == most):
                continue
            next_word = (*word, transition.label) if transition.label else word
            situation = (next_word, next_marking)
            if situation not in seen:
                seen.add(situation)
                ways.append(situation)
        if len(seen) > most_situations:
            return None
    return frozenset(found)


def places(count: int, most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, count - 1), max_size=most).map(lambda drawn: tuple(sorted(drawn)))


@st.composite
def nets(draw, special: bool = True) -> WorkflowNet:
    """Small nets of any shape; mostly with one token that begins and one place that ends."""
    count = draw(st.integers(2, 6))
    arcs = places(count, 2)
    transitions = draw(
        st.lists(
            st.builds(
                Transition,
                inputs=arcs.filter(bool),
                outputs=arcs,
                label=st.sampled_from([None, None, "A", "B", "C"]),
                resets=st.just(()) | places(count, count).map(lambda drawn: tuple(sorted(set(drawn))))
                if special
                else st.just(()),
                waits=st.just(()) | places(count, 2).map(lambda drawn: tuple(sorted(set(drawn))))
                if special
                else st.just(()),
            ),
            min_size=2,
            max_size=9,
        )
    )
    return WorkflowNet(
        places=tuple(f"place {number}" for number in range(count)),
        transitions=tuple(transitions),
        initial=draw(st.just((0,)) | arcs),
        finals=tuple(draw(st.lists(st.just((1,)) | arcs, min_size=1, max_size=2))),
    )


@settings(max_examples=150, deadline=None)
@given(nets())
def test_net_has_its_language(net):
    expected = play(net, MOST)
    automaton = answer(net)
    if isinstance(automaton, AutomatonTooLarge):
        assert expected is None or any(transition.resets or transition.waits for transition in net.transitions)
    elif isinstance(automaton, UnsoundWorkflow):
        assert "without bound" in str(automaton) or not expected
    else:
        assert expected is None or words_of(automaton, MOST) == expected
        assert automaton == minimal(automaton)


def answer(net: WorkflowNet) -> ProcessAutomaton | AutomatonTooLarge | UnsoundWorkflow:
    try:
        return automaton_of_net(net, FEW)
    except (AutomatonTooLarge, UnsoundWorkflow) as error:
        return error


@st.composite
def terminated_nets(draw) -> WorkflowNet:
    """Silent steps, also endless ones, beside a token that empties their places."""
    inside = (2, 3, 4)
    few = st.lists(st.sampled_from(inside), max_size=2).map(lambda drawn: tuple(sorted(drawn)))
    label = st.sampled_from([None, None, None, "A"])
    silent = st.builds(Transition, inputs=few.filter(bool), outputs=few | st.just((6,)), label=label)
    end = st.builds(Transition, inputs=st.just((5,)), outputs=st.just((1,)) | few, label=st.sampled_from("BC"))
    ends = st.lists(end.map(lambda end: replace(end, resets=inside)), min_size=1, max_size=2)
    transitions = [*draw(st.lists(silent, min_size=1, max_size=5)), *draw(ends), Transition(inputs=(6,), outputs=())]
    names = tuple(f"place {number}" for number in range(7))
    return WorkflowNet(
        places=names, transitions=tuple(transitions), initial=(*draw(few.filter(bool)), 5), finals=((1,),)
    )


@settings(max_examples=150, deadline=None)
@given(nets() | terminated_nets())
def test_eager_steps_change_nothing(net):
    """The language is the same when all orders are looked at, and so is whether a way gets stuck."""
    try:
        reduced = explore(net, FEW)
    except (UnsoundWorkflow, AutomatonTooLarge):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workflows.nets.markings.eager_groups", lambda net: eager.eager_groups(net) * 0 - 1)
        try:
            full = explore(net, FEW)
        except (UnsoundWorkflow, AutomatonTooLarge):
            return
    assert reduced.completes[0] == full.completes[0]
    assert len(reduced) <= len(full)
    assert reduced.completes.all() == full.completes.all()
    if full.completes[0]:
        assert automaton_of(reduced, LIMITS) == automaton_of(full, LIMITS)


class Drawing:
    """A net of a tree, the obvious way."""

    def __init__(self) -> None:
        self.places = 0
        self.transitions: list[Transition] = []

    def place(self) -> int:
        self.places += 1
        return self.places - 1

    def step(self, inputs, outputs, label=None) -> None:
        self.transitions.append(Transition(inputs=tuple(inputs), outputs=tuple(outputs), label=label))

    def draw(self, tree: ProcessTree, begin: int, end: int) -> None:
        match tree:
            case Activity(name):
                self.step([begin], [end], name)
            case Silent():
                self.step([begin], [end])
            case Sequence(parts):
                ways = [begin, *(self.place() for _ in parts[1:]), end]
                for part, first, last in zip(parts, ways, ways[1:], strict=False):
                    self.draw(part, first, last)
            case ExclusiveChoice(branches):
                for branch in branches:
                    first, last = self.place(), self.place()
                    self.step([begin], [first])
                    self.draw(branch, first, last)
                    self.step([last], [end])
            case Parallel() | InclusiveChoice():
                self.draw_parallel(tree, begin, end)
            case Instances() | Loop():
                self.draw_loop(tree, begin, end)

    def draw_parallel(self, tree, begin, end) -> None:
        pairs = [(self.place(), self.place()) for _ in tree.branches]
        for branch, (first, last) in zip(tree.branches, pairs, strict=True):
            self.draw(branch, first, last)
        everything = (1 << len(pairs)) - 1
        for chosen in [everything] if isinstance(tree, Parallel) else range(1, everything + 1):
            begun = [first if chosen >> number & 1 else last for number, (first, last) in enumerate(pairs)]
            self.step([begin], begun)
        self.step([last for _, last in pairs], [end])

    def draw_loop(self, loop, begin, end) -> None:
        if isinstance(loop, Instances):  # those of single events are a loop
            loop = Loop(body=loop.body)
        if loop.repetitions is not None:
            parts = [part for _ in range(loop.repetitions) for part in (loop.redo, loop.body)][1:]
            self.draw(Sequence(tuple(parts)), begin, end)
            return
        first, last = self.place(), self.place()
        self.step([begin], [first])
        self.draw(loop.body, first, last)
        self.draw(loop.redo, last, first)
        self.step([last], [end])


def net_of(tree: ProcessTree) -> WorkflowNet:
    drawing = Drawing()
    begin, end = drawing.place(), drawing.place()
    drawing.draw(tree, begin, end)
    names = tuple(f"place {number}" for number in range(drawing.places))
    return WorkflowNet(places=names, transitions=tuple(drawing.transitions), initial=(begin,), finals=((end,),))


def is_countable(tree: ProcessTree) -> bool:
    """Whether the tree has no instances, which no net of finitely many markings has."""
    return "Instances" not in repr(tree)


@settings(max_examples=100, deadline=None)
@given(process_trees().filter(is_countable))
def test_net_of_a_tree_has_the_automaton_of_the_tree(tree):
    assert automaton_of_net(net_of(tree), LIMITS) == automaton_of_tree(tree, LIMITS)


def net(*transitions: Transition, initial=(0,), finals=((1,),), places: int = 8) -> WorkflowNet:
    names = tuple(f"place {number}" for number in range(places))
    return WorkflowNet(places=names, transitions=transitions, initial=initial, finals=finals)


def step(inputs, outputs, label=None, **more) -> Transition:
    return Transition(inputs=inputs, outputs=outputs, label=label, **more)


def test_weights_resets_and_waits():
    model = net(
        step((0,), (2, 2, 2, 3), "begin"),
        step((2, 2), (4,), "pair"),
        step((3,), (1,), "cut", resets=(2, 4)),
        step((4,), (), "use"),
        step((3,), (1,), "calm", waits=(4,)),
    )
    automaton = automaton_of_net(model, LIMITS)
    assert words_of(automaton, 9) == {
        ("begin", "cut"),
        ("begin", "pair", "cut"),
        ("begin", "pair", "use", "cut"),
    }
    assert words_of(automaton, 9) == play(model, 9)


@pytest.mark.parametrize("tokens", [1, 2, 5, 8, 60, 100])
def test_counts_of_tokens(tokens):
    model = net(step((0,), (2,) * tokens, "A"), step((2,), (3,), "B"), step((3,) * tokens, (1,)))
    assert automaton_of_net(model, LIMITS).accepts(["A", *["B"] * tokens])
    assert len(automaton_of_net(model, LIMITS)) == tokens + 2


@pytest.mark.parametrize(
    "loop",
    [
        [step((2,), (2,))],
        [step((2,), (3,)), step((3,), (2,))],
        [step((2,), (3,)), step((3,), (4,)), step((4,), (3,)), step((4,), (4,))],
        [step((2,), (2,)), step((2,), (3,)), step((3,), (2,))],
    ],
)
def test_silent_loop_without_a_way_out_hides_nothing(loop):
    model = net(step((0,), (2, 5)), *loop, step((5,), (5,), "A"), step((5,), (1,), "B", resets=(2, 3, 4)))
    assert words_of(automaton_of_net(model, LIMITS), 3) == {("B",), ("A", "B"), ("A", "A", "B")} == play(model, 3)


def test_silent_loop_with_a_way_out_is_still_taken_first():
    loop = [step((2,), (3,)), step((3,), (2,)), step((3,), (4,)), step((4,), ())]
    model = net(step((0,), (2, 5)), *loop, step((5,), (1,), "B", resets=(2, 3, 4)))
    groups = eager.eager_groups(model).tolist()
    assert min(groups[1:5]) >= 0
    assert words_of(automaton_of_net(model, LIMITS), 1) == {("B",)} == play(model, 1)


def test_no_token_at_the_end():
    assert words_of(automaton_of_net(net(step((0,), (), "A"), finals=((),)), LIMITS), 3) == {("A",)}


def test_beginning_may_be_the_end():
    automaton = automaton_of_net(net(initial=(1,)), LIMITS)
    assert (automaton.letters, len(automaton), automaton.accepts([])) == ((), 1, True)


def test_letters_of_no_complete_trace_are_left_out():
    model = net(step((0,), (1,), "A"), step((0,), (2,), "trap"), step((3,), (1,), "never"))
    assert automaton_of_net(model, LIMITS).letters == ("A",)


def test_parallel_loop_that_gathers_tokens_is_refused():
    model = net(step((0,), (2, 3), "split"), step((2,), (0,), "back"), step((2, 3), (1,), "join"))
    with pytest.raises(UnsoundWorkflow, match=r"without bound: place 3 can hold"):
        automaton_of_net(model, LIMITS)


def test_tokens_that_gather_beside_resets_are_refused():
    model = net(step((0,), (0, 3), "A"), step((0,), (1,), "end", resets=(3,)))
    with pytest.raises(UnsoundWorkflow, match=r"without bound: place 3 can hold"):
        automaton_of_net(model, LIMITS)


def test_tokens_that_vanish_at_once_do_not_gather():
    """A branch that ends at once, beside a branch that loops."""
    model = net(step((0,), (0, 3), "A"), step((3,), ()), step((0,), (), "B"), finals=((),))
    assert words_of(automaton_of_net(model, LIMITS), 2) == {("B",), ("A", "B")}


def test_net_of_which_nothing_completes_is_refused():
    with pytest.raises(
        UnsoundWorkflow,
        match=r"no trace of the model completes: deadlock: nothing takes the tokens in place 2 \(after A\)",
    ):
        automaton_of_net(net(step((0,), (2,), "A")), LIMITS)
    with pytest.raises(UnsoundWorkflow, match="no trace of the model completes"):
        automaton_of_net(net(), LIMITS)


def bomb(branches: int) -> WorkflowNet:
    """So many tasks at once: two to that power of markings, and of states."""
    begins, ends = range(2, 2 + branches), range(2 + branches, 2 + 2 * branches)
    tasks = [step((first,), (last,), f"T{first}") for first, last in zip(begins, ends, strict=True)]
    return net(step((0,), tuple(begins)), *tasks, step(tuple(ends), (1,)), places=2 + 2 * branches)


def test_bomb_is_refused():
    begin = time.process_time()
    with pytest.raises(AutomatonTooLarge, match="more than 20000 markings"):
        automaton_of_net(bomb(40), LIMITS)
    assert time.process_time() - begin < 10


def test_states_are_counted_after_minimising():
    assert len(automaton_of_net(bomb(8), CompileLimits(max_states=2**8))) == 2**8
    with pytest.raises(AutomatonTooLarge, match="has 256 states, at most 255"):
        automaton_of_net(bomb(8), CompileLimits(max_states=2**8 - 1))


def skipping(branches: int) -> WorkflowNet:
    """Tasks at once, each of which may be repeated or left out: many markings, one state."""
    drawing = Drawing()
    begin, end = drawing.place(), drawing.place()
    loops = (Loop(body=ExclusiveChoice((Activity(f"T{number:02}"), Silent()))) for number in range(branches))
    drawing.draw(Parallel(tuple(loops)), begin, end)
    names = tuple(f"place {number}" for number in range(drawing.places))
    return WorkflowNet(places=names, transitions=tuple(drawing.transitions), initial=(begin,), finals=((end,),))


def test_many_markings_may_be_few_states():
    markings = explore(skipping(8), CompileLimits())
    assert len(markings) > 2_000
    automaton = automaton_of(markings, CompileLimits(max_states=1))
    assert (len(automaton), len(automaton.letters)) == (1, 8)


def test_progress_is_told():
    told: list[int] = []
    automaton_of_net(bomb(6), LIMITS, told.append)
    assert told == [2**6 + 2]
