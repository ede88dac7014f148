"""The public Python front. Programs and notebooks import this package only, and nothing else is public.

Purpose: matching over tables in memory and over DataFrames, SQL row patterns, and the typed client of the HTTP API,
under one name. Promises: names load on demand, so ``import forestall`` is quick. Exported names follow semantic
versions. Results equal those of the command ``forestall`` on the same events.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
