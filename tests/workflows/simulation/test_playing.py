"""What is simulated of a model."""

from pathlib import Path
from random import Random

import pytest

from constraints import ProcessAutomaton
from tests.builders.nets import automaton_of_net
from tests.references.nets import words_of_net
from workflows import (
    Activity,
    AutomatonTooLarge,
    AutomatonWalk,
    CompileLimits,
    ReadOptions,
    SimulationSettings,
    WorkflowModel,
    playable,
    simulate,
)
from workflows.formats import read_pnml, read_tree
from workflows.model import ModelFormat
from workflows.nets.net import Transition, WorkflowNet

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "docs" / "examples"
REAL = ROOT.parent / "shared" / "data" / "models" / "pm4py"

# a, b, c, d, where c waits for a alone and d for both: no blocks
CROSSED = WorkflowNet(
    places=("i", "p", "q", "r", "s", "t", "o"),
    transitions=(
        Transition(inputs=(0,), outputs=(1, 2)),
        Transition(inputs=(1,), outputs=(3, 4), label="a"),
        Transition(inputs=(2,), outputs=(5,), label="b"),
        Transition(inputs=(3,), outputs=(), label="c"),
        Transition(inputs=(4, 5), outputs=(6,), label="d"),
    ),
    initial=(0,),
    finals=((6,),),
)


def test_a_tree_is_played_as_it_is() -> None:
    model = read_tree(b"tree: A", ReadOptions())
    assert playable(model) == Activity("A")


def test_the_order_net_is_played_like_the_order_tree() -> None:
    net = read_pnml((EXAMPLES / "order.pnml").read_bytes(), ReadOptions())
    source = playable(net)
    events = list(simulate(source, SimulationSettings(traces=40, concurrent=5), 3))
    firsts = {event.key: event.type for event in reversed(events)}
    lasts = {event.key: event.type for event in events}
    assert len(firsts) == 40
    assert set(firsts.values()) == {"ReceiveOrder"}
    assert set(lasts.values()) <= {"RejectOrder", "CancelOrder", "FinishOrder"}


def test_a_net_that_is_made_of_no_blocks_is_played_by_its_automaton() -> None:
    source = playable(WorkflowModel(name="", format=ModelFormat.PNML, source=CROSSED))
    assert isinstance(source, ProcessAutomaton)
    language, rng = words_of_net(CROSSED, 4), Random(1)
    walk = AutomatonWalk(source)
    found = {tuple(activity.name for activity in walk.sample_trace(rng)) for _ in range(300)}
    assert found == language


def test_an_automaton_beyond_the_limits_is_refused() -> None:
    model = WorkflowModel(name="", format=ModelFormat.PNML, source=CROSSED)
    with pytest.raises(AutomatonTooLarge):
        playable(model, CompileLimits(max_states=2))


@pytest.mark.skipif(not REAL.exists(), reason="shared data absent (issue #5)")
@pytest.mark.parametrize("name", ["ex1", "receipt_one_variant", "roadtraffic"])
def test_traces_of_nets_of_other_tools_belong_to_their_languages(name: str) -> None:
    model = read_pnml((REAL / f"{name}.pnml").read_bytes(), ReadOptions())
    assert isinstance(model.source, WorkflowNet)
    automaton = automaton_of_net(model.source, CompileLimits())
    traces: dict[str, list[str]] = {}
    for event in simulate(playable(model), SimulationSettings(traces=100, concurrent=5), 1):
        traces.setdefault(event.key, []).append(event.type)
    assert len(traces) == 100
    assert all(map(automaton.accepts, traces.values()))
