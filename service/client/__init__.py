"""The client of the HTTP API: synchronous and asynchronous, typed from the API's own description.

Purpose: one implementation of calls for programs, the command line and the web console: retries, idempotency, pages,
server-sent events, errors. Promises: a creation that is repeated after a lost answer creates nothing twice, an
iterator over server-sent events resumes after its last event, and an error has the code of its problem document. No
module imports the API's framework, stores or Spark, and each module is imported on demand.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
