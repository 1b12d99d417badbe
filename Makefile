# Three commands: `make run` starts the service, `make demo` kills a worker, `make test` proves it.
# Each makes its own environment in .venv first; nothing else is needed but Python 3.11 and make.
# With PYTHON=python3.13 it makes and uses one of that version instead: .venv-3.13.

.DEFAULT_GOAL := help
BIN := $(if $(PYTHON),$(shell PYTHON="$(PYTHON)" scripts/setup where),.venv)/bin
# Many tests wait for processes and clocks, so more of them than cores; browsers need room beside them.
JOBS ?= 4
PYTEST := $(BIN)/python -m pytest
# Tests start hundreds of Python processes: each may use what the one before it compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run demo test test-quick check format setup bench soak docs screenshots build clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Run the service on an embedded store with demo tasks flowing; Ctrl-C stops it
	@scripts/setup run
	@exec $(BIN)/holdfast up --demo $(ARGS)

demo: ## See it survive a kill -9: workers, mixed tasks, and the promises counted at the end
	@scripts/setup run
	$(BIN)/holdfast demo $(ARGS)

test: ## Run every test, the ones that kill processes included
	@scripts/setup test
	$(PYTEST) -n $(JOBS) --dist worksteal $(ARGS)

test-quick: ## Run the tests that start no servers, within two minutes: single parts, and two stores
	@scripts/setup test
	$(PYTEST) -n $(JOBS) tests/unit tests/conformance/test_memory.py tests/conformance/test_sqlite.py $(ARGS)

check: ## Format, lint, types and layers, without changing anything
	@scripts/setup test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: ## Format the code and fix what ruff can fix
	@scripts/setup test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: ## Make the environment for development
	@scripts/setup test

bench: ## Measure this machine: Holdfast beside raw SQL and its peers, and write the page of it
	@scripts/setup test
	$(BIN)/python -m bench $(ARGS)

soak: ## Kill workers under load for MINUTES (5 by default) and count what was lost
	@scripts/setup test
	$(BIN)/python -m scripts.soak $(or $(MINUTES),5)

docs: ## Rewrite what is generated from the code: pages of docs/reference, rules for Prometheus
	@scripts/setup test
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/monitoring.py

screenshots: ## Take the pictures of the dashboard in docs/images anew
	@scripts/setup test
	$(BIN)/python -m scripts.screenshots

build: ## Build the wheel into dist/
	@scripts/setup test
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .
	@ls dist

clean: ## Remove the environment, the caches and what was built
	rm -rf .venv .venv-* .bench dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
