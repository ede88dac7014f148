"""SQL row patterns: MATCH_RECOGNIZE over tables of Arrow.

Purpose: the text of a query to a syntax tree, its pattern to a program, its conditions to columns or programs, kernels
that search, and the result as a table. Promises: the meaning is that of ISO/IEC 9075-2:2016, with its preference among
matches; work is bounded; unsupported constructs are refused by name, with line and column.
"""
