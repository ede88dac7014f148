"""The script that stores changes of incidents, on a real server."""

import orjson
import pytest

from service.stores.connection import register

pytestmark = pytest.mark.redis


@pytest.fixture
def note(client):
    script = register(client, "results/note_incidents", incidents="i", order="o", number="n", examined="x")

    def note(*changes, kept=2):
        rest = [
            part
            for one, revision, state in changes
            for part in (one, revision, orjson.dumps({"incident": {"revision": revision, "state": state}}))
        ]
        script(kept=kept, rest=rest)
        return client.zrange("o", 0, -1, withscores=True)

    return note


def test_results_note_incidents(client, note):
    assert note(("a", 2, "closed"), ("a", 1, "open"), ("b", 1, "open")) == [(b"a", 1), (b"b", 2)]
    assert orjson.loads(client.hget("i", "a"))["incident"] == {"revision": 2, "state": "closed"}
    assert note(("c", 1, "open")) == [(b"b", 2), (b"c", 3)]  # the closed one is removed
    assert note(("d", 1, "open")) == [(b"b", 2), (b"c", 3), (b"d", 4)]  # open ones stay
    assert note(("b", 2, "closed")) == [(b"c", 3), (b"d", 4)]
    assert client.hlen("i") == 2


def test_closed_incidents_are_removed_when_a_thousand_older_ones_are_open(client, note):
    note(*((f"open{number}", 1, "open") for number in range(1_000)))
    note(*((f"closed{number}", 1, "closed") for number in range(5)))  # examines the open ones
    for number in range(50):
        assert len(note((f"later{number}", 1, "closed"))) <= 1_005
    assert len(note(("last", 1, "open"))) <= 1_002
    assert {name for name, _ in note() if name.startswith(b"open")} == {b"open%d" % number for number in range(1_000)}


def test_the_oldest_closed_incidents_are_removed_first_also_after_newer_ones(client, note):
    note(*((f"open{number}", 1, "open") for number in range(1_000)))
    note(("a", 1, "closed"), ("b", 1, "closed"), kept=1_001)  # one too many, after the examined page
    assert [name for name, _ in note(kept=1_001)[1_000:]] == [b"b"]
    left = note(("open7", 2, "closed"), ("c", 1, "open"), kept=1_001)
    assert [name for name, _ in left[998:]] == [b"open999", b"b", b"c"]
    assert not client.exists("x")
