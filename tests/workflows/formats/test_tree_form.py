"""Process trees as YAML and JSON."""

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.workflows import process_trees
from workflows.attributes import (
    BooleanAttribute,
    ChoiceAttribute,
    ConstantAttribute,
    ExponentialAttribute,
    IntegerAttribute,
    NormalAttribute,
    TextAttribute,
    ThresholdAttribute,
    UniformAttribute,
)
from workflows.durations import ExponentialDuration, FixedDuration, NormalDuration, UniformDuration
from workflows.errors import ModelRefused
from workflows.formats.tree_form import read_tree
from workflows.model import ModelFormat, ReadOptions, WorkflowModel
from workflows.order_fulfilment import OrderSettings, order_fulfilment
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

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
A, B, C = Activity("A"), Activity("B"), Activity("C")


def read(text: str | bytes, **options: object) -> WorkflowModel:
    content = text.encode() if isinstance(text, str) else text
    return read_tree(content, ReadOptions(**options))  # type: ignore[arg-type]


def tree_of(text: str, **options: object) -> ProcessTree:
    """The tree of a file of which only the root is given."""
    source = read(f"name: x\ntree:\n  {text}\n", **options).source
    assert isinstance(source, Activity | Silent | Sequence | ExclusiveChoice | Parallel | InclusiveChoice | Loop)
    return source


def problems_of(text: str | bytes, **options: object) -> list[tuple[str, str]]:
    with pytest.raises(ModelRefused) as caught:
        read(text, **options)
    return list(caught.value.problems)


class Tau:
    """The bare word ``tau`` in YAML; a writer of YAML would quote the word as a text."""


def plain_form(tree: ProcessTree) -> object:
    """The tree as lists, mappings and texts."""
    match tree:
        case Activity(name):
            return name
        case Silent():
            return Tau()
        case Sequence(parts):
            return {"sequence": list(map(plain_form, parts))}
        case Parallel(parts):
            return {"and": list(map(plain_form, parts))}
        case ExclusiveChoice(branches, shares):
            return {"xor": with_shares(branches, shares)}
        case InclusiveChoice(branches, shares):
            return {"or": with_shares(branches, shares)}
        case Loop():
            rounds = {"again": tree.again} if tree.repetitions is None else {"repetitions": tree.repetitions}
            return {"loop": [plain_form(tree.body), plain_form(tree.redo), rounds]}
        case Instances():
            raise AssertionError("the form has no word for instances")


def with_shares(branches: tuple[ProcessTree, ...], shares: tuple[float, ...]) -> list[object]:
    if not shares:
        return list(map(plain_form, branches))
    return [
        {"branch": plain_form(branch), "probability": share} for branch, share in zip(branches, shares, strict=True)
    ]


class TreeDumper(yaml.SafeDumper):
    """Writes texts in quotes and silent steps without."""

    def ignore_aliases(self, data: object) -> bool:
        return True


TreeDumper.add_representer(Tau, lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:str", "tau"))
TreeDumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))

NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8
) | st.sampled_from(["tau", "No", "1.0", "null", "~", "xor", "a: b", "- x", "#", "Überweisung", "{", "2024-01-01"])
LEAVES = st.builds(Activity, NAMES) | st.just(Silent())


def grown(inner: st.SearchStrategy[ProcessTree]) -> st.SearchStrategy[ProcessTree]:
    parts = st.lists(inner, min_size=1, max_size=4).map(tuple)
    fractions = st.floats(0.001, 1.0)
    return st.one_of(
        st.builds(Sequence, parts),
        st.builds(Parallel, parts),
        st.builds(ExclusiveChoice, parts),
        st.builds(lambda first, second, p: ExclusiveChoice((first, second), (p, 1.0 - p)), inner, inner, fractions),
        st.builds(InclusiveChoice, parts),
        st.builds(
            lambda first, second, p, q: InclusiveChoice((first, second), (p, q)), inner, inner, fractions, fractions
        ),
        st.builds(lambda body, redo, again: Loop(body=body, redo=redo, again=again), inner, inner, st.floats(0, 0.99)),
        st.builds(lambda body, redo, n: Loop(body=body, redo=redo, repetitions=n), inner, inner, st.integers(2, 9)),
    )


