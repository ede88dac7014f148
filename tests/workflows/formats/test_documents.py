"""The files that the documents show are read, and the examples mean the same in every form."""

from pathlib import Path

import pytest
import yaml

from house.documents import code_blocks
from tests.builders.nets import automaton_of_net
from workflows import CompileLimits
from workflows.compiling import playable
from workflows.formats import read_mapping, read_model, read_tree
from workflows.language.trees import automaton_of_tree
from workflows.model import ReadOptions
from workflows.nets.graph import FlowGraph
from workflows.nets.net import WorkflowNet
from workflows.simulation import SimulationSettings, simulate

DOCS = Path(__file__).resolve().parents[3] / "docs"
FILES = [
    block.text
    for block in code_blocks((DOCS / "workflow-tree.md").read_text(encoding="utf-8"))
    if block.language == "yaml"
]


@pytest.mark.parametrize("text", FILES, ids=range(len(FILES)))
def test_files_of_the_page_are_read(text: str) -> None:
    if text.startswith("# mapping"):
        assert read_mapping(text) == yaml.safe_load(text)
        return
    model = read_tree(text.encode(), ReadOptions())
    assert model.notices == ()
    events = list(simulate(playable(model), SimulationSettings(traces=20, concurrent=3), 1))
    assert len({event.key for event in events}) == 20


def test_the_page_shows_files() -> None:
    assert len(FILES) == 4


def test_the_order_examples_mean_the_same() -> None:
    tree = read_model((DOCS / "examples" / "order.yaml").read_bytes()).source
    net = read_model((DOCS / "examples" / "order.pnml").read_bytes()).source
    assert isinstance(net, WorkflowNet)
    assert not isinstance(tree, WorkflowNet | FlowGraph)
    limits = CompileLimits()
    assert automaton_of_tree(tree, limits) == automaton_of_net(net, limits)
