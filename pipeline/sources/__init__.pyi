"""Exports of the package: the event log as a source for Spark, its options, and functions that read it."""

from .event_log import EventLogSource as EventLogSource
from .log_reader import log_ends as log_ends
from .options import EventLogOptions as EventLogOptions
