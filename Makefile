# Two commands for everyone: `make demo` and `make test`. Each sets up what it needs by itself.
# Everything else is `make check`, which contains `make test`; every target works alone.

VENV := .venv
PY := $(VENV)/bin/python
SOURCES := $(shell find src tests tools docs_src -name '*.py' 2>/dev/null) pyproject.toml
ARGS ?=
FIGURE ?=

.PHONY: demo test check style types imports coverage maxicov trace docs bench fix lock clean help env-demo env-dev

help:
	@echo "make demo      a Company and a Personal Agent on this machine, step by step (ARGS=--keep leaves it running)"
	@echo "make test      the tests (ARGS='tests/unit -k session' runs some of them)"
	@echo "make check     everything the gate asks: test style types imports coverage maxicov trace docs"
	@echo "make fix       formats, and mends what ruff can mend"
	@echo "make bench     the figures (FIGURE=session_check runs one)"
	@echo "make lock      resolves requirements/*.txt again"
	@echo "make clean     removes .venv and build"

env-demo:
	@tools/setup demo

env-dev:
	@tools/setup dev

demo: env-demo
	$(VENV)/bin/papaver demo $(ARGS)

# WATCHED=1 runs the same tests under coverage, for `coverage` and `maxicov`.
WATCHED ?=
test: env-dev
ifeq ($(WATCHED),)
	$(PY) -m pytest -n auto $(ARGS)
else
	rm -rf build/coverage && mkdir -p build/coverage
	$(PY) -m coverage run -m pytest -n auto $(ARGS)
	$(PY) -m coverage combine --quiet
	touch build/coverage/complete
endif

# First the tests (watched, so that they run once), then everything else that the gate asks.
check:
	$(MAKE) --no-print-directory test WATCHED=1
	$(MAKE) --no-print-directory style types imports coverage maxicov trace docs

style: env-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m tools.suppressions

fix: env-dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: env-dev
	$(PY) -m pyright --pythonpath $(PY)
	$(PY) -m mypy --strict docs_src

imports: env-dev
	$(VENV)/bin/lint-imports --no-logo

# `coverage` and `maxicov` read one watched run of the tests; it is made again when a source file is newer.
build/coverage/complete: $(SOURCES) | env-dev
	$(MAKE) --no-print-directory test WATCHED=1

coverage: env-dev build/coverage/complete
	$(PY) -m tools.floors rooms

maxicov: env-dev build/coverage/complete
	$(PY) -m tools.floors own

trace: env-dev
	$(PY) -m tools.trace --strict

docs: env-dev
	$(PY) -m pytest tests/docs tests/architecture

bench: env-dev
	$(PY) -m bench $(FIGURE)

# Needs uv, and only here; plain pip installs what it writes.
UV ?= uv
LOCK := $(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet
DEMO := --extra server --extra fastapi --extra agent --extra demo --group build
lock:
	$(LOCK) $(DEMO) -o requirements/demo.txt
	$(LOCK) $(DEMO) --extra otel --extra postgres --extra redis --group test --group check -c requirements/demo.txt -o requirements/dev.txt

clean:
	rm -rf $(VENV) build .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
