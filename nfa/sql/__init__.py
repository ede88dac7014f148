"""SQL row patterns: MATCH_RECOGNIZE over tables of Arrow.

Purpose: parse a query to a syntax tree, compile its pattern to a program and its conditions to columns or programs,
search with kernels, and return the result as a table. Promises: queries mean what ISO/IEC 9075-2:2016 says, including
the preference among matches. Work is bounded. Unsupported constructs are refused by name, with line and column.
"""
