"""A Redis server is judged by what it says of itself."""

from dataclasses import replace

import pytest

from service.doctor import at_risk, worst
from service.doctor.server import look_at_clock, look_at_server
from service.stores import ServerFacts, connect, server_facts
from streams import SystemClock
from tests.builders.service import HandClock, private_server

SOUND = ServerFacts(
    product="Redis",
    version="7.2.4",
    is_replica=False,
    is_clustered=False,
    is_append_only=True,
    fsync="always",
    save="",
    failures=(),
    eviction="noeviction",
    memory_limit=0,
    memory_used=5_000_000,
)


def test_a_sound_server_has_no_faults():
    assert [finding.verdict for finding in look_at_server(SOUND)] == ["ok", "ok", "ok"]


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({"version": "6.2.14"}, "problem", "install Redis 7 or newer, or Valkey"),
        ({"version": ""}, "warning", "make sure that it is compatible with Redis 7"),
        ({"is_clustered": True}, "problem", "Redis Cluster"),
        ({"is_replica": True}, "problem", "name its primary"),
        ({"is_append_only": False}, "problem", "set appendonly yes and appendfsync always"),
        ({"fsync": "everysec"}, "warning", "up to a second of acknowledged data"),
        ({"fsync": "no"}, "warning", "appendfsync is no"),
        ({"fsync": None}, "warning", "does not report its appendfsync"),
        ({"failures": ("its last snapshot",)}, "problem", "its last snapshot failed"),
        ({"eviction": "allkeys-lru", "memory_limit": 10_000_000}, "problem", "set maxmemory-policy noeviction"),
        ({"memory_limit": 6_000_000}, "warning", "5 MiB are used of maxmemory 6 MiB"),
        ({"memory_limit": 5_100_000}, "problem", "raise maxmemory"),
    ],
)
def test_each_fault_is_told_with_what_to_do(changes, verdict, words):
    findings = list(look_at_server(replace(SOUND, **changes)))
    assert worst(findings) == verdict
    assert any(words in f"{finding.found} {finding.advice}" for finding in findings)
    assert all(finding.advice for finding in findings if finding.verdict != "ok")


def test_a_policy_that_evicts_is_harmless_without_a_limit():
    assert worst(look_at_server(replace(SOUND, eviction="allkeys-lru"))) == "ok"


def test_an_old_version_number_of_valkey_is_none_of_redis():
    assert worst(look_at_server(replace(SOUND, product="Valkey", version="1.0"))) == "ok"


@pytest.mark.redis
def test_the_private_server_is_sound(client):
    assert worst(look_at_server(server_facts(client))) == "ok"
    assert list(at_risk(server_facts(client))) == []


@pytest.mark.redis
def test_what_a_real_server_is_set_to_is_seen(tmp_path):
    with private_server(tmp_path) as url, connect(url) as client:
        client.config_set("appendfsync", "everysec")
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        facts = server_facts(client)
    assert (facts.fsync, facts.eviction, facts.memory_limit) == ("everysec", "allkeys-lru", 100 * 1024**2)
    assert [finding.verdict for finding in at_risk(facts)] == ["warning", "problem"]


@pytest.mark.redis
def test_clocks_are_compared(client):
    assert look_at_clock(client, SystemClock()).verdict == "ok"
    now_us = SystemClock().now_us()
    assert look_at_clock(client, HandClock(now_us + 10_000_000)).verdict == "warning"
    assert look_at_clock(client, HandClock(now_us - 10_000_000)).verdict == "warning"
    far = look_at_clock(client, HandClock(now_us + 3_600_000_000))
    assert far.verdict == "problem"
    assert "NTP" in far.advice
