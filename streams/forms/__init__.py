"""The external forms of events: CloudEvents, plain JSON, columns of either; and limits of depth and integer size."""
