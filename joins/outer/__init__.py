"""Joins of more than two inputs, some of which may be absent: their meaning, and the reasons of absences.

They report the full disjunction of their inputs: each combination that is part of no larger one. ``joins.WindowJoin``
finds these combinations (``optional``).
"""

from joins.kernels.tables import FINISHED
from joins.outer.deciding import decided_by_the_end, words_of
