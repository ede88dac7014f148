"""The event log in Redis Streams as a streaming source of Spark. The module ``log_reader`` has its reader.

Spark starts a process for each query only to create the source, so this module imports nothing that loads slowly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pipeline.sources.log_reader import EventLogReader
    from pipeline.sources.options import EventLogOptions

SCHEMA_DDL = "shard INT, after STRING, position STRING, kind STRING, stream STRING, route STRING, body BINARY"


class EventLogSource(DataSource):
    """Spark's data source ``forestall_event_log``, for the event log. Its options are those of ``EventLogOptions``."""

    source_options: ClassVar[EventLogOptions]

    @classmethod
    def name(cls) -> str:
        return "forestall_event_log"

    def schema(self) -> str:
        return SCHEMA_DDL

    def streamReader(self, schema: StructType) -> EventLogReader:
        from pipeline.sources.log_reader import EventLogReader  # noqa: PLC0415 - takes long

        return EventLogReader(self.source_options)
