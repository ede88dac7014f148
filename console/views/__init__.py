"""The views of the console, one module for each page of the menu."""
