"""What a whole process allows: the language of a workflow as one automaton, beside constraints (exact mode)."""
