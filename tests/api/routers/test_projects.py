"""Lists of the resources of projects: a change with a condition is made only to the list that was read."""

import pytest

from tests.builders.api import tag

pytestmark = pytest.mark.redis

PATH = "/v1/projects/shop"


def put(http, *streams, **headers):
    body = {"resources": [{"kind": "stream", "name": name} for name in streams]}
    return http.put(PATH, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def names(http):
    return [resource["name"] for resource in http.get(PATH).json()["resources"]]


def test_a_list_that_somebody_else_has_changed_is_not_replaced(orders, check_problem, clock):
    first = put(orders, "a", If_None_Match="*")
    assert first.status_code == 200
    assert tag(first) == tag(orders.get(PATH))
    problem = check_problem(put(orders, "b", If_None_Match="*"), 412, "precondition-failed")
    assert problem["etag"] == tag(first).strip('"')
    second = put(orders, "a", "b", If_Match=orders.get(PATH).headers["etag"])
    assert second.status_code == 200
    check_problem(put(orders, "c", If_Match=tag(first)), 412, "precondition-failed")
    assert names(orders) == ["a", "b"]
    clock.time_us += 1_000_000
    assert tag(put(orders, "b", "a")) == tag(second)  # the time of a change is no part of the list


def test_an_empty_list_removes_the_project_under_the_same_condition(orders, check_problem):
    first = tag(put(orders, "a"))
    put(orders, "b")
    check_problem(put(orders, If_Match=first), 412, "precondition-failed")
    assert names(orders) == ["b"]
    assert put(orders, If_Match=tag(orders.get(PATH))).json()["resources"] == []
    check_problem(orders.get(PATH), 404, "unknown-project")
    check_problem(put(orders, "a", If_Match="*"), 412, "precondition-failed")
    assert put(orders).status_code == 200
