"""``forestall backup`` and ``restore``: what they say of a service that is stopped, and of one that runs."""

import sys

import pytest

from service import Stores
from service.cli import main
from service.processes.data_folder import take_folder
from service.stores import ApiKey
from streams import StreamDeclaration
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def stores(client, server_url, folder):
    """The stores of a stopped service with a stream."""
    stores = Stores(client, server_url, settings_for(server_url, data_dir=folder))
    stores.registry.declare_stream(StreamDeclaration(name="orders", key="data.id"))
    return stores


@pytest.fixture
def run(stores, server_url, folder, monkeypatch, capsys):
    """Runs ``forestall`` in the folder above the data folder of the service; returns (status, errors)."""
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("FORESTALL_REDIS_URL", server_url)
    monkeypatch.setenv("FORESTALL_DATA_DIR", str(folder))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["forestall", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, " ".join(capsys.readouterr().err.split())

    return run


def test_the_data_of_a_service_that_runs_is_not_backed_up(run, folder):
    with take_folder(folder, ""):
        status, errors = run("backup", "file")
    assert status
    assert "is in use by another forestall process: stop the service first" in errors


def test_the_commands_say_what_was_done(run, tmp_path):
    for arguments, status, words in (
        (["backup", "file"], 0, "keep it from others"),
        (["backup", "file"], 2, "--replace overwrites it for good"),
        (["backup", "file", "--replace"], 0, "keep it from others"),
        (["backup", "data"], 2, "data is a folder; name the file to write, such as data/orders.backup"),
        (["backup", "data", "--replace"], 2, "data is a folder; name the file"),
        (["restore", "file"], 2, "--replace deletes it for good"),
        (["restore", "file", "--replace"], 0, "start the service again"),
    ):
        found = run(*arguments)
        assert (found[0], words in found[1]) == (status, True)
    assert (tmp_path / "file").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("auth", ["auto", "keys"])
@pytest.mark.parametrize("is_with_key", [False, True])
def test_a_restore_without_api_keys_says_that_the_service_is_open(run, stores, monkeypatch, is_with_key, auth):
    key = ApiKey(id="ab", name="me", digest="d", scopes=("admin",), streams=None, created_us=1)
    if is_with_key:
        stores.keys.add(key)
    run("backup", "file")
    if not is_with_key:
        stores.keys.add(key)
    monkeypatch.setenv("FORESTALL_AUTH", auth)
    status, errors = run("restore", "file", "--replace")
    assert (status, " keys of Redis and " in errors) == (0, True)
    is_open = "warning: the backup has no API keys, so the service is open" in errors
    assert is_open == (auth == "auto" and not is_with_key)


@pytest.mark.parametrize("has_feeds", [False, True])
def test_a_backup_of_a_service_with_feeds_says_that_their_folder_is_missing(run, folder, has_feeds):
    if has_feeds:
        (folder / "feeds" / "orders-folder-in").mkdir(parents=True)
    status, errors = run("backup", "file")
    assert (status, "data/feeds: copy this folder, too" in errors) == (0, has_feeds)
