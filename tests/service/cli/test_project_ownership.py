"""Which resources a project owns, and what is deleted when its documents no longer name them."""

import re

import pytest

from api import create_app
from service.client import Client
from service.errors import ProjectRefused
from service.projects import read_project
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
