"""The script that stores changes of incidents, on a real server."""

import orjson
import pytest

from service.stores.connection import register

pytestmark = pytest.mark.redis


@pytest.fixture
def run(client):
    return lambda script, **given: register(client, script)(**given)


def test_results_note_incidents(client, run):
    def note(*changes, kept=2):
        rest = [
            part
            for one, revision, state in changes
            for part in (one, revision, orjson.dumps({"incident": {"revision": revision, "state": state}}))
        ]
        run("results/note_incidents", incidents="i", order="o", number="n", kept=kept, rest=rest)
        return client.zrange("o", 0, -1, withscores=True)

    assert note(("a", 2, "closed"), ("a", 1, "open"), ("b", 1, "open")) == [(b"a", 1), (b"b", 2)]
    assert orjson.loads(client.hget("i", "a"))["incident"] == {"revision": 2, "state": "closed"}
    assert note(("c", 1, "open")) == [(b"b", 2), (b"c", 3)]  # the closed one is removed
    assert note(("d", 1, "open")) == [(b"b", 2), (b"c", 3), (b"d", 4)]  # open ones stay
    assert note(("b", 2, "closed")) == [(b"c", 3), (b"d", 4)]
    assert client.hlen("i") == 2
