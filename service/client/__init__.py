"""The client of the HTTP API, synchronous and asynchronous, with types that are generated from the API's description.

Purpose: programs, the command line and the web console share one implementation of calls, with retries, idempotency,
pages, server-sent events and errors. Promises: if a creation is repeated after a lost answer, nothing is created twice.
An iterator over server-sent events resumes after its last event. An error has the code of its problem document. No
module imports the API's framework, the stores or Spark, and each module is imported on demand.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