TREES = st.recursive(LEAVES, grown, max_leaves=12)


@given(TREES, st.booleans())
def test_a_tree_that_is_written_as_yaml_reads_back(tree: ProcessTree, is_flow: bool) -> None:
    text = yaml.dump({"name": "x", "tree": plain_form(tree)}, Dumper=TreeDumper, default_flow_style=is_flow)
    model = read(text)
    assert model.source == tree
    assert (model.name, model.format) == ("x", ModelFormat.TREE)


@given(TREES)
def test_a_tree_that_is_written_as_json_reads_back(tree: ProcessTree) -> None:
    written = json.dumps({"tree": plain_form(tree)}, default=lambda _: None, indent="\t")
    assert read(written).source == tree
    assert read(json.dumps({"tree": plain_form(tree)}, default=lambda _: None)).source == tree


@given(process_trees().filter(lambda tree: "Instances" not in repr(tree)))
def test_the_trees_of_other_tests_read_back(tree: ProcessTree) -> None:
    assert read(yaml.dump({"tree": plain_form(tree)}, Dumper=TreeDumper)).source == tree


def test_the_form_of_the_issue() -> None:
    text = """
name: "order"
tree:
  sequence:
    - "Receive Order"
    - xor: ["Reject", tau]         # exactly one
    - and: ["A", "B"]              # all, interleaved
    - or: ["A", "B", "C"]          # any non-empty subset, interleaved
    - loop: ["body", "redo"]       # body (redo body)*
    - optional: "A"                # one node
"""
    model = read(text)
    assert model.name == "order"
    assert model.source == Sequence(
        (
            Activity("Receive Order"),
            ExclusiveChoice((Activity("Reject"), Silent())),
            Parallel((A, B)),
            InclusiveChoice((A, B, C)),
            Loop(body=Activity("body"), redo=Activity("redo")),
            ExclusiveChoice((A, Silent())),
        )
    )
    assert model.notices == ()


def test_only_the_bare_word_is_silent() -> None:
    assert tree_of("tau") == tree_of("null") == tree_of("~") == Silent()
    assert tree_of('"tau"') == tree_of("'tau'") == tree_of("|-\n    tau") == Activity("tau")
    assert tree_of("Tau") == Activity("Tau")
    (notice,) = read('tree: "tau"').notices
    assert str(notice) == 'tree (line 1): "tau" in quotes is an activity; bare tau is silent'


def test_names_are_normalised_and_mapped() -> None:
    assert tree_of('"  Receive \\n  Order "') == Activity("Receive Order")
    mapping = {"A": "X", "B": None, "D": "Y"}
    model = read("tree: {sequence: [A, B, {activity: C}]}", mapping=mapping)
    assert model.source == Sequence((Activity("X"), Silent(), C))
    assert [str(notice) for notice in model.notices] == ["the mapping names 'D', which is not a task of this model"]


def test_nodes_know_where_they_stand() -> None:
    tree = read(
        "tree:\n  sequence:\n    - A\n    - xor:\n      - B\n      - {branch: {optional: C}, probability: 0.5}\n"
    ).source
    assert isinstance(tree, Sequence)
    choice = tree.parts[1]
    assert isinstance(choice, ExclusiveChoice)
    optional = choice.branches[1]
    assert isinstance(optional, ExclusiveChoice)
    found = [node.origin for node in (tree, tree.parts[0], choice, choice.branches[0], optional, optional.branches[0])]  # type: ignore[union-attr]
    assert found == [
        "tree.sequence (line 2)",
        "tree.sequence[1] (line 3)",
        "tree.sequence[2].xor (line 4)",
        "tree.sequence[2].xor[1] (line 5)",
        "tree.sequence[2].xor[2].branch.optional (line 6)",
        "tree.sequence[2].xor[2].branch.optional (line 6)",
    ]


