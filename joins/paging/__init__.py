"""Rows of a join on disk, so that a bounded number of rows is in memory while the results stay the same."""

from joins.paging.pager import Pager
