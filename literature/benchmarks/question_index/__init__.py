"""Experiments of the parameterised group-by: index methods, search of configurations, and tuning."""
