"""The application on a real port and a real Redis, both started when a test first asks."""

from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from api import create_app
from service import Stores
from tests.builders.api import check_code, serving
from tests.builders.service import HandClock, empty_client, private_server, settings_for

KEY = "a-key-for-tests"
PATIENCE_S = 300.0  # the first request that matches compiles the kernels


def pytest_itemcollected(item: Any) -> None:
    """Name the operation in the id of its test: pytest 9.2 leaves it out, and of tests with one id workers run one."""
    operation = getattr(item, "operation_label", None)
    if operation and item.id.params is None:
        item._id = item.id.with_params(operation)


@pytest.fixture(scope="session")
def server_url(tmp_path_factory):
    with private_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def shared_clock():
    return HandClock()


@pytest.fixture
def clock(shared_clock):
    """The clock of the running application, set to the beginning."""
    shared_clock.time_us = HandClock().time_us
    return shared_clock


@pytest.fixture(scope="session")
def settings(server_url):
    limits = {"max_body_bytes": 100_000, "max_batch_events": 50, "max_pattern_chars": 500}
    limits |= {"max_model_bytes": 50_000, "max_automaton_states": 100, "max_table_bytes": 150_000}
    return settings_for(server_url, api_key=KEY, limits=limits, webhooks={"allow_private_targets": True})


@pytest.fixture(scope="session")
def api_url(settings, shared_clock):
    with serving(create_app(settings, shared_clock)) as url:
        yield url


@pytest.fixture
def stores(server_url, settings):
    with empty_client(server_url) as client:
        yield Stores(client, server_url, settings)


@pytest.fixture
def stranger(api_url, stores, clock):
    """A client without the key."""
    hooks = {"response": [check_code]}
    with httpx.Client(base_url=api_url, timeout=PATIENCE_S, verify=False, event_hooks=hooks) as client:
        yield client


@pytest.fixture
def http(stranger):
    """A client with the key; paths begin with /v1."""
    stranger.headers["Authorization"] = f"Bearer {KEY}"
    return stranger


@pytest.fixture
def orders(http):
    """A client of a service that has the stream ``orders``."""
    answer = http.post("/v1/streams", json={"name": "orders", "key": "data.id", "end_events": ["Z"]})
    assert answer.status_code == 201
    return http


@pytest.fixture
def holder(http, api_url):
    """Makes a key with some scopes, and maybe for some streams only; gives a client that sends it."""
    with ExitStack() as stack:

        def made(*scopes, streams=None, **changes):
            wanted = {"name": "holder", "scopes": list(scopes), "streams": streams, **changes}
            answer = http.post("/v1/keys", json=wanted)
            assert answer.status_code == 201, answer.text
            headers = {"Authorization": f"Bearer {answer.json()['token']}"}
            return stack.enter_context(
                httpx.Client(base_url=api_url, headers=headers, timeout=PATIENCE_S, verify=False)
            )

        yield made


@pytest.fixture
def check_problem():
    """Checks that an answer is a problem document, and gives its body."""

    def check(answer, status, code):
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        body = answer.json()
        assert (body["status"], body["code"], body["type"]) == (status, code, f"urn:forestall:problem:{code}")
        assert body["title"]
        assert body["detail"]
        return body

    return check
