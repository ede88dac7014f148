"""The pattern language and the matcher: a library that needs no Spark, Redis or HTTP.

Purpose: compile pattern text to a syntax tree, query graph and automaton tables, and match columnar batches with
kernels. The state of a matcher can be saved and loaded. Promises: results depend only on the events and their order,
never on the boundaries of batches. The work for an event does not grow with the number of combinations that contain it.
A partial match ends at the first event after which a guard rules out its completion. The package does not know
constraints, because guards hide them.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
