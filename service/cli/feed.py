"""``forestall feed``: append events of folders and Kafka topics to the log, continuously or once (``--once``)."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event as Signal
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.markup import escape

from pipeline import FeedFolderMissing, build_session, check_java, end_session
from pipeline.feeds import FeedOptions, FeedQuery, FolderOptions, KafkaOptions, cluster_of, start_feed
from service.cli.choices import as_seconds
from service.cli.columns import FILE_OPTIONS, MESSAGE_OPTIONS, merged_options, with_options
from service.cli.inputs import chosen_key, read_text
from service.cli.output import EventsAsJson, Tell, counted, telling
from service.intake.feeds import FeedProgress, FeedSink, opened_feed
from service.intake.posting import Intake
from service.observing.logs import configure_logs
from service.process import signals_held
from service.processes.cluster import session_options
from service.runtime import open_stores
from service.settings import Settings, load_settings
from streams import FieldMapping, StreamDeclaration, SystemClock, members_of, name_fault, places_of
from streams.readers import ReaderOptions, RowLayout, reading_of

feed = typer.Typer(
    help="Append events to a stream from a folder (feed folder) or from Kafka topics (feed kafka).",
    no_args_is_help=True,
)

KeyColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[TYPE=]COLUMN", help="Column of the correlation key, for all event types or for TYPE. Repeatable."
    ),
]
KeyPath = Annotated[
    list[str] | None,
    typer.Option(
        "--key-path",
        "--key",
        metavar="[TYPE=]PATH",
        help="Path of the correlation key, for all event types or for TYPE. Repeatable.",
    ),
]

_SHOWN_EVERY_S = 5.0


FileFormat: TypeAlias = Literal["jsonl", "csv", "xes", "parquet"]
"""Format of the files of a folder."""

From: TypeAlias = Literal["earliest", "latest"]
"""Where a new feed starts reading a topic."""


_MakeSource: TypeAlias = Callable[[StreamDeclaration, Settings, Path], FolderOptions | KafkaOptions]
"""A function that makes the source of a feed from the stream's declaration, the settings and the feed's folder."""


@feed.command()
@with_options(FILE_OPTIONS)
def folder(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to read files from.")],
    stream: Annotated[str, typer.Option(help="Declared stream to append to.")],
    file_format: Annotated[
        FileFormat | None, typer.Option("--format", help="Format of all files (default: by file name).")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Read what is available now, then exit.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the feed (default: STREAM-folder-DIR).")] = None,
    key: KeyColumn = None,
    max_rows: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of rows per micro-batch.")] = 10_000,
    is_json: EventsAsJson = False,
) -> None:
    """Append the events of files as they appear in a folder: .jsonl, .csv, .xes, each also .gz, and .parquet."""
    if not directory.is_dir():
        raise FeedFolderMissing(f"{directory} is not a folder; create it, or name another one", folder=str(directory))
    where = directory.resolve()
    mapping = _mapping(context.params)

    def make_source(declaration: StreamDeclaration, settings: Settings, state: Path) -> FolderOptions:
        return FolderOptions(
            folder=where,
            state=state,
            kind=file_format,
            layout=replace(
                layout_for(declaration, settings.limits.max_body_bytes),
                mapping=mapping,
                key=declaration.key,
            ),
            max_rows=max_rows,
        )

    feed_name, source = _checked_name(name, f"{stream}-folder-{where.name}"), f"folder {where}"
    _run(feed_name, stream, source, make_source, telling(is_json=is_json), is_once=once)


ClientSettings = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Setting of librdkafka, such as security.protocol=SASL_SSL. Repeatable."),
]
ClientFile = Annotated[
    Path | None, typer.Option(help="File of such settings, one per line. Put passwords here, not in --option.")
]
Patience = Annotated[
    float, typer.Option(parser=as_seconds, metavar="DURATION", help="Timeout of requests to the brokers.")
]


@feed.command()
@with_options(MESSAGE_OPTIONS)
def kafka(
    context: typer.Context,
    servers: Annotated[str, typer.Option(metavar="HOST:PORT,…", help="Bootstrap servers, separated by commas.")],
    topic: Annotated[list[str], typer.Option(help="Topic to read. Repeatable.")],
    stream: Annotated[str, typer.Option(help="Declared stream to append to.")],
    option: ClientSettings = None,
    option_file: ClientFile = None,
    begin: Annotated[From, typer.Option("--from", help="Where a new feed starts in the topic.")] = "earliest",
    once: Annotated[bool, typer.Option("--once", help="Read what is available now, then exit.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the feed (default: STREAM-kafka-TOPIC).")] = None,
    max_rows: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of records per micro-batch.")
    ] = 10_000,
    key: KeyPath = None,
    patience: Patience = 30.0,
    is_json: EventsAsJson = False,
) -> None:
    """Append the records of Kafka topics: CloudEvents, or plain JSON read by the stream's mapping or these options."""
    mapping = _mapping(context.params)
    topics = tuple(dict.fromkeys(topic))
    options = KafkaOptions(
        servers=servers,
        topics=topics,
        begin=begin,
        settings=_settings_of(option_file, option or []),
        max_rows=max_rows,
        timeout_s=patience,
    )

    def make_source(declaration: StreamDeclaration, settings: Settings, _state: Path) -> KafkaOptions:
        most = settings.limits.max_body_bytes
        return replace(options, max_row_bytes=most, mapping=mapping, key=declaration.key)

    source = f"topic {', '.join(topics)} of Kafka cluster {cluster_of(options)}"
    feed_name = _checked_name(name, f"{stream}-kafka-{'-'.join(topics)}")
    _run(feed_name, stream, source, make_source, telling(is_json=is_json), is_once=once)


