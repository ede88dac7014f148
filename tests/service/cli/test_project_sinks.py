"""Sinks in a project: made, compared, exported, changed and deleted."""

import pytest

from service.client import Client
from service.errors import ProjectRefused
from service.projects import export_project
from tests.builders.projects import applied, plan_of, written

pytestmark = pytest.mark.redis


@pytest.fixture
def service(api_url, stores):
    with Client(api_url, patience_s=60) as found:
        yield found


def test_sinks_are_the_same_when_they_come_back(service, tmp_path, monkeypatch):
    monkeypatch.setenv("MAIL_SECRET", "secret word")
    rules = """
{kind: stream, name: orders, key: data.order}
---
{kind: sink, name: topic, kafka: {servers: '8.8.8.8:9092', topic: found, options: {sasl.username: f}},
 kinds: [alert, deviation], stream: orders, secret: {env: MAIL_SECRET}}
---
{kind: sink, name: mail, secret: {env: MAIL_SECRET}, digest: {every: 10 min},
 email: {host: 8.8.8.8, user: forestall, sender: f@example.org, recipients: [ann@example.org]}}
"""
    folder = written(tmp_path / "project", {"rules.yaml": rules})
    assert {title for _, title in applied(service, folder)} == {"stream orders", "sink topic", "sink mail"}
    assert applied(service, folder) == []
    export_project(service, tmp_path / "exported")
    assert plan_of(service, tmp_path / "exported", is_pruned=True).changes == []
    text = "".join(one.read_text() for one in (tmp_path / "exported").rglob("*.yaml"))
    assert ("TOPIC_SECRET" in text, "MAIL_SECRET" in text, "secret word" in text) == (True, True, False)
    changed = rules.replace("topic: found", "topic: other").replace("host: 8.8.8.8", "host: 8.8.4.4")
    written(folder, {"rules.yaml": changed})
    assert applied(service, folder) == [("changed", "sink topic"), ("changed", "sink mail")]
    assert applied(service, folder) == []
    written(folder, {"rules.yaml": rules.replace("kafka: {", "parquet: {path: a}, kafka: {")})
    with pytest.raises(ProjectRefused, match="a sink has one of parquet, email, kafka"):
        plan_of(service, folder)
    written(folder, {"rules.yaml": rules.partition("---")[0]})
    assert {title for _, title in applied(service, folder, is_pruned=True)} == {"sink mail", "sink topic"}
