"""What was found in a batch, as columns; values on request."""
