"""Patterns that the service would refuse: a plan refuses them, and a run and a test have a notice."""

import pytest

from service.client import Client
from tests.builders.projects import written

pytestmark = pytest.mark.redis


IMPOSSIBLE = {
    "all.yaml": """
{kind: stream, name: s}
---
{kind: constraints, name: s, constraints: [{exclusive: [A, B]}]}
---
{kind: pattern, name: p, stream: s, text: "PATTERN p EVENT SEQ(A a, B b)"}
---
{kind: pattern, name: off, stream: s, constraints: off, text: "PATTERN off EVENT SEQ(A a, B b)"}
---
{kind: pattern, name: fine, stream: s, text: "PATTERN fine EVENT SEQ(A a, C c)"}
---
{kind: test, name: t, events: A1, expect: {deviations: []}}
""",
    "s.jsonl": '{"id": "1", "type": "A", "time": "2026-01-01T00:00:00Z", "key": "k", "data": {}}\n'
    '{"id": "2", "type": "B", "time": "2026-01-01T00:01:00Z", "key": "k", "data": {}}\n'
    '{"id": "3", "type": "C", "time": "2026-01-01T00:02:00Z", "key": "k", "data": {}}\n',
}


def test_a_run_and_a_test_name_a_pattern_that_constraints_make_impossible(call, tmp_path):
    project = str(written(tmp_path / "p", IMPOSSIBLE))
    for command in (("run", project, "--events", f"{project}/s.jsonl"), ("test", project)):
        status, _, err = call(*command)
        assert status == 0
        (notice,) = [line for line in err.splitlines() if "never match" in line]
        assert notice.startswith("notice: p: the pattern can never match: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SEQ(A a, B b)", "the pattern can never match: "),
        ("SEQ(A a, C c) WITHIN 2 business days of nowhere", "no calendar is called 'nowhere'"),
        ("A a [lookup(nowhere, v).w > 2]", "no table is called 'nowhere'"),
    ],
)
def test_a_plan_refuses_a_pattern_that_the_service_would_refuse(call, stores, api_url, tmp_path, text, problem):
    document = f'{{kind: pattern, name: p, stream: s, text: "PATTERN p EVENT {text}"}}\n'
    stream, constraints, _ = IMPOSSIBLE["all.yaml"].split("---\n", 2)
    project = str(written(tmp_path / "p", {"all.yaml": f"{stream}---\n{constraints}---\n{document}"}))
    for words in (("--plan",), ()):
        status, _, err = call("apply", project, *words, "--url", api_url)
        assert status == 2, err
        assert "all.yaml:6: pattern p: " in err
        assert problem in err
    with Client(api_url, patience_s=60) as service:
        assert service.get("/streams")["items"] == []


def test_a_plan_leaves_the_end_of_traces_to_the_service(call, stores, api_url, tmp_path):
    document = '{kind: pattern, name: p, stream: s, text: "PATTERN p EVENT SEQ(A a, NOT B b)"}\n'
    project = str(written(tmp_path / "p", {"all.yaml": f"{{kind: stream, name: s}}\n---\n{document}"}))
    with Client(api_url, patience_s=60) as service:
        service.request("POST", "/streams", body={"name": "s"})
        service.request("POST", "/constraints?stream=s", body=["end(End)"])
    assert call("apply", project, "--plan", "--url", api_url)[0] == 1
    assert call("apply", project, "--url", api_url)[0] == 0
