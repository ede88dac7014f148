"""Inputs of the pipeline as Spark data sources."""

from pipeline.sources.event_log import EventLogOptions, EventLogSource, log_key

__all__ = ["EventLogOptions", "EventLogSource", "log_key"]
