"""Models without a way out name the elements where tokens stay."""

import pytest

from tests.builders.bpmn import MODEL
from workflows import ReadOptions, UnsoundWorkflow, compile_workflow, read_model

GATEWAYS = '<exclusiveGateway id="g" name="Retry?"/><exclusiveGateway id="h" name="Again?"/>'
TASKS = '<task id="a" name="Pay"/><task id="b" name="Check"/>'


def compiled(nodes, *flows):
    ways = "".join(
        f'<sequenceFlow id="f{number}" sourceRef="{one}" targetRef="{other}"/>'
        for number, (one, other) in enumerate(flows)
    )
    body = f'<definitions xmlns="{MODEL}"><process id="p"><startEvent id="s"/>{nodes}{ways}</process></definitions>'
    return compile_workflow(read_model(body.encode(), ReadOptions(), None))


@pytest.mark.parametrize(
    ("nodes", "flows", "named"),
    [
        (
            GATEWAYS + TASKS,
            ["sg", "ga", "ab", "bh", "hg"],
            ["'Retry?' (g)", "'Again?' (h)", "'Pay' (a)", "'Check' (b)"],
        ),
        (GATEWAYS, ["sg", "gh", "hg"], ["'Retry?' (g)", "'Again?' (h)"]),
        (GATEWAYS + '<task id="a" name="Pay"/>', ["sa", "ag", "gh", "hg"], ["'Retry?' (g)", "'Again?' (h)"]),
    ],
)
def test_a_livelock_names_the_elements_where_tokens_circle(nodes, flows, named):
    with pytest.raises(UnsoundWorkflow, match="no trace of the model completes") as caught:
        compiled(nodes, *map(tuple, flows))
    assert all(name in caught.value.message.partition("no way leads to an end from")[2] for name in named)


def test_a_part_without_a_way_out_is_named_where_others_complete():
    nodes = GATEWAYS + TASKS + '<endEvent id="e"/>'
    found = compiled(nodes, *map(tuple, ["sg", "ga", "ah", "ha", "gb", "be"]))
    (warning,) = [one for one in found.extraction.warnings if "for ever" in one]
    assert "through task 'Pay' (a)" in warning
