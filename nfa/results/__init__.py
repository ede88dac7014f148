"""The results of a batch, as columns and as values."""
