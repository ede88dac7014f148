"""The external forms of events, CloudEvents and plain JSON, read one by one or by columns, with limits of size."""
