"""The settings of the product's tests apply here; pytest runs one of the two folders at a time."""

pytest_plugins = ["tests.conftest"]