def test_branches_without_a_probability_share_what_is_left() -> None:
    assert tree_of("xor: [{activity: A, probability: 0.5}, B, C]") == ExclusiveChoice((A, B, C), (0.5, 0.25, 0.25))
    assert tree_of("or: [{activity: A, probability: 0.9}, B]") == InclusiveChoice((A, B), (0.9, 0.5))
    assert tree_of("optional: {branch: A, probability: 0.75}") == ExclusiveChoice((A, Silent()), (0.75, 0.25))
    assert tree_of("xor: [{branch: tau, probability: 1}, A]") == ExclusiveChoice((Silent(), A), (1.0, 0.0))


SETTINGS = """
attributes:
  quantity: {integer: 10}
  region: {text: 3}
duration: 5 min
tree:
  sequence:
    - "A"
    - activity: "B"
      duration: {uniform: [1 min, 1.5 h]}
      attributes:
        region: "north"
        level: {integer: [5, 7]}
        price: {threshold: {at: 200, highest: 1000, fail: 0.25, also: [amount]}}
        channel: {choice: {web: 3, 7: 1}}
        colour: {choice: [red, "2", 2, 2.5, true]}
        share: {uniform: [0, 1]}
        weight: {normal: [70, 2.5]}
        load: {exponential: 5}
        vip: {boolean: 0.1}
        fixed: {constant: 1_000}
    - {activity: "C", duration: {exponential: 2 hours}}
    - {activity: "D", duration: {normal: [10 s, 500 ms]}}
    - {activity: "E", duration: {fixed: 0 s}}
"""


def test_settings_of_leaves() -> None:
    quantity, region = IntegerAttribute("quantity", 10), TextAttribute("region", 3)
    minute = 60_000_000
    assert read(SETTINGS).source == Sequence(
        (
            Activity("A", (quantity, region), duration=FixedDuration(5 * minute)),
            Activity(
                "B",
                (
                    quantity,
                    ConstantAttribute("region", "north"),
                    IntegerAttribute("level", 3, 5),
                    ThresholdAttribute(names=("price", "amount"), fail_ratio=0.25, threshold=200, highest=1000),
                    ChoiceAttribute("channel", ("web", 7), (3.0, 1.0)),
                    ChoiceAttribute("colour", ("red", "2", 2, 2.5, True)),
                    UniformAttribute("share", 0.0, 1.0),
                    NormalAttribute("weight", 70.0, 2.5),
                    ExponentialAttribute("load", 5.0),
                    BooleanAttribute("vip", 0.1),
                    ConstantAttribute("fixed", 1000),
                ),
                duration=UniformDuration(minute, 90 * minute),
            ),
            Activity("C", (quantity, region), duration=ExponentialDuration(120 * minute)),
            Activity("D", (quantity, region), duration=NormalDuration(10_000_000, 500_000)),
            Activity("E", (quantity, region), duration=FixedDuration(0)),
        )
    )


def test_the_order_example_is_the_order_workflow() -> None:
    model = read((EXAMPLES / "order.yaml").read_bytes())
    assert model.source == order_fulfilment(OrderSettings(quotes=None))
    assert (model.name, model.notices) == ("order", ())


