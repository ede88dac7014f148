"""Results in Redis: the alert log with acknowledgements and notes, and capped lists of all other kinds of results."""
