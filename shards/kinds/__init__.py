"""The kinds of operators: one module or package for each kind, and the table of all kinds."""

from shards.kinds.table import (
    COUNTED,
    DECIDERS,
    DOCUMENT_KINDS,
    EXERCISES,
    KINDS,
    KINDS_BY_NAME,
    RESULT_KINDS,
    USUAL_KINDS,
    require_final,
    result_table,
)
