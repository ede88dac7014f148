"""What is known before the first event: what cannot match, what says nothing, what is worth watching."""
