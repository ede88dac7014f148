"""A real server for the tests of this folder."""

import os

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


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("FORESTALL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("FORESTALL_DATA_DIR", str(tmp_path / "data"))
