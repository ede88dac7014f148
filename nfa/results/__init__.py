"""Results of a batch: columns, and values on request."""
