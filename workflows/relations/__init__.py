"""Constraints that hold on every trace of a model: orders, exclusions, requirements, clauses, ends; their origins."""
