"""Models drawn with many tools: what folds has the traces of the net."""

from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from tests.references.nets import words_of_net
from tests.references.workflows import words_of_tree
from workflows.errors import ModelRefused
from workflows.formats import read_model
from workflows.model import ReadOptions
from workflows.nets.folding import fold_graph, fold_net
from workflows.nets.graph import FlowGraph
from workflows.nets.net import WorkflowNet
from workflows.nets.translation import translate
from workflows.tree import iterate_activities

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "models"
MODELS = sorted(path for path in FOLDER.rglob("*.*") if path.suffix in {".bpmn", ".pnml"})
MOST_ACTIVITIES = 9


@cache
def sources(path):
    """All processes in a file that can be read."""
    content = path.read_bytes()
    try:
        return [read_model(content, ReadOptions()).source]
    except ModelRefused as refused:
        found = []
        for name in str(refused).split("'")[1::2]:
            with suppress(ModelRefused):
                found.append(read_model(content, ReadOptions(process=name)).source)
        return found


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_model_folds_to_its_own_language(path):
    for source in sources(path):
        if isinstance(source, FlowGraph):
            translation = translate(source)
            net, tree = translation.net, fold_graph(source)
            is_exact = not translation.notices
        else:
            assert isinstance(source, WorkflowNet)
            net, tree, is_exact = source, fold_net(source), True
        assert net.transitions
        if tree is not None:
            assert {activity.name for activity in iterate_activities(tree)} <= net.labels
            if is_exact and len(list(iterate_activities(tree))) <= MOST_ACTIVITIES:
                assert words_of_tree(tree, 5) == words_of_net(net, 5)


def test_most_models_are_made_of_blocks():
    folded = [fold_graph(s) is not None for path in MODELS for s in sources(path) if isinstance(s, FlowGraph)]
    assert not folded or sum(folded) > len(folded) / 2
