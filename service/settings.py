"""Settings of the service: one frozen value, read from the environment once, in ``main``, and passed down.

Every setting is an environment variable with the prefix ``FORESTALL_``. Two underscores join a group and its member, as
in ``FORESTALL_WEBHOOKS__TIMEOUT_S``. Settings can also be read from files (``service.settings_files``).
"""

from __future__ import annotations

import ipaddress
import os
import re
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from service.errors import SettingsInvalid
from service.settings_files import PREFIX as PREFIX  # noqa: PLC0414 # the one name for all that read settings
from service.settings_files import file_values
from service.targets import TargetRules
from streams import MAX_SHARDS, MOST_EVENTS, MOST_TRACES, MOST_WORK, USUAL_BUDGET, WorkBudget, did_you_mean

_MOST_PATTERN_CHARS = 20_000  # the longest text that nfa reads

_FEWEST_KEY_CHARS = 8
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

_MOST = 10**12  # of counts and bytes: Redis and the operating system accept far more
_MOST_SECONDS = 10**9
_POSITIVE = "0*[1-9][0-9]*"
_SPARK_MASTER = re.compile(
    rf"local(\[({_POSITIVE}|\*)(\s*,\s*{_POSITIVE})?\])?"
    rf"|local-cluster\[\s*{_POSITIVE}\s*,\s*{_POSITIVE}\s*,\s*{_POSITIVE}\s*\]"
    r"|yarn|[a-z][a-z0-9+.-]*://\S+"
)

Count = Annotated[int, Field(ge=1, le=_MOST)]
Seconds = Annotated[float, Field(gt=0, le=_MOST_SECONDS, allow_inf_nan=False)]
WholeSeconds = Annotated[int, Field(ge=1, le=_MOST_SECONDS)]


def _default_shards() -> int:
    """Return the default number of shards: two for each task that Spark runs by default.

    More shards would delay each other.
    """
    return min(MAX_SHARDS, max(2, os.cpu_count() or 1))


def _default_master() -> str:
    return f"local[{max(1, (os.cpu_count() or 1) // 2)}]"


