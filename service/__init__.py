"""The running service, without HTTP.

Purpose: settings, the private Redis server, the stores, registration, the intake of events into the log, the sink of
the rows, and the delivery of alerts. Promises: an acknowledged change is in Redis; a control record and the registry
change together or not at all; every write of the pipeline may be repeated without harm; when the deliveries of an alert
are queued, each webhook whose filters select the alert gets it at least once. The package does not depend on FastAPI.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
