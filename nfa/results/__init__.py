"""Results of a batch, as columns, with values on request."""
