"""Which resources a project owns, and what is deleted when its documents no longer name them."""

import re
from itertools import count

import orjson
import pytest

from api import create_app
from service.client import Client
from service.errors import ApplyStopped, ProjectRefused
from service.projects import apply_plan, read_project
from tests.builders.api import serving
from tests.builders.projects import applied, plan_of, written
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis

OWN = """
{kind: stream, name: orders}
---
{kind: pattern, name: bought, stream: orders, text: 'PATTERN bought EVENT SEQ(A a, B b)'}
"""
OTHER = """
{kind: stream, name: other}
---
{kind: constraints, name: other, constraints: [{prior: [A, B]}]}
---
{kind: pattern, name: far, stream: other, text: PATTERN far EVENT A a}
"""


@pytest.fixture
def project(tmp_path):
    return written(tmp_path / "project", {"own.yaml": OWN})


@pytest.fixture
def service(api_url, stores):
    with Client(api_url, patience_s=60) as found:
        yield found


def test_a_stream_that_is_not_named_is_deleted_with_what_is_on_it(service, project):
    applied(service, written(project, {"other.yaml": OTHER}))
    (project / "other.yaml").unlink()
    assert applied(service, project, is_pruned=True) == [
        ("gone", "pattern far"),
        ("gone", "constraint set other"),
        ("gone", "stream other"),
    ]
    assert [stream["name"] for stream in service.get("/streams")["items"]] == ["orders"]


def test_two_projects_on_one_service_do_not_delete_from_each_other(service, project, tmp_path):
    other = written(tmp_path / "other", {"other.yaml": OTHER, "shared.yaml": "{kind: stream, name: shared}"})
    applied(service, written(project, {"shared.yaml": "{kind: stream, name: shared}"}))
    applied(service, other)
    service.post("/patterns", {"stream": "shared", "text": "PATTERN by_hand EVENT A a"})
    (project / "shared.yaml").unlink()
    plan = plan_of(service, project, is_pruned=True)
    assert plan.work == []
    why = {change.title: change.why for change in plan.changes}
    assert why["pattern far"] == why["stream other"] == "it belongs to the project other"
    assert why["stream shared"] == "the project other has it, too"
    assert why["pattern by_hand"] == "it was made outside of this project"
    assert applied(service, project, is_pruned=True) == []
    (other / "shared.yaml").unlink()
    assert [change.why for change in plan_of(service, other, is_pruned=True).changes if change.name == "shared"] == [
        "the project project has it, too"  # it has not let go of it, as it was refused
    ]


def resources_of(service, name):
    return {resource["name"] for resource in service.get(f"/projects/{name}")["resources"]}


def test_two_applies_of_one_project_at_once_both_own_what_they_make(service, project, tmp_path):
    other = written(tmp_path / "copy" / "project", {"other.yaml": OTHER})
    plans = [plan_of(service, folder) for folder in (project, other)]
    for plan in plans:
        apply_plan(service, plan, lambda _: None)
    assert resources_of(service, "project") == {"orders", "bought", "other", "far"}


def test_a_project_that_changes_while_its_list_is_written_is_read_again(
    service, project, tmp_path, api_url, monkeypatch
):
    other = written(tmp_path / "copy" / "project", {"other.yaml": OTHER})
    request, calls = service.request, []

    def request_late(method, path, **options):
        if (method, path) == ("PUT", "/projects/project"):
            calls.append(path)
            if len(calls) == 1:
                with Client(api_url, patience_s=60) as somebody_else:
                    applied(somebody_else, other)
        return request(method, path, **options)

    monkeypatch.setattr(service, "request", request_late)
    applied(service, project)
    assert len(calls) == 2
    assert resources_of(service, "project") == {"orders", "bought", "other", "far"}


