# Everything a newcomer needs: `make up`, `make test`, `make bench`. The only prerequisite is Python 3.11 or later.

.DEFAULT_GOAL := help
.PHONY: help up test units journeys conformance browser nightly guards test-rabbitmq test-pgbouncer test-sentinel \
  test-machines test-small test-upgrade test-alerts test-tracing chaos month bench check lock clean FORCE

BIN := .venv/bin
STAMP := .venv/installed
TOOLS := .conformance/installed
TRACING := .tracing/installed
BROWSER := .browser/installed
RUNNING := .data/running
CODE := app workers scheduler tests bench

# Nothing from outside .venv. Without byte code every process would compile all of the modules that it imports.
unexport PYTHONPATH
unexport PYTHONHOME
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make up     run the whole service here, with its own PostgreSQL, Redis and a webhook receiver"
	@echo "make test   the checks, the tests and the journeys; PARTS=check,units,journeys,conformance,browser for more or less"
	@echo "make nightly  what takes long or shows what changes rarely: all that is below, but for the benchmarks, and more"
	@echo "make journeys  the stories over the whole service alone"
	@echo "make test-rabbitmq  the same stories with RabbitMQ in place of Redis for bells; needs Debian's rabbitmq-server"
	@echo "make test-pgbouncer  the same stories behind PgBouncer in transaction mode; needs Debian's pgbouncer"
	@echo "make test-upgrade  an earlier release and this one side by side, and migrations of large tables; FROM=… and ROWS=…"
	@echo "make test-small  the same stories on the two processes of Procfile.small"
	@echo "make test-sentinel  a failover between Redis servers, with and without TLS; needs Debian's redis-server"
	@echo "make test-machines  three hosts and their data on a fourth, cut off from each other, and clocks that differ; needs root"
	@echo "make test-alerts  the alert rules in played faults; needs promtool, of Debian's prometheus"
	@echo "make test-tracing  a request's trace through all processes, as an OpenTelemetry collector sees it"
	@echo "make conformance  third-party tools against the API and its document; SEED=… changes their examples"
	@echo "make browser  the pages in Chromium: stories, accessibility, safety"
	@echo "make chaos  ten minutes of load and random faults, then the count; SECONDS=… and SEED=… change it"
	@echo "make month  four months of nights in which the clock jumps, with load and restarts; what grows is an error"
	@echo "make bench  the benchmarks, each against its peers"
	@echo "make check  ruff, mypy and the import rules alone"
	@echo "make lock   requirements*.txt from the short lists beside them; UPGRADE=1 takes the newest versions"
	@echo "make clean  remove .venv, .data and the caches"

up: $(RUNNING)

# At a signal, make deletes the file that a recipe was making, but forwards only SIGTERM. So the end of the file is the
# sign to stop.
$(RUNNING): $(STAMP) FORCE
	@mkdir -p $(@D) && touch $@ && exec $(BIN)/python -m tests.stack.up --while $@

# Leaves out the tests that only `make nightly` runs.
MARKED ?= not nightly
PYTEST := $(BIN)/python -m pytest -m "$(MARKED)"

# What has a target of its own.
APART := journeys conformance browser sentinel machines upgrade alerts tracing

# All at once: the stories mostly wait. PARTS names them.
PARTS := check,units,journeys
test: $(STAMP)
	@$(BIN)/python -m tests.lanes $(PARTS)

# They take what the stories leave of the processors.
units: $(STAMP)
	nice $(PYTEST) -v -n 2 $(APART:%=--ignore tests/%)

# The whole service in real processes, on two stacks beside each other.
journeys: $(STAMP)
	$(PYTEST) -v -n 2 tests/journeys --durations=10

conformance: $(STAMP) $(TOOLS)
	SEED=$(SEED) $(PYTEST) -v --durations=5 tests/conformance

browser: $(STAMP) $(BROWSER)
	$(PYTEST) -v --durations=5 tests/browser

# What takes long or shows what changes rarely: needs root and Debian's packages.
NIGHTLY := guards chaos month test-small test-rabbitmq test-pgbouncer test-sentinel test-machines test-upgrade \
  test-alerts test-tracing

nightly: $(STAMP)
	@tests/install-nightly
	@MARKED=nightly $(BIN)/python -m tests.lanes units,journeys,conformance,browser $(NIGHTLY)

