from .event_log import EventLogSource
from .log_reader import log_ends
from .options import EventLogOptions

__all__ = ["EventLogOptions", "EventLogSource", "log_ends"]
