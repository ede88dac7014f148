"""The pattern language and the matcher: a library that needs no Spark, Redis or HTTP.

Purpose: pattern text to syntax tree, query graph, automaton tables and kernels over columnar batches; run state that
can be saved and loaded. Promises: the result depends only on the events and their order, never on the boundaries of
batches; an event costs constant work, however many combinations it takes part in; a run that can no longer complete
ends at the event that rules it out, by tables that a guard supplies; this package does not know constraints.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
