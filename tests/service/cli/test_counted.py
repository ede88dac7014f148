"""Numbers with their nouns in what commands print."""

import pytest

from service.cli.output import counted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (counted(0, "event"), "0 events"),
        (counted(1, "event"), "1 event"),
        (counted(2, "match", "matches"), "2 matches"),
        (counted(1, "match was", "matches were"), "1 match was"),
        (counted(2_000, "dead letter", form=","), "2,000 dead letters"),
    ],
)
def test_the_noun_agrees_with_the_number(text, expected):
    assert text == expected
