# Everything a newcomer types. `make` alone prints the list.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
N ?= 10000
SEED ?= 0
KIND ?= all
JOBS ?= 2
KILLS ?= 26

# Commands and tests start hundreds of processes; without bytecode each compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo serve kafka-demo test test-all test-rest quick warm check docs-check format bench cluster-test faults fuzz mutants transcripts w3c wheel lock lock-demo first-minutes clean

help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev-stamp ## Make .venv with the locked dependencies and the graphtide command

# What the demo needs is installed in half the time of what the tests need.
$(VENV)/.%-stamp: pyproject.toml requirements/%.lock scripts/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" SETUP="$*" bash scripts/setup.sh
	@touch $@

demo: $(if $(wildcard $(VENV)/.dev-stamp),setup,$(VENV)/.demo-stamp) ## Watch a railway change: live + and - rows
	@$(BIN)/graphtide demo

serve: setup ## Serve a railway that changes, at http://127.0.0.1:8765/
	@$(BIN)/graphtide serve --demo

kafka-demo: setup ## The same between two topics of a Kafka broker that it starts and stops
	@$(BIN)/python examples/spark/kafka_demo.py

PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test: setup warm ## The verdict, in ten minutes: all but the slow tests, and the essential ones of those
	@$(PYTEST) --lane test $(ARGS)

test-all: setup warm ## Every test, in forty minutes, on two processes (JOBS=…)
	@$(PYTEST) $(ARGS)

test-rest: setup warm ## What `make test` leaves out
	@$(PYTEST) --lane rest $(ARGS)

quick: setup ## For every save, in two minutes: no slow test, properties on fewer examples
	@GRAPHTIDE_RECLAIM=always $(PYTEST) --lane quick $(ARGS)

warm: setup ## Once: compile the loops and store Java's classes, so that Spark starts sooner
	-@$(BIN)/graphtide warm

check: setup ## Formatting, lint, types, and the arrows between the layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs-check: setup ## Run every command that the README and the docs print (ARGS='--only docs/why', ARGS=--list)
	@$(BIN)/python scripts/docs_check.py $(ARGS)

format: setup ## Format the code and apply the safe lint fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup ## List the benchmarks; `make bench-NAME` runs one (JSON=file, ARGS=…)
	@$(BIN)/python -m benchmarks

bench-%: setup
	@$(BIN)/python -m benchmarks $* $(if $(JSON),--json $(JSON)) $(ARGS)

cluster-test: setup ## A standalone cluster whose hosts are cut off and killed
	@bash scripts/cluster-test.sh

w3c: setup ## The W3C's SPARQL suites: a line `SUITE WAY passed/total` for each
	@$(BIN)/python -m pytest tests/w3c -n $(JOBS) --dist worksteal -q --no-header -r fE $(ARGS)

fuzz: setup ## Random queries, streams and programs against the oracles (N=cases SEED=… KIND=…)
	@PYTHONPATH=tests $(BIN)/python -m oracles.fuzz --cases $(N) --seed $(SEED) --kind $(KIND)

mutants: setup ## Which of twenty mistakes the fuzz of schedules finds (ARGS=--tests for `make test`, too)
	@PYTHONPATH=tests $(BIN)/python -m mutants.run --jobs $(JOBS) $(ARGS)

transcripts: setup ## Compare what random schedules put out with what is frozen (N=schedules ARGS=--write)
	@PYTHONPATH=tests $(BIN)/python -m oracles.transcripts --count $(N) --jobs $(JOBS) $(ARGS)

faults: setup ## Kill writers of a store, and drivers, executors and workers of streams, hundreds of times, and compare (KILLS=… SEED=…)
	@GRAPHTIDE_KILLS=50 GRAPHTIDE_FLIPS=300 $(BIN)/python -m pytest tests/durable $(ARGS)
	@KILLS=$(KILLS) SEED=$(SEED) $(BIN)/python -m pytest tests/spark/faults -o faulthandler_timeout=7200 $(ARGS)

first-minutes: ## Measure a newcomer's first minutes, in a clone of this commit with nothing installed
	@bash scripts/first-minutes.sh

wheel: setup ## A wheel for this platform with the machine code of all loops in it
	@GRAPHTIDE_MACHINE_CODE=all $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--custom-compile-command 'make lock' --no-emit-index-url --no-emit-find-links pyproject.toml

lock: setup ## Choose dependency versions anew and write the locks
	@$(COMPILE) --upgrade --extra geo --extra notebook --extra serve --extra spark \
		--group bench --group dev --output-file requirements/dev.lock
	@$(MAKE) --no-print-directory lock-demo

lock-demo: setup # The demo's lock is a part of the other one
	@$(COMPILE) --extra spark --group install --constraint requirements/dev.lock \
		--output-file requirements/demo.lock

clean: ## Remove .venv and every cache
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
