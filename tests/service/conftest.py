"""A real server for the tests of this folder, started when a test first asks."""

from itertools import count

import pytest

from service import Stores
from tests.builders.service import HandClock, empty_client, private_server, settings_for


@pytest.fixture(scope="session")
def server_url(tmp_path_factory):
    with private_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def client(server_url):
    with empty_client(server_url) as client:
        yield client


@pytest.fixture
def settings(server_url):
    return settings_for(server_url, webhooks={"allow_private_targets": True, "timeout_s": 5.0})


@pytest.fixture
def stores(client, server_url, settings):
    return Stores(client, server_url, settings)


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def other(client, server_url, settings):
    """The stores of another process."""
    return Stores(client, server_url, settings)


@pytest.fixture
def late():
    """Makes the first commit of a book late: the given change comes first."""

    def make(book, change):
        commit, calls = book._commit, count()

        def commit_late(**given):
            if next(calls) == 0:
                change()
            return commit(**given)

        book._commit = commit_late

    return make
