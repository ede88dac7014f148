"""The matcher in exact mode: nothing is lost on traces of the workflow, and the first event outside it is reported."""

from __future__ import annotations

from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constraints import ConstraintSet, Monitor, ProcessAutomaton, Settings
from house.examples import Draws
from nfa import Matcher, Node, Prune, describe_node
from streams import Event, EventBatch
from tests.builders.constraints import keeping, random_set
from tests.builders.exact import followed, language_of, of_words, random_automaton
from tests.builders.patterns import batches, nodes, run, splits
from tests.references.alive import alive

LETTERS = "ABC"  # patterns ask for D too, which no workflow has


def word_of(random: Random, automaton: ProcessAutomaton) -> list[str]:
    """A complete trace, at random."""
    while True:
        state, word = 0, list[str]()
        for _ in range(8):
            allowed = automaton.allowed(state)
            if automaton.accepting[state] and (not allowed or random.random() < 0.3):
                return word
            if not allowed:
                break
            word.append(random.choice(allowed))
            state = int(automaton.table[state, automaton.letters.index(word[-1])])
        if automaton.accepting[state]:
            return word


def traces(random: Random, automaton: ProcessAutomaton, count: int) -> list[Event]:
    """Complete traces of several keys, interleaved."""
    waiting = {f"k{number}": word_of(random, automaton) for number in range(count)}
    events: list[Event] = []
    while waiting := {key: word for key, word in waiting.items() if word}:
        key = random.choice(sorted(waiting))
        name = waiting[key].pop(0)
        now = len(events)
        events.append(Event(id=f"{now}", type=name, time_us=now, key=key, data={"v": random.randrange(3)}))
    return events


def matcher_of(node: Node, known: ConstraintSet, *, is_guarded: bool = True) -> Matcher:
    matcher = Matcher(end_events=known.end_events)
    matcher.add_pattern(f"PATTERN p EVENT {describe_node(node)}")
    if is_guarded:
        matcher.set_guard(1, Monitor(known))
    return matcher


@settings(max_examples=50)
@given(st.integers(0, 10**6), nodes(max_atoms=4), st.data())
def test_pruned_equals_unpruned_on_traces_of_the_workflow(seed: int, node: Node, data: st.DataObject) -> None:
    random = Random(seed)
    automaton = random_automaton(random, LETTERS, 5)
    known = followed(automaton)
    events = traces(random, automaton, 3)
    cuts = batches(events, data.draw(splits(len(events))))
    pruning, plain = matcher_of(node, known), matcher_of(node, known, is_guarded=False)
    found, _ = run(pruning, cuts)
    expected, _ = run(plain, cuts)
    assert found == expected
    assert pruning.stats.deviations == 0
    assert pruning.stats.peak_held <= plain.stats.peak_held


@settings(max_examples=25)
@given(st.integers(0, 10**6), nodes(max_atoms=3))
def test_and_with_what_was_written_by_hand_beside_it(seed: int, node: Node) -> None:
    random = Random(seed)
    automaton = language_of(ConstraintSet(), LETTERS)  # everything, so that whatever keeps the others conforms
    parts = random_set(random, LETTERS, 3)
    assume(alive(parts, frozenset()))  # a set that no trace keeps is refused
    known = followed(automaton, parts.parts)
    events = keeping(parts, traces(random, automaton, 2))
    pruning, plain = matcher_of(node, known), matcher_of(node, known, is_guarded=False)
    cuts = [EventBatch.from_events(events)]
    assert run(pruning, cuts)[0] == run(plain, cuts)[0]
    assert pruning.stats.deviations == 0


@settings(max_examples=25)
@given(st.integers(0, 10**6), nodes(max_atoms=3), st.data())
def test_saved_and_loaded_in_between_ends_the_same_runs(seed: int, node: Node, data: st.DataObject) -> None:
    random = Random(seed)
    automaton = random_automaton(random, LETTERS, 5)
    known = followed(automaton, random_set(random, LETTERS, 1).parts)
    events = traces(random, random_automaton(random, LETTERS, 4), 2)  # many of them leave the workflow
    whole, parts = matcher_of(node, known), matcher_of(node, known)
    expected = run(whole, [EventBatch.from_events(events)])
    matches, endings = [], []
    for batch in batches(events, data.draw(splits(len(events)))):
        output = parts.process(batch)
        matches += output.matches()
        endings += output.endings()
        parts = Matcher.load(parts.dump(), {1: Monitor(known)})
    assert sorted(map(repr, matches)) == sorted(map(repr, expected[0]))
    assert endings == expected[1]
    assert parts.stats.held == whole.stats.held
    assert parts.stats.deviations == whole.stats.deviations


def test_a_word_that_leaves_the_language_deviates_once_at_the_event_that_leaves_it(draws: Draws) -> None:
    random = Random(5)
    reported = 0
    for _ in (cases := draws(150)):
        automaton = random_automaton(random, LETTERS, 5)
        word = random.choices(LETTERS, k=6)
        leaves, state = None, 0
        for place, name in enumerate(word):
            after = automaton.step(state, name)
            if after is None:
                leaves = place
                break
            state = after
        matcher = Matcher()
        matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)")
        matcher.set_guard(1, Monitor(followed(automaton)))
        events = [Event(id=f"{place}", type=name, time_us=place, key="k") for place, name in enumerate(word)]
        found = matcher.process(EventBatch.from_events(events)).deviations()
        assert [deviation.event_id for deviation in found] == ([] if leaves is None else [f"{leaves}"])
        reported += leaves is not None
    assert reported > 8 / 15 * len(cases)


def test_beyond_the_cap_traces_go_on_unguarded() -> None:
    known = followed(of_words("ABC ACB"), settings=Settings(max_monitor_states=2))
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(C c, B b)")
    matcher.set_guard(1, Monitor(known))
    events = [Event(id=name, type=name, time_us=place, key="k") for place, name in enumerate("ACB")]
    output = matcher.process(EventBatch.from_events(events))
    assert [match.bindings for match in output.matches()] == [{"c": ("C",), "b": ("B",)}]
    assert not output.deviations()


def test_shadow_tells_what_would_have_been_lost_on_a_trace_that_leaves_the_workflow() -> None:
    known = followed(of_words("AB C"), settings=Settings(prune=Prune.SHADOW))
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, C c)")
    matcher.set_guard(1, Monitor(known))
    events = [Event(id=name, type=name, time_us=place, key="k") for place, name in enumerate("AC")]
    output = matcher.process(EventBatch.from_events(events))
    assert [(match.bindings["a"], match.would_be_lost) for match in output.matches()] == [(("A",), True)]
