"""The console's views: one module for each page of the menu."""