REFUSED = [
    ("", "", "the text is empty"),
    ("# nothing", "", "the text has 0 documents; one is read"),
    ("tree: A\n---\ntree: B", "", "the text has 2 documents; one is read"),
    ("tree: [", "line 1", "this is neither JSON nor YAML"),
    ("\x00", "", "this is neither JSON nor YAML"),
    ("- A", "line 1", "a tree file is a mapping with name and tree"),
    ("A", "line 1", "a tree file is a mapping with name and tree"),
    ("name: x", "line 1", "there is no tree"),
    ("tree: A\ncolour: red", "colour (line 2)", "unknown key; a tree file has name, tree, attributes, duration"),
    ("name: [x]\ntree: A", "name (line 1)", "a name is a text"),
    ("tree:\n  sequence: &a [A]", "line 2", "anchors and aliases are not allowed"),
    ("tree:\n  sequence: *a", "line 2", "anchors and aliases are not allowed"),
    ("tree: !!python/name:os.system A", "line 1", "the tag 'tag:yaml.org,2002:python/name:os.system' is not allowed"),
    ("tree: !x A", "line 1", "the tag '!x' is not allowed"),
    ("tree: A\nname: x\ntree: B", "line 3", "the key 'tree' is given twice"),
    ('{"tree": {"xor": ["A"],\n "xor": ["B"]}}', "line 2", "the key 'xor' is given twice"),
    ("tree: {[A]: B}", "line 1", "a key is a text, not a list or a mapping"),
    ("tree:\n  xor:\n  - A\n  -\n", "tree.xor[2] (line 4)", "the node is empty; the silent step is written tau"),
    ("tree: No", "tree (line 1)", 'an activity is a text; put quotes around it: "No"'),
    ("tree: 7", "tree (line 1)", 'an activity is a text; put quotes around it: "7"'),
    ('{"tree": 7}', "tree (line 1)", 'an activity is a text; put quotes around it: "7"'),
    ("tree: {activity: [A]}", "tree (line 1)", "an activity is a text"),
    ('tree: " "', "tree (line 1)", "the name is empty"),
    ('{"tree": "\\ud800"}', "line 1", "is half a character"),
    ("tree: [A, B]", "tree (line 1)", "a list must be under an operator"),
    ("tree: {}", "tree (line 1)", "an operator node has exactly one key, this one none"),
    ("tree: {xor: [A], and: [B]}", "tree (line 1)", "exactly one key, this one 2: xor, and"),
    ("tree: {xor: [A], probability: 1}", "tree (line 1)", "wrap it: {branch: .., probability: ..}"),
    (
        "tree: {parallel: [A]}",
        "tree (line 1)",
        "unknown operator 'parallel'; there are sequence, xor, and, or, loop, optional",
    ),
    ("tree: {branch: A}", "tree (line 1)", "a branch must be in the list of xor or or, or under optional"),
    ("tree: {and: [{branch: A, probability: 1}]}", "tree.and[1] (line 1)", "exactly one key"),
    ("tree: {sequence: A}", "tree.sequence (line 1)", "the operator takes a list of at least one node"),
    ("tree: {and: []}", "tree.and (line 1)", "the operator takes a list of at least one node"),
    ("tree: {xor: {A: B}}", "tree.xor (line 1)", "the operator takes a list of at least one node"),
    ("tree: {optional: [A]}", "tree.optional (line 1)", "optional takes one node"),
    ("tree: {loop: [A]}", "tree.loop (line 1)", "loop takes [body, redo], with tau where nothing is redone"),
    ("tree: {loop: [A, B, C]}", "tree.loop[3] (line 1)", "a loop's settings are {repetitions: 3} or {again: 0.5}"),
    ("tree: {loop: [A, B, {repetitions: 0}]}", "tree.loop[3] (line 1)", "from 1 to 1,000"),
    ("tree: {loop: [A, B, {repetitions: 1e9}]}", "tree.loop[3] (line 1)", "from 1 to 1,000"),
    (
        "tree: {loop: [A, B, {repetitions: 1}]}",
        "tree.loop (line 1)",
        "a loop of one repetition never reaches its redo",
    ),
    ("tree: {loop: [A, B, {again: 1}]}", "tree.loop (line 1)", "at least 0 and below 1, got 1.0"),
    ("tree: {loop: [A, B, {again: x}]}", "tree.loop[3].again (line 1)", "a probability is a number from 0 to 1"),
    ("tree: {xor: [{activity: A, probability: 1.5}]}", "tree.xor[1].probability (line 1)", "from 0 to 1"),
    ('tree: {xor: [{activity: A, probability: "1"}]}', "tree.xor[1].probability (line 1)", "from 0 to 1"),
    ("tree: {xor: [{activity: A, probability: nan}]}", "tree.xor[1].probability (line 1)", "from 0 to 1"),
    ("tree: {xor: [{branch: A, probability: 0.6}, {branch: B, probability: 0.6}]}", "tree.xor (line 1)", "sum to 1.2"),
    ("tree: {xor: [{branch: A, probability: 0.6}]}", "tree.xor (line 1)", "sum to 1, got (0.6,)"),
    ("tree: {or: [{branch: A, probability: 0}]}", "tree.or (line 1)", "not all 0"),
    ("tree: {xor: [{branch: A, colour: 1}]}", "tree.xor[1] (line 1)", "a branch has the keys branch and probability"),
    ("tree: {activity: A, probability: 1}", "tree (line 1)", "a probability belongs to a branch of xor, or, optional"),
    (
        "tree: {activity: A, color: 1}",
        "tree (line 1)",
        "unknown key 'color'; a leaf has activity, attributes, duration",
    ),
    ("tree: {activity: A, duration: 5}", "tree.duration (line 1)", "'5' is not a duration; write a number and a unit"),
    ("tree: {activity: A, duration: 5 moons}", "tree.duration (line 1)", "'5 moons' is not a duration"),
    ("tree: {activity: A, duration: 99999 d}", "tree.duration (line 1)", "at most ten years"),
    (
        "tree: {activity: A, duration: {uniform: [5 s, 1 s]}}",
        "tree.duration (line 1)",
        "the smaller value before the larger",
    ),
    ("tree: {activity: A, duration: {uniform: 5 s}}", "tree.duration (line 1)", "uniform takes a list of 2"),
    ("tree: {activity: A, duration: {fixed: [5 s]}}", "tree.duration (line 1)", "a duration is a number and a unit"),
    ("tree: {activity: A, duration: {gamma: 5 s}}", "tree.duration (line 1)", "one key of fixed, uniform, exponential"),
    ("tree: {activity: A, duration: {exponential: 0 s}}", "tree.duration (line 1)", "is above 0"),
    ("tree: {activity: A, attributes: [x]}", "tree.attributes (line 1)", "attributes are a mapping"),
    ("tree: {activity: A, attributes: {'': 1}}", "tree.attributes. (line 1)", "an attribute needs a name"),
    ("attributes: {x: {gamma: 1}}\ntree: A", "attributes.x (line 1)", "exactly one key of integer, text, threshold"),
    ("attributes: {x: {integer: 0}}\ntree: A", "attributes.x (line 1)", "a domain has at least 1 value, got 0"),
    ("attributes: {x: {integer: [5, 1]}}\ntree: A", "attributes.x (line 1)", "a domain has at least 1 value"),
    ("attributes: {x: {integer: a}}\ntree: A", "attributes.x (line 1)", "integer takes the largest number"),
    ("attributes: {x: {integer: 1e300}}\ntree: A", "attributes.x (line 1)", "integer takes the largest number"),
    ("attributes: {x: {integer: 9007199254740992}}\ntree: A", "attributes.x (line 1)", "between -2^53 and 2^53"),
    ("attributes: {x: {text: 1.5}}\ntree: A", "attributes.x (line 1)", "text takes the number of texts, x-1 and so on"),
    ("attributes: {x: {threshold: 5}}\ntree: A", "attributes.x (line 1)", "threshold takes at, highest and fail"),
    ("attributes: {x: {threshold: {at: 5, highest: 4, fail: 0}}}\ntree: A", "attributes.x (line 1)", "1 <= threshold"),
    (
        "attributes: {x: {threshold: {at: 5, highest: 9, fail: 0, also: y}}}\ntree: A",
        "attributes.x (line 1)",
        "also is",
    ),
    (
        "attributes: {x: {threshold: {at: 5, highest: 9, fail: 0, also: [1]}}}\ntree: A",
        "attributes.x (line 1)",
        "also is",
    ),
    ("attributes: {x: {choice: red}}\ntree: A", "attributes.x (line 1)", "choice takes a list of values"),
    ("attributes: {x: {choice: []}}\ntree: A", "attributes.x (line 1)", "a choice needs at least one value"),
    ("attributes: {x: {choice: {a: 0}}}\ntree: A", "attributes.x (line 1)", "weights are 0 or more, not all 0"),
    (
        "attributes: {x: {choice: [[a]]}}\ntree: A",
        "attributes.x (line 1)",
        "a value is a text, a number, true or false",
    ),
    ("attributes: {x: {normal: [1]}}\ntree: A", "attributes.x (line 1)", "normal takes a list of 2"),
    ("attributes: {x: {normal: [1, -1]}}\ntree: A", "attributes.x (line 1)", "a deviation is 0 or more"),
    ("attributes: {x: {uniform: [2, 1]}}\ntree: A", "attributes.x (line 1)", "is not a range"),
    ("attributes: {x: {uniform: [1e301, 1e302]}}\ntree: A", "attributes.x (line 1)", "between -1e300 and 1e300"),
    ("attributes: {x: {exponential: 0}}\ntree: A", "attributes.x (line 1)", "a mean is above 0"),
    ("attributes: {x: {exponential: [1]}}\ntree: A", "attributes.x (line 1)", "exponential takes the mean"),
    ("attributes: {x: {boolean: 2}}\ntree: A", "attributes.x (line 1)", "share 2.0 is not between 0 and 1"),
    ("attributes: {x: }\ntree: A", "attributes.x (line 1)", "a value is a text, a number, true or false"),
    ("attributes: {x: No}\ntree: A", "attributes.x (line 1)", 'put quotes around "No"'),
    (
        "tree: {activity: A, attributes: {x: 1, y: {threshold: {at: 1, highest: 2, fail: 0, also: [x]}}}}",
        "tree (line 1)",
        "two attributes share a name",
    ),
]


