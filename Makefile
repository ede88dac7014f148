# Each target does all its own set-up; only Python 3.11+, Java 17 and make have to be there.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-runtime check-java demo serve check test test-deep literature bench bench-peers pins clean

help:
	@echo "make demo    the whole service on generated orders, ends with a table"
	@echo "make serve   the service for your own events (options: ARGS='--port 8001')"
	@echo "make test    every test but the benchmarks, in two stages (one of them: ARGS=first, ARGS=last)"
	@echo "make test-deep  ten times the random examples, from new seeds (again: SEED=N); other engines; literature/"
	@echo "make check   format, lint, layers, types, dependencies, house rules"
	@echo "make literature  tests of published algorithms that the product does not use"
	@echo "make bench   the benchmarks"
	@echo "make bench-peers  side by side with other engines, which it installs below .peers (ARGS='--quick')"
	@echo "make setup   .venv with the pinned packages and .venv/bin/forestall"
	@echo "make setup-runtime  the same without the packages of tests and checks"
	@echo "make pins    compile requirements/*.txt anew from pyproject.toml"
	@echo "make clean   remove what was built, .venv included; your data folder stays"

setup:
	@scripts/setup

setup-runtime:
	@scripts/setup runtime

check-java:
	@scripts/check-java

demo: check-java setup-runtime
	@.venv/bin/forestall demo $(ARGS)

serve: check-java setup-runtime
	@.venv/bin/forestall serve $(ARGS)

check: setup
	@scripts/check

test: check-java setup
	@scripts/test $(ARGS)

test-deep: check-java setup
	@scripts/bench peers --set-up
	@scripts/test deep

literature: setup
	@scripts/literature $(ARGS)

bench: check-java setup
	@scripts/bench $(ARGS)

bench-peers: check-java setup
	@scripts/bench peers $(ARGS)

pins: setup
	@scripts/compile-pins $(ARGS)

clean:
	@rm -rf .venv .peers dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
