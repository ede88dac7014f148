"""Patterns as automata: progress, states and transitions; the query graph that guards reason about."""
