"""Inputs of the pipeline as Spark data sources."""

from pipeline.sources.event_log import EventLogOptions, EventLogSource

__all__ = ["EventLogOptions", "EventLogSource"]