guards: $(STAMP)
	$(BIN)/python -m tests.guards

# The same with RabbitMQ, or with PgBouncer, which the machine must have, and without `make up`, which starts neither. The
# delayed bells are about consumers of Redis, and PgBouncer answers for a PostgreSQL that hangs.
test-rabbitmq: $(STAMP)
	BROKER=rabbitmq $(BIN)/python -m pytest tests/journeys --durations=10 \
	  --ignore tests/journeys/test_delayed_bells.py --ignore tests/journeys/test_make_up.py

test-pgbouncer: $(STAMP)
	POOLER=pgbouncer $(BIN)/python -m pytest tests/journeys --durations=10 \
	  --ignore tests/journeys/test_hangs.py --ignore tests/journeys/test_make_up.py

# FROM is a commit: by default the newest release before this one, or without one that before the newest migration.
test-upgrade: $(STAMP)
	FROM=$(FROM) $(BIN)/python -m pytest -s tests/upgrade
	$(BIN)/python -m tests.upgrade $(if $(ROWS),--rows $(ROWS))

# Without the stories that need more processes, and without `make up`, which copies the other Procfile.
test-small: $(STAMP)
	PROCFILE=small $(BIN)/python -m pytest tests/journeys --durations=10 -m "not several_processes" \
	  --ignore tests/journeys/test_make_up.py

test-sentinel: $(STAMP)
	$(BIN)/python -m pytest -s tests/sentinel

# In namespaces of their own, so that all of it goes with the first process: addresses, routes and processes.
test-machines: $(STAMP)
	@unshare --net --pid --fork true || { echo "Needed: root, to make network namespaces on Linux." >&2; exit 1; }
	unshare --net --pid --fork --kill-child --mount-proc $(BIN)/python -m pytest -s tests/machines

test-alerts: $(STAMP)
	$(BIN)/python -m pytest tests/alerts --durations=5

test-tracing: $(STAMP) $(TRACING)
	PYTHONPATH=.tracing/packages $(BIN)/python -m pytest -s tests/tracing --durations=5

chaos: $(STAMP)
	$(BIN)/python -m tests.chaos $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

month: $(STAMP)
	$(BIN)/python -m tests.month

bench: $(STAMP)
	$(BIN)/python -m bench

check: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

LOCKED := requirements requirements-dev requirements-tracing tests/conformance/requirements tests/browser/requirements

# Every package with its hashes, those that others need included, for every supported Python.
lock: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input uv==0.13.9
	@for list in $(LOCKED); do \
	  echo "Locking $$list.txt"; \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    $(if $(UPGRADE),--upgrade) $$list.in -o $$list.txt || exit 1; \
	done

clean:
	rm -rf .venv .conformance .browser .tracing .schemathesis .data .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# Rebuilt when the requirements change; an interrupted installation leaves no stamp and is repeated.
$(STAMP): requirements.txt requirements-dev.txt
	@[ -x $(BIN)/python ] || $(MAKE) --no-print-directory .venv
	@echo "Installing the packages of requirements-dev.txt (the first time takes a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r requirements-dev.txt
	@touch $@

$(TOOLS): $(STAMP) tests/conformance/install tests/conformance/requirements.txt tests/conformance/package-lock.json
	@tests/conformance/install
	@touch $@

# Apart from .venv, so that everything else shows that the service does without them.
$(TRACING): $(STAMP) requirements-tracing.txt
	@echo "Installing the packages of requirements-tracing.txt into .tracing"
	@rm -rf .tracing
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
	  --target .tracing/packages -r requirements-tracing.txt
	@touch $@

$(BROWSER): $(STAMP) tests/browser/install tests/browser/requirements.txt tests/browser/package-lock.json
	@tests/browser/install
	@touch $@

.venv:
	@for python in python3.11 python3 python3.12 python3.13 python3.14; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "Making .venv with $$("$$python" -V)"; \
	    "$$python" -m venv .venv || rm -rf .venv; \
	    [ -x $(BIN)/python ]; exit; \
	  fi; \
	done; \
	echo "Python 3.11 or later is needed; python3 here is: $$(python3 -V 2>&1)" >&2; exit 1
