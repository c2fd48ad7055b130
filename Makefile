# Everything a newcomer needs: `make up`, `make test`, `make bench`. Only Python 3.11 or later must be there beforehand.

.DEFAULT_GOAL := help
.PHONY: help up test bench check clean

BIN := .venv/bin
STAMP := .venv/installed
CODE := app workers scheduler tests bench

# Nothing from outside .venv.
unexport PYTHONPATH
unexport PYTHONHOME

help:
	@echo "make up     run the whole service here, with its own PostgreSQL, Redis and a webhook receiver"
	@echo "make test   every check and every test"
	@echo "make bench  the benchmarks, each against its peers"
	@echo "make check  ruff, mypy and the import rules alone"
	@echo "make clean  remove .venv, .data and the caches"

up: $(STAMP)
	@exec $(BIN)/python -m tests.stack.up

test: check
	$(BIN)/python -m pytest -n 2 --ignore tests/journeys
	$(BIN)/python -m pytest tests/journeys

bench: $(STAMP)
	$(BIN)/python -m bench

check: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv .data .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# Remade when the requirements change; a half-finished installation leaves no stamp and is done again.
$(STAMP): requirements.txt requirements-dev.txt
	@python=$$(command -v python3.11 || command -v python3) || { echo "Python 3.11 or later is needed; no python3 was found." >&2; exit 1; }; \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; $$python is $$("$$python" -V 2>&1)." >&2; exit 1; }; \
	[ -x $(BIN)/python ] || { echo "Making .venv with $$("$$python" -V)"; "$$python" -m venv .venv || { rm -rf .venv; exit 1; }; }
	@echo "Installing the packages of requirements-dev.txt (the first time takes a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input -r requirements-dev.txt
	@touch $@
