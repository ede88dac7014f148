"""Rows of a join on disk: a bounded number of rows is in memory, and the results stay the same."""

from joins.paging.pager import Pager
