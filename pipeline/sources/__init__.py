"""Inputs of the pipeline as Spark data sources, whose names are loaded on first use."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