def test_a_list_that_others_change_all_the_time_stops_an_apply_before_its_changes(service, project, monkeypatch):
    request, numbers = service.request, count()

    def request_late(method, path, **options):
        if (method, path) == ("PUT", "/projects/project"):
            body = {"resources": [{"kind": "stream", "name": f"s{next(numbers)}"}]}
            request(method, path, body=body)
        return request(method, path, **options)

    monkeypatch.setattr(service, "request", request_late)
    with pytest.raises(ApplyStopped, match="other clients are applying the project project; apply it again"):
        applied(service, project)
    assert service.get("/streams")["items"] == []


def test_a_stream_that_others_use_stays(service, project):
    applied(service, written(project, {"other.yaml": OTHER}))
    service.post("/patterns", {"stream": "other", "text": "PATTERN by_hand EVENT A a"})
    (project / "other.yaml").unlink()
    plan = plan_of(service, project, is_pruned=True)
    assert [change.title for change in plan.work] == ["pattern far", "constraint set other"]
    assert {change.why for change in plan.changes if change.title == "stream other"} == {"in use by pattern by_hand"}
    assert applied(service, project, is_pruned=True) == [("gone", "pattern far"), ("gone", "constraint set other")]
    service.delete("/patterns/by_hand")
    assert applied(service, project, is_pruned=True) == [("gone", "stream other")]


@pytest.mark.parametrize("is_own", [False, True], ids=["by hand", "own"])
def test_what_a_pattern_that_stays_uses_stays(service, project, is_own):
    """Tables, calendars and streams are kept, and later deletions are made."""
    text = "PATTERN h EVENT SEQ(A a [v > lookup(limits, k).most], B b) WITHIN 2 business hours OF de"
    rules = {
        "used.yaml": "{kind: stream, name: used, key: data.k}\n---\n{kind: stream, name: zz}\n---\n"
        "{kind: calendar, name: de, zone: UTC, hours: {mon-fri: '09:00-17:00'}}\n---\n"
        "{kind: table, name: limits, key: sensor, file: limits.csv}",
        "limits.csv": "sensor,most\ns1,5\n",
    }
    applied(service, written(project, rules))
    if is_own:
        applied(service, written(project, {"h.yaml": f"{{kind: pattern, name: h, stream: used, text: '{text}'}}"}))
    else:
        service.post("/patterns", {"stream": "used", "text": text})
    for name in rules:
        (project / name).unlink()
    plan = plan_of(service, project, is_pruned=True)
    kept = {change.title for change in plan.changes if change.why == "in use by pattern h"}
    assert kept == {"stream used", "calendar de", "table limits"}
    assert applied(service, project, is_pruned=True) == [("gone", "stream zz")]
    assert applied(service, project, is_pruned=True) == []


def test_a_workflow_that_a_stream_made_by_hand_follows_stays(service, project):
    flow = (
        "{kind: workflow, name: flow, model: {tree: {sequence: [A, B]}}}\n---\n{kind: stream, name: zz, workflow: flow}"
    )
    applied(service, written(project, {"flow.yaml": flow}))
    service.post("/streams", {"name": "by_hand"})
    service.put("/streams/by_hand/workflow", {"workflow": "flow"})
    (project / "flow.yaml").unlink()
    assert applied(service, project, is_pruned=True) == [("gone", "workflow of the stream zz"), ("gone", "stream zz")]
    (change,) = [change for change in plan_of(service, project, is_pruned=True).changes if change.name == "flow"]
    assert change.why == "in use by workflow of the stream by_hand"
    service.delete("/streams/by_hand/workflow")
    assert applied(service, project, is_pruned=True) == [("gone", "workflow flow")]


def test_a_sink_is_pruned_together_with_its_stream(service, project):
    sink = "{kind: sink, name: topic, stream: t, kafka: {servers: '8.8.8.8:9092', topic: found}}"
    applied(service, written(project, {"t.yaml": f"{{kind: stream, name: t}}\n---\n{sink}"}))
    (project / "t.yaml").unlink()
    assert applied(service, project, is_pruned=True) == [("gone", "sink topic"), ("gone", "stream t")]


