"""The pattern language and the matcher: a library that needs no Spark, Redis or HTTP.

Purpose: compile pattern text to a syntax tree, query graph and automaton tables, and match columnar batches with
kernels. The state of a matcher can be saved and loaded. Promises: results depend only on the events and their order,
never on the boundaries of batches. An event costs constant work, however many combinations it takes part in. A run that
can no longer complete ends at the event after which a guard's tables show this. The package does not know constraints.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
