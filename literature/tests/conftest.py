"""What holds for the tests of the product holds here; pytest runs one of the two folders at a time."""

pytest_plugins = ["tests.conftest"]
