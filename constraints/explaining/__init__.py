"""Explanations why a partial match ended or a trace deviates, as a reason and as a sentence."""
