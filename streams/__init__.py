"""The event model, independent of any pattern.

Purpose: the external form of an event (CloudEvents or plain JSON), the internal form (a columnar batch), the
declaration of a stream, the records of the event log, event time, and the root of the error tree.

Promises: values are immutable, the order of rows is the order of the log, and no module here depends on code that reads
a batch.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
