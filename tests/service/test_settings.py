import os
import re

import pytest

from nfa import PatternRefused, parse_pattern
from service.errors import SettingsInvalid
from service.settings import Limits, is_loopback, load_settings
from service.settings_table import setting_rows
from streams import MAX_SHARDS


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("FORESTALL_"):
            monkeypatch.delenv(name)


def test_everything_has_a_default():
    settings = load_settings()
    assert settings.redis_url is None
    assert settings.api_host == "127.0.0.1"
    assert settings.shards == min(max(2, os.cpu_count() or 1), MAX_SHARDS)
    assert not settings.webhooks.allow_private_targets


def test_groups_are_joined_by_two_underscores(monkeypatch):
    monkeypatch.setenv("FORESTALL_WEBHOOKS__TIMEOUT_S", "3.5")
    monkeypatch.setenv("FORESTALL_LIMITS__MAX_BATCH_EVENTS", "7")
    settings = load_settings()
    assert settings.webhooks.timeout_s == 3.5
    assert settings.limits.max_batch_events == 7


def test_what_may_wait_and_what_a_micro_batch_takes_is_bounded(monkeypatch):
    settings = load_settings()
    assert (settings.limits.max_backlog_events, settings.limits.max_log_bytes) == (5_000_000, 4 * 1024**3)
    assert (settings.batch.max_entries, settings.batch.max_bytes) == (64, 4_000_000)
    monkeypatch.setenv("FORESTALL_LIMITS__MAX_BACKLOG_EVENTS", "100")
    monkeypatch.setenv("FORESTALL_BATCH__MAX_ENTRIES", "8")
    assert load_settings().limits.max_backlog_events == 100
    assert load_settings().batch.max_entries == 8
    for name in ("FORESTALL_LIMITS__MAX_LOG_BYTES", "FORESTALL_BATCH__MAX_BYTES"):
        monkeypatch.setenv(name, "0")
        with pytest.raises(SettingsInvalid, match=name):
            load_settings()
        monkeypatch.delenv(name)


def test_every_fault_is_told_by_its_variable(monkeypatch):
    monkeypatch.setenv("FORESTALL_API_PORT", "http")
    monkeypatch.setenv("FORESTALL_WEBHOOKS__ATTEMPTS", "0")
    monkeypatch.setenv("FORESTALL_LOG_LEVEL", "loud")
    with pytest.raises(SettingsInvalid) as caught:
        load_settings()
    for name in ("FORESTALL_API_PORT", "FORESTALL_WEBHOOKS__ATTEMPTS", "FORESTALL_LOG_LEVEL"):
        assert name in caught.value.message
    assert caught.value.message.count("FORESTALL_") == 3


@pytest.mark.parametrize(
    ("variable", "text"),
    [("LIMITS", "x"), ("BATCH", "[1"), ("BATCH", "[1]"), ("SPARK__CONF", "x"), ("SPARK__CONF", "1")],
)
def test_what_is_not_a_json_object_is_reported_with_the_other_faults(monkeypatch, variable, text):
    monkeypatch.setenv(f"FORESTALL_{variable}", text)
    monkeypatch.setenv("FORESTALL_API_PORT", "-1")
    with pytest.raises(SettingsInvalid) as caught:
        load_settings()
    _, port, group = caught.value.message.split("\n  ")
    assert port.startswith("FORESTALL_API_PORT: ")
    assert group == f"FORESTALL_{variable}: not a JSON object (in a TOML file: a table)"


def test_a_json_object_of_a_group_and_its_members_are_joined(monkeypatch):
    monkeypatch.setenv("FORESTALL_BATCH", '{"max_entries": 32, "max_bytes": 1}')
    monkeypatch.setenv("FORESTALL_BATCH__MAX_BYTES", "7")
    assert (load_settings().batch.max_entries, load_settings().batch.max_bytes) == (32, 7)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LIMITS__IDEMPOTENCY_LIFE_S", 10**16),
        ("LIMITS__EVENT_ID_LIFE_S", 10**17),
        ("LIMITS__RECENT_KEPT", 10**19),
        ("LIMITS__ALERTS_KEPT", 10**19),
        ("LIMITS__QUESTION_WAIT_S", 1e300),
        ("WORK__MAX_MEMORY_BYTES", 2**63),
        ("WORK__MAX_TIME_S", 1e300),
        ("LOG_RETENTION_ENTRIES", 10**19),
        ("LOG_FILE_BYTES", 10**19),
    ],
)
def test_a_number_that_redis_or_the_system_refuses_is_invalid(monkeypatch, name, value):
    monkeypatch.setenv(f"FORESTALL_{name}", str(value))
    with pytest.raises(SettingsInvalid, match=f"FORESTALL_{name}: .* less than or equal to 10+$"):
        load_settings()


