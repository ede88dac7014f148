"""What holds on every trace of a model: orders, exclusions, requirements, clauses, ends, and where each comes from."""
