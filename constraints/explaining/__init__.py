"""Explanations of early terminations and deviations, as a structured reason and as a sentence."""
