"""The external forms of events: CloudEvents and plain JSON, one by one or by columns; limits of depth and integers."""