class Group(BaseModel):
    """A group of settings. Unknown names are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WebhookSettings(Group):
    """How alerts are delivered.

    Attributes:
        allow_private_targets: Allow loopback and private addresses as targets.
        allowed_targets: Hosts (``hooks.internal``, ``*.internal``) and networks (``10.1.0.0/16``), separated by commas,
            that webhooks may call although they are private.
        folder: The only folder below which sinks write files. None: sinks write no files.
        attempts: Number of attempts after which a delivery is abandoned.
        first_delay_s: Longest pause before the second attempt.
        delay_factor: Factor by which the longest pause grows after each further attempt.
        max_delay_s: Upper limit of every pause.
        timeout_s: Timeout of an attempt.
        concurrency: Maximum number of simultaneous attempts.
        target_concurrency: Maximum number of simultaneous attempts to deliver to one webhook.
        circuit_failures: Number of consecutive failures that open a webhook's circuit, so that its deliveries wait.
        circuit_pause_s: Seconds between two attempts while a circuit is open.
        disable_after_s: Time after which a webhook is disabled if all its attempts fail.
        max_waiting: Maximum number of deliveries that may wait for one webhook. Further deliveries are abandoned at
            once.
        log_kept: Approximate number of attempts of each webhook that are listed.
        lease_margin_s: If the process that sends a delivery dies, the delivery is sent again after two timeouts plus
            this time.
        poll_interval_s: How often the queue is polled when nothing is due.
    """

    allow_private_targets: bool = False
    allowed_targets: str = ""
    folder: Path | None = None
    attempts: Count = 12
    first_delay_s: Seconds = 5.0
    delay_factor: Annotated[float, Field(ge=1, le=100)] = 3.0
    max_delay_s: Seconds = 6 * 3600.0
    timeout_s: Seconds = 15.0
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 64
    target_concurrency: Annotated[int, Field(ge=1, le=1000)] = 8
    circuit_failures: Count = 10
    circuit_pause_s: Seconds = 60.0
    disable_after_s: Seconds = 5 * 86_400.0
    max_waiting: Count = 1_000_000
    log_kept: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    lease_margin_s: Seconds = 30.0
    poll_interval_s: Seconds = 0.5

    @field_validator("allowed_targets")
    @classmethod
    def _lists_targets(cls, listed: str) -> str:
        TargetRules.of(listed, allow_private=False)
        return listed

    @property
    def targets(self) -> TargetRules:
        return TargetRules.of(self.allowed_targets, allow_private=self.allow_private_targets)


class Limits(Group):
    """What one request may hold, and how much is kept.

    Attributes:
        max_body_bytes: Maximum bytes of any request body.
        max_batch_events: Maximum number of events in one request.
        max_schema_steps: Maximum number of steps for checking the events of one request by schemas. The steps of an
            event are the parts of the schema times the values of the event, and more for regular expressions.
        max_pattern_chars: Maximum number of characters of a pattern's text. The default is the highest value.
        max_constraints: Maximum number of constraints of a set.
        max_event_types: Maximum number of event types of a workflow model, and of a stream's whole constraint set. Time
            and memory grow with the square of their number: at 300 a model takes a few seconds and about half a
            gigabyte.
        max_model_elements: Maximum number of activities, gateways and other elements of a workflow model.
        max_model_bytes: Maximum bytes of a workflow model.
        max_automaton_states: Maximum number of states of a workflow's automaton. If there are more, streams follow its
            constraints only. The automaton is stored in the log and in the saved state of every shard.
        max_markings: Maximum number of markings of a workflow's net that are explored. This limits the time and memory
            of an upload.
        recent_kept: Approximate number of results that are kept of each kind: timeouts, early terminations, deviations,
            dead letters, abandoned deliveries.
        backtests_kept: Number of backtests that are kept. If there are more, the oldest finished backtests are removed
            with their alerts.
        backtest_alerts_kept: Number of alerts of a backtest that are kept. All alerts are counted.
        alerts_kept: Number of alerts of a stream that are kept. If there are more, the oldest are removed with their
            notes. 0: all are kept.
        max_tables: Maximum number of reference tables and calendars.
        max_table_rows: Maximum number of rows of a reference table.
        max_table_bytes: Maximum bytes of an uploaded file of rows, and of the rows that are mapped into memory.
        trace_entries: Number of a shard's newest log entries that are read to show a transaction.
        live_listeners: Maximum number of clients that follow alerts or events of one API process at the same time.
        questions_at_once: Maximum number of questions that one API process asks the shards at the same time.
        question_wait_s: How long a question waits for the answers of all shards.
        idempotency_life_s: How long an idempotency key is remembered.
        event_ids_kept: Number of a stream's newest event ids that are remembered to drop repeated events.
        event_id_life_s: Shortest time for which an event id is remembered.
        max_backlog_events: Maximum number of events in the log that are not matched yet. Beyond it, requests are
            answered with 429.
        max_log_bytes: Maximum bytes of unmatched events in the log. Beyond them, requests are answered with 429.
    """

    max_body_bytes: Count = 10 * 1024 * 1024
    max_batch_events: Count = 10_000
    max_schema_steps: Count = 100_000_000
    max_pattern_chars: Annotated[int, Field(ge=1, le=_MOST_PATTERN_CHARS)] = _MOST_PATTERN_CHARS
    max_constraints: Count = 10_000
    max_event_types: Annotated[int, Field(ge=1, le=400)] = 300
    max_model_elements: Annotated[int, Field(ge=1, le=20_000)] = 5_000
    max_model_bytes: Count = 5 * 1024 * 1024
    max_tables: Count = 1_000
    max_table_rows: Count = 10_000_000
    max_table_bytes: Annotated[int, Field(ge=1, lt=2**31)] = 1024**3
    max_automaton_states: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    max_markings: Count = 500_000
    recent_kept: Count = 10_000
    backtests_kept: Count = 100
    backtest_alerts_kept: Count = 10_000
    alerts_kept: Annotated[int, Field(ge=0, le=_MOST)] = 1_000_000
    trace_entries: Count = 20_000
    live_listeners: Count = 100
    questions_at_once: Count = 8
    question_wait_s: Seconds = 10.0
    idempotency_life_s: WholeSeconds = 86_400
    event_ids_kept: Count = 1_000_000
    event_id_life_s: WholeSeconds = 86_400
    max_backlog_events: Count = 5_000_000
    max_log_bytes: Count = 4 * 1024**3


class RateSettings(Group):
    """Rate limit per API key, or per client address where no key is required.

    Attributes:
        requests_per_s: Sustained requests per second. 0: no limit.
        burst: Requests at once after a pause. 0: one second's worth, at least one.
    """

    requests_per_s: Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)] = 0.0
    burst: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class WorkSettings(Group):
    """Limits of requests whose work is not known to be small: models, constraint sets, patterns, analyses.

    Such requests are processed by worker processes. A request beyond a limit is terminated with an error.

    Attributes:
        processes: Maximum number of such requests that are processed at the same time.
        max_waiting: Maximum number of such requests that may wait. Further requests are answered with 503.
        max_time_s: Longest time of one request.
        max_memory_bytes: Largest memory of one request.
        max_answer_bytes: Largest answer to one request.
    """

    processes: Annotated[int, Field(ge=1, le=64)] = 2
    max_waiting: Count = 100
    max_time_s: Seconds = 20.0
    max_memory_bytes: Annotated[int, Field(ge=64 * 1024**2, le=_MOST)] = 1024**3
    max_answer_bytes: Count = 64 * 1024**2


class PatternWorkSettings(Group):
    """How much work a pattern may cost, counted in the partial matches that events meet, never in seconds.

    Reading texts in conditions between steps counts too: 64 bytes as one partial match.

    The log records the values with each pattern that is registered, activated or resumed, so that every replay gives up
    the same patterns. A changed value applies to a pattern once it is registered, activated or resumed again.

    Attributes:
        per_event: Partial matches of a pattern that each event of a transaction may meet without counting.
        per_trace: Partial matches that the events of a transaction may meet beyond `per_event`. With more, the pattern
            is given up in the transaction (dead letter `work-limit`).
        traces: Number of transactions of one shard in which a pattern may be given up. With one more, the pattern is
            suspended.
        forgiven_after: Events of the stream in the shard after which a transaction in which a pattern was given up is
            no longer counted.
        in_all: Partial matches that events may meet in all transactions of one shard, beyond `per_event` for each event
            of the stream. With more, the pattern is suspended.
    """

    per_event: Annotated[int, Field(ge=0, le=MOST_WORK)] = USUAL_BUDGET.per_event
    per_trace: Annotated[int, Field(ge=1, le=MOST_WORK)] = USUAL_BUDGET.per_trace
    traces: Annotated[int, Field(ge=0, le=MOST_TRACES)] = USUAL_BUDGET.traces
    forgiven_after: Annotated[int, Field(ge=1, le=MOST_EVENTS)] = USUAL_BUDGET.forgiven_after
    in_all: Annotated[int, Field(ge=1, le=MOST_WORK)] = USUAL_BUDGET.in_all

    @property
    def budget(self) -> WorkBudget:
        return WorkBudget(**self.model_dump())


class BatchLimits(Group):
    """How much a micro-batch reads from the log, which bounds its memory and time.

    Attributes:
        max_entries: Maximum number of log entries of one shard.
        max_bytes: Maximum bytes of one shard. At least one entry is read, which contains the events of one request.
    """

    max_entries: Count = 64
    max_bytes: Count = 4_000_000


class SparkSettings(Group):
    """The set-up of Spark: how the driver and the machines of a cluster connect, and ``conf``.

    Attributes:
        python: Python interpreter on every machine, including the driver's. Empty: the path of the driver's own
            interpreter.
        driver_host: Name or address by which the machines reach the driver. Empty: chosen by Spark.
        bind_address: Address on which the driver listens. Empty: the address of ``driver_host``.
        worker_folder: Folder on each machine for compiled kernels, and for states in handover between processes. No
            other user may be able to write to it.
        patience_s: How long to wait for the first machine.
        conf: Further Spark settings, as a JSON object, such as ``{"spark.driver.memory": "4g"}``. They take precedence,
            on a cluster and with a local master.
    """

    python: str = ""
    driver_host: str = ""
    bind_address: str = ""
    worker_folder: Path = Path(tempfile.gettempdir()) / "forestall"
    patience_s: Seconds = 120.0
    conf: dict[str, str] = {}

    @field_validator("conf")
    @classmethod
    def _are_spark_settings(cls, conf: dict[str, str]) -> dict[str, str]:
        if strangers := sorted(name for name in conf if not name.startswith("spark.")):
            raise ValueError(f"not settings of Spark, whose names begin with 'spark.': {', '.join(strangers)}")
        return conf


class TracingSettings(Group):
    """Spans for OpenTelemetry, from the request that brings an event to the alert and its webhooks.

    Attributes:
        endpoint: OTLP endpoint over HTTP to which spans are sent, such as ``http://127.0.0.1:4318``. The default path
            is ``/v1/traces``. None: no spans. Needs the extra ``otel``.
        sample_ratio: Share of requests that are traced. A request with a ``traceparent`` keeps the caller's decision.
        remember_s: How long the service remembers which traced request brought an event: at least for this time, at
            most for twice this time. An alert whose last event is older has no span.
        remember_events: Number of a stream's events that are remembered during this time. Each takes 200 bytes of
            Redis.
    """

    endpoint: str | None = None
    sample_ratio: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 1.0
    remember_s: Annotated[int, Field(ge=1, le=7 * 86_400)] = 3600
    remember_events: Count = 100_000

    @field_validator("endpoint")
    @classmethod
    def _takes_spans(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            _ = parts.port  # raises if not a number
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"{url!r} is not the address of a trace collector; write http://HOST:4318 or https://HOST/PATH"
            )
        return parts._replace(path="/v1/traces").geturl() if parts.path in ("", "/") else url


class _Environment(EnvSettingsSource):
    """The environment variables as a source of settings.

    A JSON text that cannot be read stays a text, so that it is reported with all other invalid values.
    """

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value


class Settings(BaseSettings):
    """All settings.

    Attributes:
        data_dir: Folder of the private Redis server and the pipeline's checkpoint.
        redis_url: URL of the Redis server, which may contain a password. None: a private server in ``data_dir`` is
            started.
        shards: Number of shards of a new event log. An existing log keeps its number.
        api_host: Address on which the API listens. Hosts other than loopback require a key.
        api_port: Port of the API.
        api_read_timeout_s: Longest time for the head of a request, and for its body, plus one second for each 50 kB.
        console_host: Address on which the console listens.
        console_port: Port of the console. 0: ``forestall serve`` starts no console.
        console_hosts: Names by which browsers reach the console, separated by commas, such as
            ``forestall.example.org``. IP addresses and ``localhost`` are always accepted. ``*``: any name.
        api_cors_origins: Origins of web pages that may call the API from a browser, separated by commas, such as
            ``https://ops.example.org``. Empty: none. Requests of these pages need a key.
        api_key: A key with all rights, for operators and containers. The command line sends it.
        url: Address of the service that commands call, such as ``https://forestall.example.org``. None: the address
            from ``api_host`` and ``api_port``.
        auth: Who needs a key. ``keys``: everyone. ``off``: no one, on loopback only. ``auto``: everyone, unless the API
            listens on loopback, ``api_key`` is not set and no key was ever created.
        log_retention_entries: Entries per shard that the pipeline leaves in the log for replays.
        runtime: How Spark runs the matcher. ``continuous``: one job of tasks that do not end. An alert takes about a
            tenth of a second. ``micro-batch``: one job after the other, each for the new events. An alert takes about
            half a second.
        trigger_interval_s: Interval between the starts of two micro-batches, if the first is done and there are new
            events.
        feed_interval_s: How often a feed polls its input.
        heartbeat_stale_s: The service counts as ready if the pipeline has reported within this time, which it does
            about once a second.
        snapshots: Where saved states of shards are kept: ``redis``, or a folder that every machine reaches under the
            same path. None: ``<data_dir>/snapshots`` if Spark's master is local, otherwise ``redis``.
        spark_master: Where Spark runs: ``local[N]`` on this machine with N tasks at a time, or a cluster as in
            ``spark://HOST:7077``. By default, N is half of the cores, because Java, the API and Redis use the other
            half, and fewer tasks hand over states of shards less often.
        backtest_dir: The only folder whose files backtests may read. None: backtests read only the log.
        stop_timeout_s: How long processes may take to finish their work when the service stops. After this time they
            are killed, and unfinished work is done after the next start.
        log_level: Lowest level that is logged: DEBUG, INFO, WARNING or ERROR, in any case.
        log_file_bytes: Bytes after which ``forestall serve`` rotates the log file of a process. Two older files are
            kept.
        life_dir: Folder for health checks of containers. The pipeline, the deliverer and the backtest worker each touch
            a file in it while they make progress. None: no files.
        parent_pid: Set by ``forestall serve`` for its processes, which end when the process with this id ends.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", frozen=True, extra="ignore", env_ignore_empty=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of settings by precedence: arguments, then the environment, then files."""
        del env_settings, dotenv_settings, file_secret_settings  # ``service.settings_files`` reads files instead
        return init_settings, _Environment(settings_cls), InitSettingsSource(settings_cls, file_values(settings_cls))

    data_dir: Path = Path("data")
    redis_url: SecretStr | None = None
    shards: Annotated[int, Field(ge=1, le=MAX_SHARDS)] = Field(default_factory=_default_shards)
    api_host: str = "127.0.0.1"
    api_port: Annotated[int, Field(ge=0, le=65535)] = 8000
    api_read_timeout_s: Seconds = 30.0
    console_host: str = "127.0.0.1"
    console_port: Annotated[int, Field(ge=0, le=65535)] = 8010
    console_hosts: str = ""
    api_cors_origins: str = ""
    api_key: SecretStr | None = None
    url: str | None = None
    auth: Literal["auto", "keys", "off"] = "auto"
    rate: RateSettings = RateSettings()
    webhooks: WebhookSettings = WebhookSettings()
    limits: Limits = Limits()
    work: WorkSettings = WorkSettings()
    pattern_work: PatternWorkSettings = PatternWorkSettings()
    batch: BatchLimits = BatchLimits()
    tracing: TracingSettings = TracingSettings()
    log_retention_entries: Annotated[int, Field(ge=0, le=_MOST)] = 10_000
    runtime: Literal["continuous", "micro-batch"] = "continuous"
    trigger_interval_s: Seconds = 0.1
    feed_interval_s: Seconds = 1.0
    heartbeat_stale_s: Annotated[float, Field(ge=5, le=_MOST_SECONDS, allow_inf_nan=False)] = 30.0
    snapshots: str | None = None
    spark_master: str = Field(default_factory=_default_master)
    spark: SparkSettings = SparkSettings()
    backtest_dir: Path | None = None
    stop_timeout_s: Seconds = 30.0
    log_level: str = "INFO"
    log_file_bytes: Annotated[int, Field(ge=10_000, le=_MOST)] = 20_000_000
    life_dir: Path | None = None
    parent_pid: Count | None = None

    @property
    def is_continuous(self) -> bool:
        """Whether long-running tasks advance the shards. Otherwise, micro-batches advance them."""
        return self.runtime == "continuous"

    @property
    def keeps_states_in_redis(self) -> bool:
        """Whether snapshots of shards are stored in Redis instead of a folder that every machine reaches."""
        is_local = self.spark_master.partition("[")[0] == "local"
        return self.snapshots == "redis" or (self.snapshots is None and not is_local)

    @property
    def snapshot_place(self) -> str:
        """Where snapshots of shards are stored: ``redis``, or the path of a folder."""
        return (
            "redis"
            if self.keeps_states_in_redis
            else str(Path(self.snapshots or self.data_dir / "snapshots").resolve())
        )

    @field_validator("redis_url")
    @classmethod
    def _is_a_redis_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not _names_a_server(url.get_secret_value()):
            raise ValueError(
                "this is not the URL of a Redis server; write redis://HOST:PORT/0, rediss://HOST:PORT/0 or "
                "unix:///PATH (it is not shown here, as it may contain a password)"
            )
        return url

    @field_validator("api_key")
    @classmethod
    def _is_long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < _FEWEST_KEY_CHARS:
            raise ValueError(f"an API key has at least {_FEWEST_KEY_CHARS} characters")
        return key

    @field_validator("snapshots")
    @classmethod
    def _is_a_place(cls, place: str | None) -> str | None:
        if place is not None and place != "redis" and place.strip().lower() == "redis":
            raise ValueError(f"{place!r} would be a folder; write redis, or ./{place} for the folder")
        return place

    @field_validator("spark_master")
    @classmethod
    def _is_a_master(cls, master: str) -> str:
        if not _SPARK_MASTER.fullmatch(master):
            raise ValueError(
                f"{master!r} is not a master of Spark; write local[N] with N of at least 1, local[*], "
                "spark://HOST:7077, yarn or k8s://HOST"
            )
        return master

    @field_validator("log_level")
    @classmethod
    def _is_a_log_level(cls, level: str) -> str:
        if level.upper() not in _LOG_LEVELS:
            raise ValueError(f"{level!r} is not a log level; use one of {', '.join(_LOG_LEVELS)}")
        return level.upper()

    @model_validator(mode="after")
    def _open_only_on_loopback(self) -> Settings:
        if self.auth == "off" and not is_loopback(self.api_host):
            raise ValueError(
                f"{PREFIX}API_HOST {self.api_host!r} can be reached from other machines, so keys are required: leave "
                f"out {PREFIX}AUTH, or listen on 127.0.0.1"
            )
        return self


