"""Wire models: what requests and answers look like, one module per resource."""
