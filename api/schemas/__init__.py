"""Wire models: the JSON forms of requests and answers, one module per resource."""
