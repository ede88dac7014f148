"""The language of a whole process: a workflow as one automaton, beside constraints (exact mode)."""
