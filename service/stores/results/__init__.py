"""Results in Redis: alerts and their marks, and the latest of every other kind of result."""