def _mapping(arguments: Mapping[str, Any]) -> ReaderOptions | None:
    mapping = merged_options(ReaderOptions(key=chosen_key(arguments["key"])), arguments)
    return None if mapping == ReaderOptions() else mapping


def layout_for(declaration: StreamDeclaration, max_row_bytes: int) -> RowLayout:
    """Return which columns a feed reads from the files of a stream.

    The columns are those of the stream's mapping. Without a mapping, they have the usual names.
    """
    defaults = RowLayout()
    key = declaration.key
    mapping = declaration.mapping
    if mapping == FieldMapping():
        assert defaults.top is not None
        key_members = members_of(key)
        return RowLayout(
            top=defaults.top | key_members, texts=defaults.texts | key_members, max_row_bytes=max_row_bytes
        )
    ids = mapping.paths["id"]
    member_paths = frozenset({*ids, mapping.type, mapping.time, *places_of(key), "subject", "key"})
    return RowLayout(
        top=None if mapping.data is None else frozenset(name for name in member_paths if not name.startswith("data.")),
        data=mapping.data or "data",
        texts=frozenset({*ids, mapping.type, *places_of(key)}),
        id=mapping.id,
        written=reading_of(declaration),
        time=mapping.time,
        max_row_bytes=max_row_bytes,
    )


def _settings_of(file: Path | None, options: list[str]) -> Mapping[str, str]:
    """Read settings from a file and the command line, which takes precedence. Errors never contain values."""
    lines = [] if file is None else read_text(file).splitlines()
    settings: dict[str, str] = {}
    for text in [*(line.strip() for line in lines), *options]:
        if text and not text.startswith("#"):
            name, sign, value = text.partition("=")
            if not sign or not name.strip():
                raise typer.BadParameter("a setting is written NAME=VALUE, such as security.protocol=SASL_SSL")
            settings[name.strip()] = value.strip()
    return settings


def _checked_name(name: str | None, default_name: str) -> str:
    feed_name = name if name is not None else re.sub(r"[^A-Za-z0-9._-]+", "-", default_name)[:100]
    if fault := name_fault("feed", feed_name):
        raise typer.BadParameter(fault)
    return feed_name


def _run(name: str, stream: str, source: str, make_source: _MakeSource, tell: Tell, *, is_once: bool) -> None:
    check_java()
    settings = load_settings()
    configure_logs(settings.log_level)
    with open_stores(settings) as stores:
        declaration = stores.registry.stream(stream)
        with opened_feed(settings.data_dir, name, stream, source) as opened:
            stop = Signal()
            intake = Intake(stores.log, stores.registry, settings.limits, SystemClock())
            sink = FeedSink(intake, stores.feeds, opened, settings.limits, stop)
            sink.check()
            options = FeedOptions(
                source=make_source(declaration, settings, opened.folder),
                state=opened.folder,
                interval_s=settings.feed_interval_s,
                is_bounded=is_once,
            )
            sentence = f"feed {escape(name)}: {escape(source)} to stream {escape(stream)}"
            tell("started", sentence, feed=name, source=source, stream=stream)
            teller = _Teller(name, sink.progress, tell)
            _feed(settings, options, sink, stop, teller.look)
    teller.tell("ended")
    raise typer.Exit(1 if is_once and sink.progress.rejected else 0)


def _feed(settings: Settings, options: FeedOptions, sink: FeedSink, stop: Signal, look: Callable[[], None]) -> None:
    query: FeedQuery | None = None

    def end(*_: object) -> None:
        stop.set()
        if query is not None:
            query.request_stop()

    with ExitStack() as ends:
        with signals_held():  # a signal in this block would leave Spark's Java process running
            session = build_session(session_options(settings))
            ends.callback(end_session, session)
            query = start_feed(session, options, sink)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        query.wait(look=look)


class _Teller:
    def __init__(self, name: str, progress: FeedProgress, tell: Tell) -> None:
        self._name = name
        self._tell = tell
        self._progress = progress
        self._shown_at = time.monotonic()
        self._shown: object = None

    def look(self) -> None:
        now = time.monotonic()
        progress = self._progress
        counts = (progress.accepted, progress.rejected, progress.duplicates, progress.waiting)
        if now < self._shown_at + _SHOWN_EVERY_S or counts in (self._shown, (0, 0, 0, "")):
            return
        self._shown_at, self._shown = now, counts
        self.tell("waits" if self._progress.waiting else "runs")

    def tell(self, state: str) -> None:
        progress = self._progress
        repeated = f", {counted(progress.repeated, 'repeated row', form=',')} skipped" if progress.repeated else ""
        dropped = f"; {_dropped(progress.duplicates)}" if progress.duplicates else ""
        how = f"{state}: {progress.waiting}" if state == "waits" else state
        self._tell(
            state,
            f"feed {escape(self._name)} {escape(how)}: {counted(progress.accepted, 'event', form=',')} appended, "
            f"{counted(progress.rejected, 'dead letter', form=',')}{repeated}{dropped}",
            feed=self._name,
            accepted=progress.accepted,
            rejected=progress.rejected,
            duplicates=progress.duplicates,
            repeated=progress.repeated,
            waiting=progress.waiting or None,
        )


def _dropped(count: int) -> str:
    if count == 1:
        return "1 event had the id of an earlier event and was dropped"
    return f"{count:,} events had the id of an earlier event and were dropped"
