"""Requests that are read without the framework are answered as by the framework."""

from typing import Any

import pytest

from api.access.direct import DirectRoute

AGGREGATE = {
    "name": "failed",
    "of": "logins",
    "by": ["user"],
    "values": {"n": "count()"},
    "window": "1 h",
    "having": "n > 100",
    "ask": {"by": ["user"]},
}
PATH = "/v1/aggregates/failed/ask"
JSON = {"content-type": "application/json"}
REQUESTS = {
    "usual": (PATH, b'{"by": ["user"], "where": {"user": "u"}, "window": "1 min"}', JSON, "pipeline-not-running"),
    "no members": (PATH, b"{}", JSON, "pipeline-not-running"),
    "charset": (PATH, b"{}", {"content-type": "application/json; charset=utf-8"}, "pipeline-not-running"),
    "other operator": ("/v1/aggregates/a/b/ask", b"{}", JSON, "unknown-operator"),
    "unknown attribute": (PATH, b'{"by": ["city"]}', JSON, "operator-refused"),
    "query": (f"{PATH}?by=user", b"{}", JSON, "wrong-shape"),
    "unknown member": (PATH, b'{"bi": ["user"]}', JSON, "wrong-shape"),
    "other type": (PATH, b'{"by": 3}', JSON, "wrong-shape"),
    "number for a flag": (PATH, b'{"explain": 1}', JSON, "wrong-shape"),
    "list": (PATH, b"[]", JSON, "wrong-shape"),
    "twice": (PATH, b'{"by": [], "by": []}', JSON, "wrong-shape"),
    "long integer": (PATH, b'{"where": {"user": 123456789012345678901}}', JSON, "wrong-shape"),
    "no JSON": (PATH, b'{"by": [', JSON, "malformed-body"),
    "no UTF-8": (PATH, b'{"by": ["\xff"]}', JSON, "malformed-body"),
    "compressed": (PATH, b"{}", JSON | {"content-encoding": "gzip"}, "unsupported-media-type"),
    "other form": (PATH, b"{}", {"content-type": "text/plain"}, "unsupported-media-type"),
    "nothing": (PATH, b"", JSON, "wrong-shape"),
    "large": (PATH, b'{"by": ["user"' + b" " * 20_000 + b"]}", JSON, "pipeline-not-running"),
}


def shown(answer):
    """An answer without its id."""
    return answer.status_code, {name: value for name, value in answer.json().items() if name != "instance"}


@pytest.mark.parametrize(("path", "body", "headers", "code"), REQUESTS.values(), ids=REQUESTS)
def test_the_framework_answers_the_same(http, monkeypatch, path, body, headers, code):
    http.post("/v1/streams", json={"name": "logins", "key": "data.user"})
    http.post("/v1/aggregates", json=AGGREGATE)
    directly = http.post(path, content=body, headers=headers)
    monkeypatch.setattr(DirectRoute, "answer", left)
    assert shown(directly) == shown(http.post(path, content=body, headers=headers))
    assert directly.json()["code"] == code


async def left(_route, _request):
    """Leave a request to the framework."""


def test_a_usual_request_is_read_without_the_framework(http, monkeypatch):
    answers, answer = list[Any](), DirectRoute.answer

    async def noted(route, request):
        answers.append("refused")  # unless it answers
        answers[-1] = await answer(route, request)
        return answers[-1]

    monkeypatch.setattr(DirectRoute, "answer", noted)
    for path, body, headers, _ in REQUESTS.values():
        http.post(path, content=body, headers=headers)
    usual = [name for name, answer in zip(REQUESTS, answers, strict=True) if answer is not None]
    assert usual == ["usual", "no members", "other operator", "unknown attribute"]


def test_a_restricted_key_is_checked_by_the_framework(http, holder, check_problem):
    http.post("/v1/streams", json={"name": "logins", "key": "data.user"})
    http.post("/v1/streams", json={"name": "others", "key": "data.user"})
    http.post("/v1/aggregates", json=AGGREGATE)
    check_problem(holder("read", streams=["logins"]).post(PATH, json={}), 503, "pipeline-not-running")
    check_problem(holder("read", streams=["others"]).post(PATH, json={}), 404, "unknown-operator")
    check_problem(holder("ingest").post(PATH, json={}), 403, "forbidden")
