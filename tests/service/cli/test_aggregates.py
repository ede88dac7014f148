"""Questions to aggregates on the command line."""

import orjson
import pytest


class Answering:
    """A client that answers a question with two groups, or none."""

    def __init__(self, groups):
        self.groups, self.asked = groups, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def content(self, path):
        self.asked.append(path)
        return b"<svg/>"

    is_json = False

    def get(self, path):
        self.asked.append(path)
        if path == "/aggregates/failed":
            return {"held_since": "2026-01-01T09:00:00.000000Z"}
        return {"sentences": ["Groups: by user."], "statistics": None, "waiting": 0, "indexes": [INDEX]}

    def post(self, path, body):
        self.asked.append((path, body))
        return {"groups": self.groups, "events": 3}


@pytest.fixture
def answering(monkeypatch):
    def begin(groups):
        client = Answering(groups)
        monkeypatch.setattr("service.cli.calling.calling", lambda *_: client)
        return client

    return begin


GROUPS = [{"region": "north", "n": 2}, {"region": "south", "n": 1}]


INDEX = {
    "shard": 1,
    "events": 1200,
    "partitions": 8,
    "configuration": {"region": 1, "user": 2},
    "questions": 3,
    "asked_for": [{"where": ["user"], "share": 0.75}, {"where": [], "share": 0.25}],
    "migrations": 2,
    "best": {"region": 0, "user": 3},
    "cost_ns": {"present": 1500, "best": 900},
}


def test_the_figures_of_the_index_are_explained(call, answering):
    answering([])
    status, out, _ = call("aggregates", "explain", "failed")
    assert status == 0
    assert " ".join(out.split()) == (
        "Groups: by user. waiting 0 index of shard 1: 1,200 events in 8 partitions (region 1, user 2 bits), "
        "3 questions (by filters: user 75%; no filter 25%), 2 migrations, estimated cost 1,500 ns, at best 900 ns "
        "(region 0, user 3 bits)"
    )


def test_a_question_is_sent_and_its_groups_are_listed(call, answering):
    client = answering(GROUPS)
    options = ["--by", "region", "--where", "user=ann", "--where", "level=3", "--value", "n", "--window", "20 min"]
    options += ["--value", "x=sum(price)", "--explain"]
    status, out, _ = call("aggregates", "ask", "failed", *options)
    wanted = {
        "by": ["region"],
        "where": {"user": "ann", "level": 3},
        "values": ["n", {"x": "sum(price)"}],
        "window": "20 min",
        "explain": True,
    }
    assert (status, client.asked) == (0, [("/aggregates/failed/ask", wanted)])
    assert [line.split() for line in out.splitlines() if line.strip()][-2:] == [["north", "2"], ["south", "1"]]


def test_the_answer_is_printed_as_json(call, answering):
    answering(GROUPS)
    status, out, _ = call("aggregates", "ask", "failed", "--json")
    assert (status, orjson.loads(out)["groups"]) == (0, GROUPS)


def test_no_group_and_no_form_are_said(call, answering):
    answering([])
    words = "no event in the window has these values; its windows began empty at 2026-01-01T09:00:00.000000Z"
    assert words in " ".join(call("aggregates", "ask", "failed")[2].split())
    status, _, err = call("aggregates", "ask", "failed", "--where", "ann")
    assert (status, "region=north" in err) == (2, True)


def test_a_plot_is_printed_or_written_to_a_file(call, answering, tmp_path):
    client = answering([])
    assert call("aggregates", "plot", "failed")[:2] == (0, "<svg/>\n")
    assert call("aggregates", "plot", "failed", str(tmp_path / "failed.svg"))[:2] == (0, "")
    assert (tmp_path / "failed.svg").read_bytes() == b"<svg/>"
    assert client.asked == ["/aggregates/failed/plot.svg"] * 2
