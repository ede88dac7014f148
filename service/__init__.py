"""The running service, without HTTP.

Purpose: settings, the private Redis server, the stores, registration, the intake of events into the log, the sink of
the rows, and the delivery of alerts.

Promises: An acknowledged change is stored in Redis. A control record and the registry change together or not at all.
Every write of the pipeline may be repeated without harm. Once the deliveries of an alert are queued, each webhook whose
filters select the alert receives it at least once.

The package does not depend on FastAPI.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
