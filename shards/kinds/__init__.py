"""The kinds of operators: one module or package each, and the table of all of them."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
