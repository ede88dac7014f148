"""Wire models: the forms of requests and answers, one module per resource."""
