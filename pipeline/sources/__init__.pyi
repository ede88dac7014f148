"""What the package exports: the source of the event log for Spark, and what it is read with; loaded on first use."""

from .event_log import EventLogSource as EventLogSource
from .log_reader import log_ends as log_ends
from .options import EventLogOptions as EventLogOptions
