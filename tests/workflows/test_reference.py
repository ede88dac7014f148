"""The enumeration of languages, against languages written out."""

import pytest

from tests.references.workflows import enumerate_language
from workflows import Activity, ExclusiveChoice, Loop, Parallel, ProcessTree, Sequence, Silent

A, B, C = Activity("A"), Activity("B"), Activity("C")


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (A, {"A"}),
        (Silent(), {""}),
        (Sequence((A, B, C)), {"ABC"}),
        (ExclusiveChoice((A, Sequence((B, C)), Silent())), {"A", "BC", ""}),
        (Parallel((A, B)), {"AB", "BA"}),
        (Parallel((Sequence((A, B)), C)), {"CAB", "ACB", "ABC"}),
        (Parallel((A, B, C)), {"ABC", "ACB", "BAC", "BCA", "CAB", "CBA"}),
        (Loop(body=A), {"A", "AA", "AAA"}),
        (Loop(body=A, redo=B), {"A", "ABA", "ABABA"}),
        (Loop(body=A, redo=B, repetitions=2), {"ABA"}),
        (Loop(body=ExclusiveChoice((A, B)), repetitions=2), {"AA", "AB", "BA", "BB"}),
    ],
)
def test_languages(tree: ProcessTree, words: set[str]) -> None:
    assert {"".join(word) for word in enumerate_language(tree, 3)} == words
