"""A console over the API on a real port and a real Redis, without Spark: a test puts results into the store."""

import httpx
import pytest

from api import create_app
from service import Stores
from tests.builders.api import serving
from tests.builders.browser import console_of
from tests.builders.console import Visitor
from tests.builders.service import HandClock, empty_client, private_server, settings_for

KEY = "a-key-for-tests"


@pytest.fixture(scope="session")
def server_url(tmp_path_factory):
    with private_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def settings(server_url):
    return settings_for(server_url, api_key=KEY, webhooks={"allow_private_targets": True})


@pytest.fixture(scope="session")
def api_url(settings):
    with serving(create_app(settings, HandClock())) as url:
        yield url


@pytest.fixture(scope="session")
def address(api_url):
    with console_of(api_url) as address:
        yield address


@pytest.fixture
def stores(server_url, settings):
    with empty_client(server_url) as client:
        yield Stores(client, server_url, settings)


@pytest.fixture
def http(api_url, stores):
    """A client of the API with all rights."""
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=f"{api_url}/v1", headers=headers, timeout=300.0, verify=False) as client:
        yield client


@pytest.fixture
def visitor(address, http):
    """A browser's requests, before it has logged in."""
    with Visitor(address) as visitor:
        yield visitor


@pytest.fixture
def reader(visitor):
    """A visitor who has logged in with all rights."""
    visitor.log_in(KEY)
    return visitor


@pytest.fixture
def orders(http):
    """The stream ``orders`` with a pattern."""
    assert http.post("/streams", json={"name": "orders", "end_events": ["Z"]}).status_code == 201
    assert http.post("/patterns", json={"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)"}).status_code == 201
    return http
