"""What runs for each event of the algorithms."""
