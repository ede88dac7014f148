"""The state that a document of an operator wants is reached, or refused by the plan."""

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