def load_settings() -> Settings:
    """Read the settings from the environment. Raises ``SettingsInvalid``, which lists every invalid variable."""
    try:
        return Settings()
    except ValidationError as error:
        faults = [_variable(fault["loc"]) + _message(fault) for fault in error.errors()]
        raise SettingsInvalid("settings cannot be used:\n  " + "\n  ".join(faults), faults=list(faults)) from None


def given_variables() -> list[str]:
    """Return the sorted names of all environment variables that have the settings' prefix."""
    return sorted(name.upper() for name in os.environ if name.upper().startswith(PREFIX))


def is_loopback(host: str) -> bool:
    """Return whether a server on this host can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _names_a_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if not a number
    except ValueError:
        return False
    return bool(parts.hostname) if parts.scheme in ("redis", "rediss") else parts.scheme == "unix" and bool(parts.path)


def _message(fault: ErrorDetails) -> str:
    """Return the message about an invalid variable.

    For an unknown name, suggest the most similar setting of its group.
    """
    if fault["type"] in ("dict_type", "model_type"):
        return "not a JSON object (in a TOML file: a table)"  # the value is not shown, as it may contain a password
    if fault["type"].endswith("_parsing"):  # a number or a truth value, so no password
        return f"{fault['msg']}, got {fault['input']!r}"
    if fault["type"] != "extra_forbidden":
        return fault["msg"].removeprefix("Value error, ")
    group, name = (str(part) for part in fault["loc"])
    members = getattr(Settings.model_fields[group].annotation, "model_fields", {})
    return f"not a setting{did_you_mean(name.upper(), [member.upper() for member in members])}"


def _variable(place: tuple[int | str, ...]) -> str:
    return f"{PREFIX}{'__'.join(str(part).upper() for part in place)}: " if place else ""