def test_a_retired_operator_is_refused_before_anything_is_done(service, project):
    applied(service, project)
    service.post("/patterns/bought/retire", {})
    with pytest.raises(ProjectRefused, match=r"pattern bought: it is retired; delete it first, or take another name"):
        plan_of(service, project)


def test_a_secret_that_is_not_set_stops_and_says_what_is_not_made(service, project):
    hooks = (
        "{kind: webhook, name: k, url: 'https://8.8.8.8', headers: {A: {env: NOT_SET_HERE}}}\n---\n"
        "{kind: webhook, name: m, url: 'https://8.8.8.8'}"
    )
    written(project, {"hooks.yaml": hooks})
    with pytest.raises(ApplyStopped, match=r"NOT_SET_HERE is not set\n2 of 4 .* not made: webhook k, webhook m"):
        applied(service, project)


JOIN = """
{kind: stream, name: a}
---
{kind: stream, name: b}
---
kind: join
name: ab
inputs: [{stream: a}, {stream: b}]
window: 1 h
return: {a: id(a), b: id(b)}
"""


def test_a_project_with_a_join_is_pruned(service, tmp_path):
    folder = written(tmp_path / "joined", {"ab.yaml": JOIN})
    applied(service, folder)
    assert plan_of(service, folder, is_pruned=True).changes == []
    (folder / "ab.yaml").write_text(JOIN.partition("---\nkind")[0])
    assert applied(service, folder, is_pruned=True) == [("gone", "join ab"), ("gone", "stream ab")]
    assert [stream["name"] for stream in service.get("/streams")["items"]] == ["a", "b"]


def test_an_empty_folder_is_no_project(call, server_url, stores, tmp_path):
    with pytest.raises(ProjectRefused, match="has no documents"):
        read_project(tmp_path)
    written(tmp_path / "ab", {"ab.yaml": JOIN, "name.yaml": "{kind: project, name: shop}"})
    with serving(create_app(settings_for(server_url))) as url:
        assert call("apply", str(tmp_path / "ab"), "--url", url)[0] == 0
        (tmp_path / "ab" / "ab.yaml").unlink()
        status, out, err = call("apply", str(tmp_path / "ab"), "--prune", "--url", url)
        assert (status, out) == (2, "")
        assert "deletes the streams a, ab, b; nothing was changed. Say --yes" in " ".join(
            re.sub(r"[│╭╰─]", " ", err).split()
        )
        status, out, _ = call("apply", str(tmp_path / "ab"), "--prune", "--yes", "--url", url)
        assert (status, out.splitlines()[0], len(out.splitlines())) == (0, "- join ab: deleted", 4)
        assert call("apply", str(tmp_path / "ab"), "--prune", "--yes", "--url", url)[:2] == (0, "")
        with Client(url, patience_s=60) as client:
            assert client.get("/streams")["items"] == client.get("/projects")["items"] == []


def test_a_plan_shows_the_first_lines_of_a_long_text(call, server_url, stores, tmp_path):
    steps = "\n".join(f"    A{number} a{number}," for number in range(40))
    text = f"  PATTERN p\n  EVENT SEQ(\n{steps}\n    B b)"
    (tmp_path / "p.yaml").write_text(
        f"kind: stream\nname: s\n---\nkind: pattern\nname: p\nstream: s\ntext: |\n{text}\n"
    )
    with serving(create_app(settings_for(server_url))) as url:
        _, out, _ = call("apply", str(tmp_path), "--plan", "--url", url)
        _, document, _ = call("apply", str(tmp_path), "--plan", "--json", "--url", url)
    lines = out.splitlines()
    number = len(orjson.loads(document.splitlines()[1])["difference"])
    assert number > 40
    assert lines[-1] == f"    and {number - 20} more lines; --json has all"
    assert len(lines) - lines.index("+ pattern p: new") == 22
