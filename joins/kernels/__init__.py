"""What runs for each event of a join."""
