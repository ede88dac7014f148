"""Inputs of the pipeline as Spark data sources."""

from pipeline.sources.event_log import EventLogSource, log_ends
from pipeline.sources.options import EventLogOptions

__all__ = ["EventLogOptions", "EventLogSource", "log_ends"]
