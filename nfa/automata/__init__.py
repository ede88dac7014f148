"""Patterns as automata (progress, states, transitions), and the query graph that guards reason about."""
