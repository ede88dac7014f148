"""Checks of a Redis server, mainly whether acknowledged data can be lost."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from service.doctor.findings import Finding, ok, problem, warning
from service.stores import Client, ServerFacts, server_time_us
from streams import Clock

_OLDEST = Version("7")
_FULL, _NEARLY_FULL = 0.95, 0.8
_MIB = 1024**2
_SECOND_US = 1_000_000
_TOLERATED_US, _HARMFUL_US = _SECOND_US, 60 * _SECOND_US


def look_at_server(facts: ServerFacts) -> Iterator[Finding]:
    """Check a Redis server's version, role, persistence and memory."""
    yield _version(facts)
    if facts.is_clustered:
        yield problem(
            "redis", "it is a Redis Cluster, and one script writes to several keys", "use one server, or a primary"
        )
    if facts.is_replica:
        yield problem("redis", "it is a replica and takes no writes", "name its primary in FORESTALL_REDIS_URL")
    risks = list(at_risk(facts))
    yield from risks or [ok("redis persistence", "every write is synced to the append-only file before it is answered")]
    yield from _memory(facts)


def at_risk(facts: ServerFacts) -> Iterator[Finding]:
    """Yield findings about settings and failures of the server that can cause the loss of acknowledged data."""
    subject = "redis persistence"
    if not facts.is_append_only:
        yield problem(
            subject,
            "appendonly is off: when the server ends, events and alerts that were acknowledged are lost",
            "set appendonly yes and appendfsync always in its configuration",
        )
    elif facts.fsync is None:
        yield warning(
            subject,
            "the server does not report its appendfsync",
            "make sure that it is always: with everysec a crash of the server loses up to a second of events",
        )
    elif facts.fsync != "always":
        yield warning(
            subject,
            f"appendfsync is {facts.fsync}: a crash of the server can lose "
            f"{'up to a second of ' if facts.fsync == 'everysec' else ''}acknowledged data, and the pipeline then "
            "refuses a log that is behind its checkpoint",
            "set appendfsync always in its configuration",
        )
    for failure in facts.failures:
        yield problem(
            subject, f"{failure} failed", "check the server's log and the disk; until then it may refuse writes"
        )
    if facts.memory_limit and facts.eviction not in (None, "noeviction"):
        yield problem(
            "redis memory",
            f"maxmemory-policy is {facts.eviction}: when memory is used up the server deletes keys, which are lost "
            "events, alerts or states",
            "set maxmemory-policy noeviction: writes are then refused (507) until there is room",
        )


def look_at_clock(client: Client, clock: Clock) -> Finding:
    """Check that the clocks of this machine and of Redis agree, because the service uses both clocks."""
    before_us, first_us, second_us = clock.now_us(), server_time_us(client), server_time_us(client)
    after_us = clock.now_us()
    if after_us < before_us or second_us < first_us:
        return problem("clock", "a clock went backwards while it was read", "let one time service set the clocks")
    skew_us = max(before_us - second_us, first_us - after_us, 0)
    observation = "this machine and Redis differ by "
    if skew_us < _TOLERATED_US:
        return ok("clock", observation + "less than 1 s")
    advice = "let a time service (NTP) set the clocks of both machines"
    return (problem if skew_us >= _HARMFUL_US else warning)(
        "clock", f"{observation}{skew_us / _SECOND_US:,.1f} s", advice
    )


def _version(facts: ServerFacts) -> Finding:
    observation = f"{facts.product} {facts.version or 'of an unknown version'}"
    try:
        is_old = facts.product == "Redis" and Version(facts.version) < _OLDEST
    except InvalidVersion:
        return warning("redis", observation, f"make sure that it is compatible with Redis {_OLDEST}")
    if is_old:
        return problem("redis", observation, f"install Redis {_OLDEST} or newer, or Valkey")
    return ok("redis", observation)


def _memory(facts: ServerFacts) -> Iterator[Finding]:
    used = f"{facts.memory_used / _MIB:,.0f} MiB are used"
    if not facts.memory_limit:
        yield ok("redis memory", f"{used}, maxmemory is not set")
        return
    share = facts.memory_used / facts.memory_limit
    observation = f"{used} of maxmemory {facts.memory_limit / _MIB:,.0f} MiB"
    advice = "raise maxmemory, or keep less: the log, alerts and possibly states live in it"
    if share >= _NEARLY_FULL:
        yield (problem if share >= _FULL else warning)("redis memory", observation, advice)
    else:
        yield ok("redis memory", observation)
