"""``forestall keys`` against the real API, and the first key that ``forestall serve`` makes."""

import io
import stat

import orjson
import pytest
from rich.console import Console

from api import create_app
from service.access.keyring import is_token
from service.cli.serve import tell_first_key
from service.client import AccessDenied, Client
from tests.builders.api import serving
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis

OPERATOR = "the-key-of-the-environment"


@pytest.fixture
def keys(call, server_url, stores, monkeypatch):
    """Runs ``forestall keys`` against an API with the key of the environment; returns (status, output, errors)."""
    monkeypatch.setenv("FORESTALL_API_KEY", OPERATOR)
    with serving(create_app(settings_for(server_url, api_key=OPERATOR))) as url:
        yield lambda *arguments: call("keys", *arguments, "--url", url)


def made(keys, *arguments):
    status, out, _ = keys("create", *arguments, "--json")
    assert status == 0
    return orjson.loads(out)


def test_the_token_is_what_is_printed(keys):
    status, out, errors = keys("create", "shop", "--scope", "ingest", "--scope", "read", "--stream", "orders")
    assert status == 0
    assert is_token(out.strip())
    assert "(shop); its token is shown only once" in errors
    assert out.strip() not in errors


def test_a_key_may_expire(keys):
    key = made(keys, "short", "--scope", "read", "--days", "1.5")
    assert key["expires_at"] > key["created_at"]
    assert (key["scopes"], key["streams"]) == (["read"], None)


def test_keys_are_listed(keys):
    first = made(keys, "first", "--scope", "read", "--stream", "orders")
    made(keys, "[red]second", "--scope", "admin")
    status, out, _ = keys("list")
    assert status == 0
    assert first["id"] in out
    assert "[red]second" in out
    listed = [orjson.loads(line) for line in keys("list", "--json")[1].splitlines()]
    assert [key["name"] for key in listed] == ["first", "[red]second"]
    assert "token" not in listed[0]


@pytest.mark.parametrize("grace", ["inf", "1e400", "nan", "-1", "soon"])
def test_a_grace_that_is_no_duration_is_refused(keys, grace):
    status, _, errors = keys("rotate", "any", f"--grace={grace}")
    assert status == 2
    assert "is not a duration" in errors


def test_a_key_is_rotated_and_revoked(keys):
    key = made(keys, "shop", "--scope", "admin")
    status, out, _ = keys("rotate", key["id"], "--grace", "60")
    assert status == 0
    assert is_token(out.strip())
    assert out.strip() != key["token"]
    status, _, _ = keys("list", "--json", "--api-key", key["token"])
    assert status == 0
    assert keys("revoke", key["id"])[2] == f"the API key {key['id']} is revoked\n"
    assert orjson.loads(keys("list", "--json")[1])["revoked"] is True
    status, _, errors = keys("list", "--api-key", out.strip())
    assert status == 2
    assert "revoked" in errors


def test_what_is_refused_is_one_sentence(keys):
    status, _, errors = keys("revoke", "nobody")
    assert (status, errors.count("\n")) == (2, 1)
    assert "there is no API key with the id 'nobody'\n" in errors


def test_a_key_is_revoked_by_its_id_and_not_by_its_name(keys):
    first, second = (made(keys, name, "--scope", "read") for name in ("me", "you"))
    _, _, errors = keys("revoke", "me")
    assert f"there is no API key with the id 'me', but {first['id']} has this name\n" in errors
    third = made(keys, "you", "--scope", "read")
    ids = f"{second['id']}, {third['id']}"
    assert f"there is no API key with the id 'you', but {ids} have this name\n" in keys("rotate", "you")[2]


def test_the_first_key_is_told_once_on_the_terminal(server_url, stores, tmp_path):
    settings = settings_for(server_url, auth="keys", data_dir=tmp_path)
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=300, soft_wrap=True, color_system=None)
    tell_first_key(settings, server_url, console)
    token = terminal.getvalue().strip().rpartition(" ")[2]
    assert is_token(token)
    tell_first_key(settings, server_url, console)
    assert terminal.getvalue().count("first API key") == 1
    with serving(create_app(settings)) as url:
        with Client(url, token) as client:
            assert client.get("/keys")["items"][0]["name"] == "bootstrap"
        with Client(url) as stranger, pytest.raises(AccessDenied, match="401"):
            stranger.get("/keys")


def test_where_there_is_no_terminal_the_first_key_is_in_a_file(server_url, stores, tmp_path):
    settings = settings_for(server_url, api_host="0.0.0.0", data_dir=tmp_path)
    log = io.StringIO()
    tell_first_key(settings, server_url, Console(file=log, width=300))
    file = tmp_path / "first-api-key"
    assert is_token(file.read_text().strip())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() not in log.getvalue()
    assert "first-api-key" in log.getvalue()


@pytest.mark.parametrize("changes", [{}, {"auth": "off"}, {"auth": "keys", "api_key": OPERATOR}])
def test_where_none_is_needed_no_key_is_made(server_url, stores, tmp_path, changes):
    errors = io.StringIO()
    tell_first_key(settings_for(server_url, data_dir=tmp_path, **changes), server_url, Console(file=errors))
    assert errors.getvalue() == ""
    assert stores.keys.all() == []


def test_a_call_without_a_key_says_how_a_command_gets_one(keys, monkeypatch):
    monkeypatch.delenv("FORESTALL_API_KEY")
    status, _, errors = keys("list")
    assert (status, "Bearer" in errors) == (2, False)
    assert "give an API key with --api-key, in FORESTALL_API_KEY, or with a context" in errors
