import os

import pytest

from service.errors import SettingsInvalid
from service.settings import is_loopback, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("FORESTALL_"):
            monkeypatch.delenv(name)


def test_everything_has_a_default():
    settings = load_settings()
    assert settings.redis_url is None
    assert settings.api_host == "127.0.0.1"
    assert settings.shards % 4 == 0
    assert not settings.webhooks.allow_private_targets


def test_groups_are_joined_by_two_underscores(monkeypatch):
    monkeypatch.setenv("FORESTALL_WEBHOOKS__TIMEOUT_S", "3.5")
    monkeypatch.setenv("FORESTALL_LIMITS__MAX_BATCH_EVENTS", "7")
    settings = load_settings()
    assert settings.webhooks.timeout_s == 3.5
    assert settings.limits.max_batch_events == 7


def test_every_fault_is_told_by_its_variable(monkeypatch):
    monkeypatch.setenv("FORESTALL_API_PORT", "http")
    monkeypatch.setenv("FORESTALL_WEBHOOKS__ATTEMPTS", "0")
    monkeypatch.setenv("FORESTALL_LOG_LEVEL", "loud")
    with pytest.raises(SettingsInvalid) as caught:
        load_settings()
    for name in ("FORESTALL_API_PORT", "FORESTALL_WEBHOOKS__ATTEMPTS", "FORESTALL_LOG_LEVEL"):
        assert name in caught.value.message
    assert caught.value.message.count("FORESTALL_") == 3


def test_secrets_are_not_shown(monkeypatch):
    monkeypatch.setenv("FORESTALL_API_KEY", "correct-horse")
    monkeypatch.setenv("FORESTALL_REDIS_URL", "redis://:hidden@example.org")
    shown = repr(load_settings())
    assert "correct-horse" not in shown
    assert "hidden" not in shown


def test_a_short_key_is_refused_without_being_shown(monkeypatch):
    monkeypatch.setenv("FORESTALL_API_KEY", "geheim")
    with pytest.raises(SettingsInvalid) as caught:
        load_settings()
    assert "geheim" not in str(caught.value)


def test_an_open_api_stays_on_loopback(monkeypatch):
    monkeypatch.setenv("FORESTALL_API_HOST", "0.0.0.0")
    with pytest.raises(SettingsInvalid, match="FORESTALL_API_KEY"):
        load_settings()
    monkeypatch.setenv("FORESTALL_API_KEY", "long-enough")
    assert load_settings().api_host == "0.0.0.0"


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        setattr(load_settings(), "api_port", 1)  # noqa: B010 - the type checker knows it already


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("example.org", False)],
)
def test_loopback(host, expected):
    assert is_loopback(host) is expected
