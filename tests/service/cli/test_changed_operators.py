"""``change`` of patterns and other operators: a draft stays a draft, and a paused operator paused."""

import orjson
import pytest

pytestmark = pytest.mark.redis

PATTERN = "PATTERN lost EVENT SEQ(Reserve r, Cancel c)"
LATER = "PATTERN lost EVENT SEQ(Reserve r, Ship s)"
COUNTS = "{name: counts, of: orders, window: 1 h, values: {n: count()}%s}"


@pytest.fixture
def run(call, api_url, stores):
    """Runs ``forestall`` against an API; returns (status, output, errors)."""
    assert call("streams", "add", "orders", "--url", api_url)[0] == 0
    return lambda *arguments: call(*arguments, "--url", api_url)


def test_a_changed_pattern_keeps_its_state(run):
    run("patterns", "add", PATTERN, "--stream", "orders", "--draft")
    status, _, err = run("patterns", "add", LATER, "--stream", "orders", "--draft")
    assert (status, "change it (forestall patterns change lost)" in err) == (2, True)
    assert run("patterns", "change", "lost", LATER)[1] == "lost: version 2 on orders, draft\n"
    run("patterns", "activate", "lost")
    assert run("patterns", "change", "lost", PATTERN)[1] == "lost: version 3 on orders, active\n"
    run("patterns", "pause", "lost")
    assert run("patterns", "change", "lost", "--suppress", "1 h")[1] == "lost: version 4 on orders, paused\n"
    assert run("patterns", "change", "lost", LATER, "--migrate")[1] == "lost: version 5 on orders, paused\n"


def test_none_removes_a_member_of_a_pattern(run):
    def members(name):
        shown = orjson.loads(run("patterns", "show", name, "--json")[1])
        return [shown[member] for member in ("suppress", "incident", "resolves", "severity")]

    grouped = {"by": ["customer"]}
    text = PATTERN + " RETURN r.customer AS customer"
    options = ("--severity", "high", "--suppress", "1 h by customer", "--incident", "2 h")
    run("patterns", "add", text, "--stream", "orders", *options)
    text = text.replace("lost", "found")
    run("patterns", "add", text, "--stream", "orders", "--severity", "high", "--resolves", "lost by customer")
    run("patterns", "change", "found", "--resolves", "none")
    assert members("found") == [None, None, None, "high"]
    run("patterns", "change", "lost", "--suppress", "none", "--severity", "low")
    assert members("lost") == [None, {**grouped, "close_after": "2 h"}, None, "low"]
    run("patterns", "change", "lost", "--incident", "none")
    assert members("lost") == [None, None, None, "low"]


def test_a_changed_aggregate_keeps_its_state_unless_the_document_names_one(run, tmp_path):
    def changed(members="", verb="change"):
        (tmp_path / "counts.yaml").write_text(COUNTS % members)
        status, out, err = run("aggregates", verb, "counts.yaml", "--json")
        assert status == 0, err
        counts = orjson.loads(out)
        return counts["version"], counts["state"]

    assert changed(", state: draft", "add") == (1, "draft")
    assert changed(", having: n > 1") == (2, "draft")
    assert changed(", having: n > 1, state: active") == (2, "active")
    assert changed() == (3, "active")
    run("aggregates", "pause", "counts")
    assert changed(", having: n > 2") == (4, "paused")
