"""The cost of a registration does not grow with the number of patterns that are registered already."""

from unittest.mock import Mock

import pytest

from nfa.lanes import lane, layout
from shards.state import ShardState
from streams import PatternOff, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import event, log_of, saved_measures

STREAM = StreamOn(StreamDeclaration(name="orders"))
FORMS = {
    "constants": "SEQ(A a [customer = 'c{0}'], B b)",
    "constants between steps": "SEQ(A a [customer = 'c{0}'], B b [v > a.v])",
    "no common form": "SEQ(A a [x > {0} AND y != {0}], NOT C{0}) WITHIN {0} min",
}


def pattern(number, form):
    text = f"PATTERN p{number} EVENT {FORMS[form].format(number + 1)}"
    return PatternOn(name=f"p{number}", version=1, text=text)


@pytest.fixture
def compiled(monkeypatch):
    """The calls that compile all patterns of a lane."""
    counted = Mock(wraps=layout.lay_out)
    monkeypatch.setattr(lane, "lay_out", counted)
    return counted


@pytest.mark.parametrize("form", FORMS)
def test_patterns_that_are_registered_one_by_one_are_compiled_once(form, compiled):
    (log,) = log_of([STREAM, *(pattern(number, form) for number in range(30)), [event(1, "A")]]).values()
    state = ShardState(0)
    state.advance(log[:2])  # the first pattern makes the matcher
    before = compiled.call_count
    for entry in log[2:-1]:
        state.advance([entry])
        state.measures()  # as the pipeline does after each micro-batch
    assert compiled.call_count == before
    state.advance(log[-1:])
    assert compiled.call_count == before + 1


def test_a_restart_with_many_patterns_compiles_them_once(compiled):
    (log,) = log_of([STREAM, *(pattern(number, "constants") for number in range(30))]).values()
    state = ShardState(0)
    state.advance(log)
    body = state.dump()
    compiled.reset_mock()
    ShardState.load(body).measures()
    compiled_patterns = [len(call.args[0]) for call in compiled.call_args_list]
    assert compiled_patterns == [30]


def test_the_numbers_of_a_place_do_not_depend_on_when_patterns_are_compiled():
    steps = [STREAM, pattern(0, "constants"), pattern(1, "constants"), [event(1, "A", customer="c1")]]
    steps += [pattern(2, "constants"), PatternOff(name="p0"), pattern(3, "no common form")]
    (log,) = log_of(steps).values()
    state = ShardState(0)
    for count, entry in enumerate(log, 1):
        state.advance([entry])
        measured = saved_measures(state)
        again = ShardState(0)
        again.advance(log[:count])
        assert saved_measures(ShardState.load(again.dump())) == measured
