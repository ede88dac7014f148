"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .table import KINDS, KINDS_BY_NAME, RESULT_KINDS, result_table

__all__ = [
    "KINDS",
    "KINDS_BY_NAME",
    "RESULT_KINDS",
    "result_table",
]