@pytest.mark.parametrize("name", ["API_PORT", "WORK__MAX_TIME_S", "WEBHOOKS__ALLOW_PRIVATE_TARGETS"])
def test_a_value_of_the_wrong_kind_is_repeated(monkeypatch, name):
    monkeypatch.setenv(f"FORESTALL_{name}", "abc")
    with pytest.raises(SettingsInvalid, match=f"FORESTALL_{name}: .*, got 'abc'$"):
        load_settings()


def test_every_number_has_an_upper_bound():
    numbers = [row for row in setting_rows() if row.kind.startswith(("number", "whole number"))]
    assert len(numbers) > 50
    assert [row.variable for row in numbers if not re.search(r" (to|at most|below) ", row.kind)] == []


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[1]", "local[*]", "local[2,3]", "local[*, 3]", "local-cluster[2,1,1024]", "yarn"),
        *("spark://a:7077,b:7077", "spark://[::1]:7077", "k8s://https://10.0.0.1:6443"),
    ],
)
def test_masters_of_spark_are_accepted(monkeypatch, master):
    monkeypatch.setenv("FORESTALL_SPARK_MASTER", master)
    assert load_settings().spark_master == master


@pytest.mark.parametrize(
    "master", ["nonsense", "local[0]", "local[-1]", "local[2", "LOCAL[2]", "local[]", "local[2,0]", "spark://", " yarn"]
)
def test_other_masters_are_refused(monkeypatch, master):
    monkeypatch.setenv("FORESTALL_SPARK_MASTER", master)
    with pytest.raises(SettingsInvalid, match=r"FORESTALL_SPARK_MASTER: .* is not a master of Spark; write local\[N\]"):
        load_settings()


def test_redis_in_other_letters_is_no_folder_of_snapshots(monkeypatch):
    for place in ("redis", "./REDIS", "/mnt/Redis"):
        monkeypatch.setenv("FORESTALL_SNAPSHOTS", place)
        assert load_settings().snapshots == place
    for place in ("REDIS", "Redis", " redis"):
        monkeypatch.setenv("FORESTALL_SNAPSHOTS", place)
        with pytest.raises(SettingsInvalid, match=r"FORESTALL_SNAPSHOTS: .* would be a folder; write redis"):
            load_settings()


def test_an_unknown_name_in_a_group_is_refused_with_the_nearest_setting(monkeypatch):
    monkeypatch.setenv("FORESTALL_LIMITS__MAX_BODI_BYTES", "7")
    with pytest.raises(SettingsInvalid, match=r"LIMITS__MAX_BODI_BYTES: not a setting \(did you mean MAX_BODY_BYTES"):
        load_settings()


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
    assert "at least 8 characters" in str(caught.value)


def test_the_log_level_may_be_in_lower_case(monkeypatch):
    monkeypatch.setenv("FORESTALL_LOG_LEVEL", "debug")
    assert load_settings().log_level == "DEBUG"
    monkeypatch.setenv("FORESTALL_LOG_LEVEL", "loud")
    with pytest.raises(SettingsInvalid, match="one of DEBUG, INFO, WARNING, ERROR"):
        load_settings()


def test_an_open_api_stays_on_loopback(monkeypatch):
    monkeypatch.setenv("FORESTALL_API_HOST", "0.0.0.0")
    assert load_settings().api_host == "0.0.0.0"  # keys are demanded there
    monkeypatch.setenv("FORESTALL_AUTH", "off")
    with pytest.raises(SettingsInvalid, match="FORESTALL_AUTH"):
        load_settings()
    monkeypatch.setenv("FORESTALL_API_HOST", "127.0.0.1")
    assert load_settings().auth == "off"


