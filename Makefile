# Everything a person needs: `make demo` shows what abound does, `make test` tells whether it still does.
PYTHON ?= python3
VENV ?= .venv
DATA ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Beside the corrections that people make; `make clean` leaves both.
SERVED := $(VENV)/served/icd10.safetensors
PYTEST := $(BIN)/python -m pytest
# Python alone: ruff would also reformat the examples in Markdown, where comments are aligned.
CODE := src tests benchmarks examples docs/img

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-full fuzz lint docs bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## train a few learners on diagnosis codes and print one table
	$(BIN)/abound demo

serve: $(VENV)/.serve $(SERVED) ## serve a model of diagnosis codes that learns from corrections, with a page
	$(BIN)/abound serve $(SERVED) --learn --open

test: $(VENV)/.dev ## the tests and the examples in docstrings
	$(PYTEST) -m "not long"

test-full: test ## the same, then the long runs and the property tests with many more cases
	ABOUND_TEST_PROFILE=full $(PYTEST) -m "long or hypothesis"

fuzz: $(VENV)/.dev ## the property tests with new random cases each time
	ABOUND_TEST_PROFILE=fuzz $(PYTEST) -m hypothesis

lint: $(VENV)/.dev ## style, types, import layers, spelling
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs benchmarks examples Makefile .ci pyproject.toml mkdocs.yml *.md

docs: $(VENV)/.dev ## build the site into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.dev ## run all benchmarks, with DATA=folder
	$(BIN)/python benchmarks/run_all.py $(DATA)

clean: ## remove what the other targets made, but the virtual environment
	rm -rf site build dist out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { rm -f $@; exit 1; }

# The package is installed in place, so only a change of its dependencies asks for a new installation.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[demo]"
	@touch $@

$(VENV)/.serve: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[demo,serve]"
	@touch $@ $(VENV)/.demo

# The last weights of PA react to one example at once, averages hardly do.
$(SERVED): | $(VENV)/.serve
	@mkdir -p $(@D)
	$(BIN)/abound train builtin:icd10 --learner pa --set average=false --jobs -1 --model $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[dev]"
	@touch $@ $(VENV)/.demo $(VENV)/.serve
