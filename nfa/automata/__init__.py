"""Patterns as automata (states and transitions), and the query graph about which guards reason."""
