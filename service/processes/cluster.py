"""Derives from the settings the options of Spark and its jobs, and the folders in which jobs store their data."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pipeline import ClusterOptions, EventLogOptions, JobOptions, SessionOptions, forget_states, is_local, remove_folder
from service.errors import SettingsInvalid
from service.settings import PREFIX, Settings
from service.stores import Layout
from service.stores.log.backlog import MATCHED_KEY

_IN_REDIS = "redis"
_LOCAL_SNAPSHOT_BYTES = 4_000_000
_CLUSTER_SNAPSHOT_BYTES = 500_000
_TASK_ATTEMPTS = 4  # the default of Spark on a cluster
_ENDLESS_ATTEMPTS = 1_000_000  # a continuous task is restarted however often its process dies


def session_options(settings: Settings) -> SessionOptions:
    """Return Spark's options. Raises ``SettingsInvalid`` if a cluster could not reach Redis or its folders."""
    master, spark = settings.spark_master, settings.spark
    if not is_local(master):
        _check_cluster(settings)
    return SessionOptions(
        data_folder=settings.data_dir,
        master=master,
        task_attempts=_ENDLESS_ATTEMPTS if settings.is_continuous else _TASK_ATTEMPTS,
        cluster=ClusterOptions(
            python=spark.python,
            driver_host=spark.driver_host,
            bind_address=spark.bind_address,
            worker_folder=spark.worker_folder,
            patience_s=spark.patience_s,
        ),
        settings=spark.conf,
    )


def job_options(settings: Settings, layout: Layout, url: str, tasks: int) -> JobOptions:
    """Return the inputs and folders of the pipeline, for the current layout of the log.

    At most ``tasks`` tasks read at the same time.
    """
    return JobOptions(
        log=EventLogOptions(
            redis_url=url,
            shards=layout.shards,
            max_entries=settings.batch.max_entries,
            max_bytes=settings.batch.max_bytes,
            retain_entries=settings.log_retention_entries,
            tasks=tasks,
            snapshots=settings.snapshot_place,
            snapshot_bytes=snapshot_bytes(settings),
            generation=layout.generation,
            results=MATCHED_KEY,
        ),
        checkpoint=settings.data_dir.resolve() / _of_generation("checkpoint", layout.generation),
        handover=handover_folder(settings, _of_generation(layout.identity, layout.generation)),
        trigger_interval_s=settings.trigger_interval_s,
    )


def forget_former(settings: Settings, layout: Layout, url: str) -> None:
    """Remove checkpoints and states of former layouts of the log, and the states of an unfinished resharding.

    Folders that cannot be removed are skipped.
    """
    unfinished = [(layout.unfinished, layout.unfinished)] if layout.unfinished else []
    for generation, shards in [*zip(layout.former_generations, layout.former, strict=True), *unfinished]:
        before = Layout(shards=shards, identity=layout.identity, generation=generation)
        options = job_options(settings, before, url, tasks=1)
        forget_states(options.log)
        for folder in (options.checkpoint, options.handover):
            if folder is not None:
                with suppress(OSError):
                    remove_folder(folder)


def snapshot_bytes(settings: Settings) -> int:
    """Return the number of bytes of log entries after which a shard's state is saved.

    The number is smaller on a cluster, where shards move between machines.
    """
    return _LOCAL_SNAPSHOT_BYTES if is_local(settings.spark_master) else _CLUSTER_SNAPSHOT_BYTES


def handover_folder(settings: Settings, log_identity: str) -> Path:
    """Return the folder for handovers.

    A handover is the state of a shard that a process leaves for the next process on the same machine.
    """
    if is_local(settings.spark_master):
        return settings.data_dir.resolve() / "handover" / log_identity
    return session_options(settings).cluster.handover(log_identity)


def _of_generation(name: str, generation: int) -> str:
    return f"{name}-{generation}" if generation else name


def _check_cluster(settings: Settings) -> None:
    faults: list[str] = []
    if settings.redis_url is None:
        faults.append(
            f"{PREFIX}REDIS_URL: the machines of {settings.spark_master} cannot reach the private Redis of the data "
            "folder; run one of your own and name it here"
        )
    if settings.snapshots not in (None, _IN_REDIS) and not Path(str(settings.snapshots)).is_absolute():
        faults.append(
            f"{PREFIX}SNAPSHOTS: {settings.snapshots!r} is neither redis nor the absolute path of a folder that every "
            f"machine of {settings.spark_master} reaches"
        )
    if not settings.spark.worker_folder.is_absolute():
        faults.append(f"{PREFIX}SPARK__WORKER_FOLDER: {settings.spark.worker_folder} is not an absolute path")
    if faults:
        raise SettingsInvalid("settings cannot be used:\n  " + "\n  ".join(faults), faults=list(faults))
