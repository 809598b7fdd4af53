# Two commands do everything on a machine with Python 3.11 or newer: `make app` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# An empty stamp file records that the requirements are installed; it is older than the files when these change.
PYTHON_STAMP := $(VENV)/.stamp-python
APP_STAMP := $(VENV)/.stamp-app
TEST_STAMP := $(VENV)/.stamp-test
ARGS ?=
# Browser tests wait a third of their time: on two cores three processes take a tenth less time than two.
WORKERS ?= 3
RUNS ?= 10
BUSY ?= 4
SHARE ?= 1
SEED ?= 1
GATES ?=
MARKS ?=
BROWSER_TESTS = $(wildcard tests/app/test_*_browser.py) tests/app/test_accessibility.py tests/app/test_page.py
# Tests start hundreds of processes, and each process of the suite reads all tests: what is compiled once is kept, also
# where the environment asks Python to keep nothing.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help app install test test-all check lint format types imports security audit collect pytest stress soak bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

app: $(APP_STAMP) ## Install what the page needs and open it on http://127.0.0.1:7860 (PORT= changes the port)
	$(if $(PORT),PORT=$(PORT)) $(BIN)/python app.py

install: $(TEST_STAMP) ## Install everything, development tools included, and start nothing

test: $(TEST_STAMP) ## Lint, types, import rules and the tests, browser tests included, without the slow ones (some ten minutes)
	@$(MAKE) --no-print-directory -j2 check collect
	@$(MAKE) --no-print-directory pytest MARKS="not slow"

test-all: $(TEST_STAMP) ## The same with every test: what CI runs
	@$(MAKE) --no-print-directory -j2 check collect
	@$(MAKE) --no-print-directory pytest

check: lint types imports security ## Everything in `make test` that runs no code: seconds

lint: $(TEST_STAMP) ## Ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(TEST_STAMP) ## Let Ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(TEST_STAMP) ## Mypy, strict, on core_models, viz and zoo
	$(BIN)/mypy

imports: $(TEST_STAMP) ## The import rules between app, core_models, viz and zoo
	$(BIN)/lint-imports

security: $(TEST_STAMP) ## Bandit: what is unsafe in our code, of medium severity and above
	$(BIN)/bandit --quiet --recursive --severity-level medium --configfile pyproject.toml app.py app core_models viz zoo

# It asks a public list over the network, so it is no part of `make check`, and nothing else needs its packages.
audit: $(TEST_STAMP) ## Known weaknesses of the pinned packages (needs the network)
	$(PIP) install --quiet pip-audit && $(BIN)/pip-audit --no-deps --requirement constraints.txt

# Beside Mypy, which keeps one core busy. What is wrong with a test that cannot be read, pytest says.
collect: $(TEST_STAMP)
	@$(BIN)/python -m pytest --collect-only -qq -p no:cacheprovider >/dev/null 2>&1 || true

# A file's tests stay in one process, because they share servers and models; the long files come first (tests/conftest.py).
# `make pytest WORKERS=0` shows prints and takes --pdb.
pytest: $(TEST_STAMP) ## Every test in three processes, or those of MARKS="not slow"; ARGS= goes to pytest: make pytest ARGS="tests/core -k trace"
	CHROMIUM="$$(.ci/chromium)" && export CHROMIUM && $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "$(MARKS)" $(ARGS)

stress: $(TEST_STAMP) ## The browser tests ten times beside four processes that compute; RUNS=, BUSY=, MARKS="not slow"
	@CHROMIUM="$$(.ci/chromium)"; export CHROMIUM; busy=; trap '[ -z "$$busy" ] || kill $$busy' EXIT; \
	for process in $$(seq $(BUSY)); do (while :; do :; done) & busy="$$busy $$!"; done; \
	for run in $$(seq $(RUNS)); do \
	  echo "Run $$run of $(RUNS)"; $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m "$(MARKS)" $(BROWSER_TESTS) || exit 1; \
	done

soak: $(TEST_STAMP) ## The gates at full size (hours); SHARE=0.1 a tenth of it, SEED= other cases, GATES="-k files" some of them
	CHROMIUM="$$(.ci/chromium)" && export CHROMIUM && $(BIN)/python -m pytest -q -m gate --timeout 0 --soak $(SHARE) --seed $(SEED) $(GATES)

bench: $(TEST_STAMP) ## Measure, and write the figures into docs/benchmarks.md (more than an hour, quiet machine)
	CHROMIUM="$$(.ci/chromium)" && export CHROMIUM && $(BIN)/python -m benchmarks.report

clean: ## Remove the environment and the tools' caches (training runs stay)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .gradio

$(PYTHON_STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Cloze needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Could not create $(VENV). On Debian and Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }
	@touch $@

# torch first and alone: whichever build of the pinned version pip finds is settled before anything else asks for it.
$(APP_STAMP): requirements.txt constraints.txt | $(PYTHON_STAMP)
	@echo "Installing what Cloze needs into $(VENV). The first time this downloads some hundred megabytes."
	$(PIP) install "$$(grep '^torch==' constraints.txt)" -c constraints.txt
	$(PIP) install --quiet -r requirements.txt -c constraints.txt
	@touch $@

$(TEST_STAMP): requirements-dev.txt $(APP_STAMP)
	$(PIP) install --quiet -r requirements-dev.txt -c constraints.txt
	@touch $@
