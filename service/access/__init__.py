"""Who may do what: API keys, and whose a token is."""
