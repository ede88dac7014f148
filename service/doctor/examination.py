"""The examination, which runs all checks in the order in which a user should fix the problems."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from pipeline import (
    ClusterUnready,
    SessionOptions,
    build_session,
    end_session,
    missing_snapshots,
    require_master,
    workers_answer,
)
from service.doctor.findings import Finding, ok, problem, warning
from service.doctor.machine import look_at_folder, look_at_java, look_at_kernels, look_at_packages, look_at_python
from service.doctor.server import look_at_clock, look_at_server
from service.embedded import EmbeddedServer, find_server, port_fault
from service.errors import (
    BackupRefused,
    EmbeddedServerFailed,
    NoServerBinary,
    SettingsInvalid,
    StoreNewer,
    StoreUnavailable,
    TracerMissing,
)
from service.migrations import MIGRATIONS, Migration, pending
from service.observing.tracing import require_tracer
from service.settings import PREFIX, Settings, TracingSettings, load_settings
from service.settings_table import unknown_variables
from service.stores import Client, EventLog, connect, server_facts
from streams import LAYOUT_KEY, Clock, ForestallError

_TIMEOUT_S = 5.0


def examine(clock: Clock, *, deep: bool = False) -> Iterator[Finding]:
    """Run all checks and yield their findings. If ``deep``, also check that Spark starts."""
    java = look_at_java()
    yield java
    yield look_at_python()
    yield from look_at_packages()
    yield look_at_kernels()
    if deep and java.verdict == "ok":
        yield look_at_spark()
    try:
        settings = load_settings()
    except SettingsInvalid as error:
        faults = error.details["faults"]
        assert isinstance(faults, list)
        for fault in faults:
            yield problem("settings", str(fault), "correct it, or leave it out; docs/settings.md lists all settings")
        return
    unknown = unknown_variables()
    if not unknown:
        yield ok("settings", "all are valid")
    for fault in unknown:
        yield warning("settings", fault, "correct or remove it; docs/settings.md lists all settings")
    yield from look_at_tracing(settings.tracing)
    yield from look_at_folder(settings.data_dir)
    yield _look_at_master(settings)
    yield from look_at_redis(settings, clock)
    yield from _look_at_port(settings)


def look_at_tracing(settings: TracingSettings) -> Iterator[Finding]:
    """Check that OpenTelemetry is installed if tracing is configured. Whether a collector answers is not checked."""
    if settings.endpoint is None:
        return
    try:
        require_tracer(settings)
    except TracerMissing as error:
        observation, _, advice = error.message.partition(": ")
        yield problem("tracing", observation, advice)
    else:
        yield ok("tracing", f"spans go to {settings.endpoint}")


def look_at_redis(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Check the configured Redis server or, if none is configured, the private server.

    If the private server does not run, check only that it can be started.
    """
    if settings.redis_url is not None:
        yield from _look_at_url(settings.redis_url.get_secret_value(), clock, settings)
        return
    try:
        url = EmbeddedServer(settings.data_dir).running_url()
        binary = find_server()
    except EmbeddedServerFailed as error:
        yield problem("redis", "the private server does not answer", error.message)
        return
    except NoServerBinary as error:
        observation, _, advice = error.message.partition(": ")
        yield problem("redis", observation, advice)
        return
    if url is None:
        yield ok("redis", f"the private server does not run; {binary} will be started")
    else:
        yield from _look_at_url(url, clock, settings)


def look_at_store(client: Client, migrations: Sequence[Migration] = MIGRATIONS) -> Finding:
    """Check that this release can read the store. The finding names the migrations that the next start will run."""
    try:
        steps = pending(client, migrations)
    except StoreNewer as error:
        return problem("store", error.message.partition(". ")[0], error.message.partition(". ")[2])
    except BackupRefused as error:
        return problem("store", error.message.partition(": ")[0], error.message.partition(": ")[2])
    if not steps:
        return ok("store", "stored data is up to date, or there is none yet")
    names = "; ".join(step.name for step in steps)
    return warning("store", f"the next start will bring it up to date: {names}", "run forestall backup first")


def look_at_spark() -> Finding:
    """Check that Spark starts on this machine, and that a Python process of Spark returns correct rows."""
    with tempfile.TemporaryDirectory(prefix="forestall-doctor-") as folder:
        try:
            session = build_session(SessionOptions(data_folder=Path(folder), master="local[1]"))
            try:
                is_well, version = workers_answer(session), session.version
            finally:
                end_session(session)
        except (ForestallError, OSError) as error:
            return problem("spark", f"it does not start: {error}", "see the output of Java above")
    if not is_well:
        return problem("spark", f"Spark {version} starts, but its Python process returns wrong rows", "run make setup")
    return ok("spark", f"Spark {version} starts, and so does a Python process of its own")


def _look_at_url(url: str, clock: Clock, settings: Settings) -> Iterator[Finding]:
    try:
        with connect(url, retries=0) as client:
            yield from look_at_server(server_facts(client))
            yield look_at_clock(client, clock)
            yield look_at_store(client)
            yield from _look_at_states(client, settings)
    except StoreUnavailable as error:
        yield problem("redis", f"it does not answer: {error.message}", "start it, or correct FORESTALL_REDIS_URL")


def _look_at_port(settings: Settings) -> Iterator[Finding]:
    host, port = settings.api_host, settings.api_port
    if port == 0 or port_fault(host, port) is None:
        yield ok("port", f"port {port} on {host} is free; no service runs there")
        return
    answer = _ask(host, port)
    if answer is None:
        yield problem(
            "port",
            f"port {port} on {host} is in use by something that is not this service",
            f"stop it, or choose another port: {PREFIX}API_PORT",
        )
        return
    yield ok("port", f"a service answers on port {port} of {host}")
    missing = answer.get("missing")
    if missing:
        yield warning(
            "running service",
            f"it is not ready: {'; '.join(map(str, missing))}",
            "it may be starting; if this lasts, see the logs of its processes",
        )
    else:
        yield ok("running service", "it is ready")


def _ask(host: str, port: int) -> dict[str, Any] | None:
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - such a server is queried here
    url = f"http://{f'[{name}]' if ':' in name else name}:{port}/v1/ready"
    try:
        answer = httpx.get(url, timeout=_TIMEOUT_S, trust_env=False)
        body = answer.json()
    except (httpx.HTTPError, ValueError):
        return None
    is_ours = isinstance(body, dict) and ("missing" in body or body.get("status") == "ready")
    return body if is_ours else None


def _look_at_master(settings: Settings) -> Finding:
    """Check that a standalone master of Spark can be reached. Other masters are not checked."""
    try:
        require_master(settings.spark_master)
    except ClusterUnready as error:
        observation, _, advice = error.message.partition("; start")
        return problem("spark master", observation, f"start{advice}")
    return ok("spark master", settings.spark_master)


def _look_at_states(client: Client, settings: Settings) -> Iterator[Finding]:
    """Check that the newest snapshot of each shard is in the configured place."""
    if not client.exists(LAYOUT_KEY):
        yield ok("states", "there is no event log yet")
        return
    layout = EventLog(client, settings.shards).layout.read()
    place = settings.snapshot_place
    missing = list(missing_snapshots(client, place, layout.shards, layout.generation))
    for error in missing:
        observation, _, advice = error.message.partition("; ")
        yield problem("states", observation, advice)
    if not missing:
        yield ok("states", f"the saved states of {layout.shards} shards are in {place}, as far as there are any")
