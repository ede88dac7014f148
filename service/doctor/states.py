"""Checks of Spark's master, and of the saved states of the shards."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline import ClusterUnready, missing_snapshots, require_master
from service.doctor.findings import Finding, ok, problem
from service.settings import Settings
from service.stores import Client, EventLog
from streams import LAYOUT_KEY


def look_at_master(settings: Settings) -> Finding:
    """Check that a standalone master of Spark can be reached; other masters are not checked."""
    try:
        require_master(settings.spark_master)
    except ClusterUnready as error:
        found, _, advice = error.message.partition("; start")
        return problem("spark master", found, f"start{advice}")
    return ok("spark master", settings.spark_master)


def look_at_states(client: Client, settings: Settings) -> Iterator[Finding]:
    """Check that the newest saved state of each shard is where the settings keep states."""
    if not client.exists(LAYOUT_KEY):
        yield ok("states", "there is no event log yet")
        return
    layout = EventLog(client, settings.shards).layout.read()
    place = settings.snapshot_place
    missing = list(missing_snapshots(client, place, layout.shards, layout.generation))
    for error in missing:
        found, _, advice = error.message.partition("; ")
        yield problem("states", found, advice)
    if not missing:
        yield ok("states", f"the saved states of {layout.shards} shards are in {place}, as far as there are any")
