"""Changes of a project that need each other are made in whichever order the service accepts."""

import pytest

from service.client import Client
from service.errors import ApplyStopped
from tests.builders.projects import applied, plan_of, written

pytestmark = pytest.mark.redis

STREAM = "{kind: stream, name: s, key: data.k}\n---\n"
LIMITS = "{kind: table, name: limits, key: sensor, file: limits.csv}"
PAIR = STREAM + "{kind: pattern, name: x, stream: s, text: 'PATTERN x EVENT SEQ(A a, B b)'}"
CONSTRAINED = (
    STREAM + "{kind: pattern, name: x, stream: s, text: PATTERN x EVENT A}\n---\n"
    "{kind: constraints, name: s, constraints: ['exclusive(A, B)']}"
)


@pytest.fixture
def service(api_url, stores):
    with Client(api_url, patience_s=60) as found:
        yield found


def chain(first, second, *streams):
    """Two patterns, of which the second listens to the stream that the first feeds."""
    source, middle, end = streams
    return STREAM + "\n---\n".join(
        f"{{kind: pattern, name: {name}, stream: {before}, text: 'PATTERN {name} EVENT A a INTO {after}'}}"
        for name, before, after in ((first, source, middle), (second, middle, end))
    )


def reading(column):
    return (
        f"{STREAM}{LIMITS}\n---\n"
        f"{{kind: pattern, name: x, stream: s, text: 'PATTERN x EVENT A [v > lookup(limits, k).{column}]'}}"
    )


@pytest.mark.parametrize("after", [reading("most"), STREAM + LIMITS], ids=["changed", "gone"])
def test_a_column_goes_together_with_its_last_reader(service, tmp_path, after):
    folder = written(tmp_path / "p", {"p.yaml": reading("least"), "limits.csv": "sensor,most,least\ns1,5,1\n"})
    applied(service, folder)
    written(folder, {"p.yaml": after, "limits.csv": "sensor,most\ns1,5\n"})
    assert [title for _, title in applied(service, folder, is_pruned=True)] == ["pattern x", "table limits"]
    assert plan_of(service, folder, is_pruned=True).changes == []


def test_constraints_go_together_with_a_pattern_that_they_forbade(service, tmp_path):
    folder = written(tmp_path / "p", {"p.yaml": CONSTRAINED})
    applied(service, folder)
    written(folder, {"p.yaml": PAIR})
    assert applied(service, folder, is_pruned=True) == [("gone", "constraint set s"), ("changed", "pattern x")]


def test_end_events_go_together_with_the_need_for_them(service, tmp_path):
    rules = STREAM.replace("data.k", "data.k, end_events: [Paid]")
    waiting = "{kind: pattern, name: x, stream: s, text: 'PATTERN x EVENT SEQ(A a, NOT B)LIMIT'}"
    folder = written(tmp_path / "p", {"p.yaml": rules + waiting.replace("LIMIT", "")})
    applied(service, folder)
    written(folder, {"p.yaml": STREAM + waiting.replace("LIMIT", " WITHIN 30 s")})
    assert applied(service, folder) == [("changed", "pattern x"), ("changed", "stream s")]


def test_a_chain_of_derived_streams_is_turned_round(service, tmp_path):
    folder = written(tmp_path / "p", {"p.yaml": chain("x", "y", "s", "d", "e")})
    applied(service, folder)
    written(folder, {"p.yaml": chain("x2", "y2", "s", "e", "d")})
    assert [title for _, title in applied(service, folder, is_pruned=True)] == [
        "pattern x2",
        "pattern x",
        "pattern y",
        "pattern y2",
    ]
    assert plan_of(service, folder, is_pruned=True).changes == []


def test_what_a_refused_change_replaces_is_not_deleted(service, tmp_path):
    """Neither the former pattern, which is not in the way of the new one, nor any stream with its events."""
    folder = written(tmp_path / "p", {"p.yaml": CONSTRAINED, "t.yaml": "{kind: stream, name: t}"})
    applied(service, folder)
    renamed = CONSTRAINED.replace("name: x", "name: y").replace("PATTERN x EVENT A", "'PATTERN y EVENT SEQ(A a, B b)'")
    written(folder, {"p.yaml": renamed, "u.yaml": "{kind: stream, name: u}"})
    (folder / "t.yaml").unlink()
    with pytest.raises(ApplyStopped, match=r"pattern y: .*can never match") as stopped:
        applied(service, folder, is_pruned=True)
    assert stopped.value.details["left"] == ["pattern y", "pattern x", "stream t"]
    assert "1 of 4 changes are made; not made: pattern y, pattern x, stream t" in stopped.value.message
    written(folder, {"p.yaml": renamed.replace("SEQ(A a, B b)", "A")})
    assert [title for _, title in applied(service, folder, is_pruned=True)] == ["pattern y", "pattern x", "stream t"]


def test_the_first_refusal_is_the_reason_of_a_stop_and_all_else_is_made(service, tmp_path):
    rules = STREAM + "{kind: webhook, name: bad, url: 'ftp://8.8.8.8'}\n---\n{kind: webhook, name: desk, url: URL}"
    folder = written(tmp_path / "p", {"p.yaml": rules.replace("URL", "'https://8.8.8.8'")})
    with pytest.raises(ApplyStopped, match=r"webhook bad: .*\n2 of 3 changes are made; not made: webhook bad$"):
        applied(service, folder)
    assert [hook["name"] for hook in service.get("/webhooks")["items"]] == ["desk"]