def test_rates_are_off_unless_they_are_set(monkeypatch):
    assert load_settings().rate.requests_per_s == 0
    monkeypatch.setenv("FORESTALL_RATE__REQUESTS_PER_S", "12.5")
    monkeypatch.setenv("FORESTALL_RATE__BURST", "30")
    assert (load_settings().rate.requests_per_s, load_settings().rate.burst) == (12.5, 30)
    monkeypatch.setenv("FORESTALL_RATE__BURST", "-1")
    with pytest.raises(SettingsInvalid, match="FORESTALL_RATE__BURST"):
        load_settings()


@pytest.mark.parametrize("cores", [1, 256, 2_000, None])
def test_shards_are_one_for_each_core_and_at_least_two_up_to_what_the_pipeline_takes(monkeypatch, cores):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert load_settings().shards == min(max(2, cores or 1), 1024)


@pytest.mark.parametrize(("shards", "is_taken"), [(MAX_SHARDS, True), (MAX_SHARDS + 1, False), (0, False)])
def test_more_shards_than_the_pipeline_takes_are_refused(monkeypatch, shards, is_taken):
    monkeypatch.setenv("FORESTALL_SHARDS", str(shards))
    if is_taken:
        assert load_settings().shards == shards
    else:
        with pytest.raises(SettingsInvalid, match="FORESTALL_SHARDS"):
            load_settings()


def test_a_pipeline_that_lives_cannot_count_as_stopped_between_two_heartbeats(monkeypatch):
    monkeypatch.setenv("FORESTALL_HEARTBEAT_STALE_S", "0.5")
    with pytest.raises(SettingsInvalid, match=r"FORESTALL_HEARTBEAT_STALE_S.*5"):
        load_settings()


@pytest.mark.parametrize(
    "url",
    ["redis://example.org", "redis://:secret@10.0.0.1:6380/2", "rediss://user:pw@[::1]:1/0?db=1", "unix:///run/r.sock"],
)
def test_urls_of_redis_servers_are_taken(monkeypatch, url):
    monkeypatch.setenv("FORESTALL_REDIS_URL", url)
    redis_url = load_settings().redis_url
    assert redis_url is not None
    assert redis_url.get_secret_value() == url


@pytest.mark.parametrize(
    "url",
    ["http://:s3cret@h", "s3cret@h:6379", "redis://:s3cret@", "redis://:s3cret@h:port", "redis://[s3cret", "unix:"],
)
def test_other_urls_are_refused_without_being_shown(monkeypatch, url):
    monkeypatch.setenv("FORESTALL_REDIS_URL", url)
    with pytest.raises(SettingsInvalid, match=r"FORESTALL_REDIS_URL.*redis://HOST:PORT") as caught:
        load_settings()
    assert "s3cret" not in caught.value.message
    assert "s3cret" not in str(caught.value.details)


def test_no_longer_patterns_are_allowed_than_are_read(monkeypatch):
    longest = Limits().max_pattern_chars
    text = "PATTERN p EVENT A a"
    assert parse_pattern(text.ljust(longest)).name == "p"
    with pytest.raises(PatternRefused, match="at most"):
        parse_pattern(text.ljust(longest + 1))
    monkeypatch.setenv("FORESTALL_LIMITS__MAX_PATTERN_CHARS", str(longest + 1))
    with pytest.raises(SettingsInvalid, match="FORESTALL_LIMITS__MAX_PATTERN_CHARS"):
        load_settings()


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        setattr(load_settings(), "api_port", 1)  # noqa: B010 - the type checker knows it already


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("example.org", False)],
)
def test_loopback(host, expected):
    assert is_loopback(host) is expected


def test_a_collector_is_named_by_a_url(monkeypatch):
    assert load_settings().tracing.endpoint is None
    for written, meant in {
        "http://127.0.0.1:4318": "http://127.0.0.1:4318/v1/traces",
        "https://collector.example/": "https://collector.example/v1/traces",
        "http://collector/otlp": "http://collector/otlp",
    }.items():
        monkeypatch.setenv("FORESTALL_TRACING__ENDPOINT", written)
        assert load_settings().tracing.endpoint == meant
    for wrong in ("127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "http://x:y"):
        monkeypatch.setenv("FORESTALL_TRACING__ENDPOINT", wrong)
        with pytest.raises(SettingsInvalid, match=r"FORESTALL_TRACING__ENDPOINT: .* write http://HOST:4318"):
            load_settings()
