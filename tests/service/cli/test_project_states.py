"""The state that a document of an operator wants is reached, or refused by the plan."""

from typing import Any

import pytest

from service.client import Client
from service.errors import ProjectRefused
from tests.builders.projects import applied, plan_of, written

pytestmark = pytest.mark.redis

DOCUMENTS = {
    "pattern": "{kind: pattern, name: o, stream: s, state: STATE, text: 'PATTERN o EVENT SEQ(A a, B b) WITHIN 1 d'}",
    "join": "{kind: join, name: o, inputs: [{stream: s, as: a}, {stream: t, as: b}], window: 1 d, "
    "return: {v: a.v}, state: STATE}",
    "aggregate": "{kind: aggregate, name: o, of: s, by: [key], values: {n: count()}, window: 1 d, state: STATE}",
}
PATHS = {"pattern": "/patterns/o", "join": "/joins/o", "aggregate": "/aggregates/o"}
SUSPENSION: dict[str, Any] = {"id": "x", "pattern": "o", "version": 1, "stream": "s", "reason": "it cost too much"}
SUSPENSION |= {"time": "2026-01-01T00:00:00Z", "key": "k", "event": "e", "event_type": "A", "shard": 0}
SUSPENSION["budget"] = dict.fromkeys(("per_event", "per_trace", "traces", "forgiven_after", "in_all"), 9)
REASON = "it cannot be a draft again; give the draft another name"


@pytest.fixture
def service(api_url, stores):
    with Client(api_url, patience_s=60) as found:
        yield found


@pytest.fixture(params=DOCUMENTS)
def kind(request):
    return request.param


@pytest.fixture
def folder(kind, tmp_path):
    """Writes the document of the operator with a state and a window; returns the project's folder."""

    def write(state: str, window: str = "1 d"):
        operator = DOCUMENTS[kind].replace("STATE", state).replace("1 d", window)
        text = f"{{kind: stream, name: s}}\n---\n{{kind: stream, name: t}}\n---\n{operator}"
        return written(tmp_path / "project", {"rules.yaml": text})

    return write


def version_of(service, kind):
    answer = service.get(PATHS[kind])
    return answer["state"], answer["version"]


@pytest.mark.parametrize("before", ["active", "paused"])
@pytest.mark.parametrize("window", ["1 d", "2 d"])
def test_an_operator_that_ran_is_no_draft_again(service, kind, folder, before, window):
    applied(service, folder(before))
    with pytest.raises(ProjectRefused, match=rf"rules.yaml:5: {kind} o: {REASON}") as refused:
        plan_of(service, folder("draft", window))
    assert {f"    -state: {before}", "    +state: draft"} <= set(str(refused.value).splitlines())
    assert version_of(service, kind) == (before, 1)


@pytest.mark.parametrize(("window", "version"), [("1 d", 1), ("2 d", 2)])
def test_a_draft_is_paused(service, kind, folder, window, version):
    applied(service, folder("draft"))
    assert version_of(service, kind) == ("draft", 1)
    assert applied(service, folder("paused", window)) == [("changed", f"{kind} o")]
    assert version_of(service, kind) == ("paused", version)
    assert applied(service, folder("paused", window)) == []


def test_a_draft_is_changed_as_a_draft(service, kind, folder):
    applied(service, folder("draft"))
    assert applied(service, folder("draft", "2 d")) == [("changed", f"{kind} o")]
    assert version_of(service, kind)[0] == "draft"
    assert applied(service, folder("draft", "2 d")) == []


def test_a_paused_operator_is_never_active(service, kind, folder, stores):
    def controls():
        return {entry.kind.value for entry in stores.log.read_range(0)} - {"stream-on"}

    applied(service, folder("paused"))
    assert (version_of(service, kind), controls()) == (("paused", 1), set())
    assert applied(service, folder("paused", "2 d")) == [("changed", f"{kind} o")]
    assert (version_of(service, kind), controls()) == (("paused", 2), set())
    assert applied(service, folder("paused", "2 d")) == []


def test_an_active_operator_is_changed_and_paused_at_once(service, kind, folder, monkeypatch):
    applied(service, folder("active"))
    request, posted = Client.request, []

    def counting(client, method, path, **options):
        posted.extend([path] * (method != "GET"))
        return request(client, method, path, **options)

    monkeypatch.setattr(Client, "request", counting)
    assert applied(service, folder("paused", "2 d")) == [("changed", f"{kind} o")]
    assert posted == [PATHS[kind].removesuffix("/o")]
    assert version_of(service, kind) == ("paused", 2)


@pytest.mark.parametrize(
    ("severity", "window", "version"), [("high", "1 d", 1), ("medium", "2 d", 2), ("high", "2 d", 2)]
)
def test_a_changed_operator_is_resumed(service, kind, folder, severity, window, version):
    applied(service, folder("paused"))
    assert applied(service, folder(f"active, severity: {severity}", window)) == [("changed", f"{kind} o")]
    assert version_of(service, kind) == ("active", version)
    assert applied(service, folder(f"active, severity: {severity}", window)) == []


@pytest.mark.parametrize("severity", ["medium", "high"])
def test_a_suspended_operator_is_paused_with_another_version_only(service, kind, folder, stores, severity):
    applied(service, folder("active"))
    assert stores.registry.suspend({**SUSPENSION, "operator": kind})
    paused = f"paused, severity: {severity}"
    with pytest.raises(ProjectRefused, match=rf"rules.yaml:5: {kind} o: it is suspended, so it cannot be paused"):
        plan_of(service, folder(paused))
    assert version_of(service, kind) == ("suspended", 1)
    assert applied(service, folder(paused, "2 d")) == [("changed", f"{kind} o")]
    assert version_of(service, kind) == ("paused", 2)


def test_a_disabled_webhook_is_never_enabled(service, tmp_path, monkeypatch):
    hook = "{kind: webhook, name: w, url: 'https://8.8.8.8/hook', enabled: false}"
    mail = "{kind: sink, name: m, email: {host: 8.8.8.8, sender: a@b.org, recipients: [c@d.org]}, enabled: false}"
    project = written(tmp_path / "project", {"hooks.yaml": f"{hook}\n---\n{mail}"})
    monkeypatch.setattr(Client, "patch", None)
    assert applied(service, project) == [("new", "webhook w"), ("new", "sink m")]
    for path in ("/webhooks", "/sinks"):
        (receiver,) = service.get(path)["items"]
        assert (receiver["enabled"], receiver["disabled_because"]) == (False, "by request")
    assert applied(service, project) == []
