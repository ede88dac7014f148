"""What a release has measured against what the one before had: a fifth less in a ratio, or another count, is told."""
