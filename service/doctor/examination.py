"""All checks, in the order in which a user should fix their findings."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline import SessionOptions, build_session, end_session, workers_answer
from service.doctor.findings import Finding, ok, problem, warning
from service.doctor.kernels import look_at_kernels
from service.doctor.machine import look_at_folder, look_at_java, look_at_packages, look_at_python
from service.doctor.running import look_at_port
from service.doctor.server import look_at_clock, look_at_server
from service.doctor.states import look_at_master, look_at_states
from service.embedded import EmbeddedServer, find_server
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
from service.settings import Settings, TracingSettings, load_settings
from service.settings_table import unknown_variables
from service.stores import Client, connect, server_facts
from streams import Clock, ForestallError


def examine(clock: Clock, *, deep: bool = False) -> Iterator[Finding]:
    """Check everything that can be checked without changing anything; ``deep``: also start Spark."""
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
    yield look_at_master(settings)
    yield from look_at_redis(settings, clock)
    yield from look_at_port(settings)


def look_at_tracing(settings: TracingSettings) -> Iterator[Finding]:
    """Whether spans can be sent if tracing is configured; whether a collector accepts them is not checked."""
    if settings.endpoint is None:
        return
    try:
        require_tracer(settings)
    except TracerMissing as error:
        found, _, advice = error.message.partition(": ")
        yield problem("tracing", found, advice)
    else:
        yield ok("tracing", f"spans go to {settings.endpoint}")


def look_at_redis(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Check the server of the settings, or the private one: its state if it runs, else whether it could be started."""
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
        found, _, advice = error.message.partition(": ")
        yield problem("redis", found, advice)
        return
    if url is None:
        yield ok("redis", f"the private server does not run; {binary} will be started")
    else:
        yield from _look_at_url(url, clock, settings)


def look_at_store(client: Client, migrations: Sequence[Migration] = MIGRATIONS) -> Finding:
    """Check whether this release reads the store, and what it would change at its start."""
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
    """Start Spark on this machine and call one of its Python processes."""
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
            yield from look_at_states(client, settings)
    except StoreUnavailable as error:
        yield problem("redis", f"it does not answer: {error.message}", "start it, or correct FORESTALL_REDIS_URL")