@pytest.mark.parametrize(("text", "place", "message"), REFUSED)
def test_what_is_wrong_is_said_with_its_place(text: str, place: str, message: str) -> None:
    problems = problems_of(text)
    assert [(where, message in said) for where, said in problems] == [(place, True)], problems


def test_every_problem_is_listed() -> None:
    nodes = "    - 7\n    - parallel: [A]\n    - and: [{loop: [A]}, B]\n    - {activity: A, duration: 5}\n"
    text = f"tree:\n  sequence:\n{nodes}"
    assert [place for place, _ in problems_of(text)] == [
        "tree.sequence[1] (line 3)",
        "tree.sequence[2] (line 4)",
        "tree.sequence[3].and[1].loop (line 5)",
        "tree.sequence[4].duration (line 6)",
    ]
    assert problems_of("tree: {sequence: [" + "7, " * 5_000 + "A]}")[200:] == [("", "and 4,800 problems more")]


def test_a_process_that_is_asked_for_is_not_there() -> None:
    assert problems_of("tree: A", process="p") == [
        ("", "a tree file has one process without id; there is no process 'p'")
    ]


BOMBS = {
    "10 MB of bytes": bytes(range(256)) * 40_000,
    "10 MB of text": b"tree: A\n" * 1_250_000,
    "bytes that are no text": bytes(range(256)) * 3_000,
    "1 MB of brackets": b"[" * 1_000_000,
    "JSON brackets": b'{"a":' * 190_000,
    "nested lists": b"- " * 400_000,
    "nested keys": b"? " * 400_000,
    "a long list": b"[" + b"a," * 499_990 + b"]",
    "a long JSON list": b"[" + b"1," * 499_990 + b"1]",
    "many nodes": b"tree: {sequence: [" + b"A, " * 50_000 + b"B]}",
    "deep tree": b"tree: " + b"{sequence: [" * 200 + b"A" + b"]}" * 200,
    "aliases": b"a: &a [x, x]\n" + b"".join(b"b%d: &b%d [*a, *a]\n" % (i, i) for i in range(30)) + b"tree: *a\n",
    "merges": b"a: &a {x: 1}\ntree: {<<: *a}",
    "a late error": b"- a\n" * 95_000 + b"]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_bounded_time(name: str) -> None:
    start = time.process_time()
    problems = problems_of(BOMBS[name])
    assert time.process_time() - start < 10.0
    assert all(message for _, message in problems)
    assert len(problems) <= 101


@pytest.mark.parametrize("name", ["a long list", "a long JSON list"])
def test_long_lists_are_refused_before_they_are_composed(name: str) -> None:
    assert [message for _, message in problems_of(BOMBS[name])] == ["the text has more than 250,000 keys and values"]
