"""Languages of workflows: from blocks or from markings to the one minimal automaton."""
