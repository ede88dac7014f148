"""A real server for the tests of this folder, started when a test first asks."""

import pytest

from tests.builders.service import empty_client, private_server


@pytest.fixture(scope="session")
def server_url(tmp_path_factory):
    with private_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def client(server_url):
    with empty_client(server_url) as client:
        yield client
