"""Patterns as a kind of operator: the matcher of ``nfa`` under the constraints of the stream."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
