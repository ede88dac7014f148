"""Results in Redis: alerts with acknowledgements and notes, and the latest of every other kind of result."""
