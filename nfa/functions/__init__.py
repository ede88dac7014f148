"""Functions of one event: a table with the types, the evaluation over columns, and the description of each function."""
