# whygpu: `make check` diagnoses this machine, `make test` runs every test.
# Needs Python 3.10 or newer and make; everything else is installed into .venv and .targets.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := tests/real tests/lab tests/hardware
# These start whole programs for each test, servers and commands of the documentation among them.
WHOLE := tests/docs tests/faults tests/agent tests/editor tests/test_action.py
# Each process imports and collects every test, which takes three seconds: few of them are enough.
UNITS := -n auto --maxprocesses 4 $(FRAMEWORKS:%=--ignore=%) $(WHOLE:%=--ignore=%)
# Two files at a time: each test starts a framework, which keeps one core busy and takes up to 2 GB,
# and the tests of a file share what took one long to do. tests/real/conftest.py has their order.
REAL := -n 2 --dist loadfile --no-loadscope-reorder

# Byte code is wanted: some environments switch it off, and imports then take three times as long.
export PYTHONDONTWRITEBYTECODE :=

.NOTPARALLEL:
.PHONY: check test test-full test-fast test-slow fuzz test-lab-full lint fix docs site new-cause targets targets-cuda benchmark package clean

check: $(VENV)/ready ## Diagnose this machine
	@$(BIN)/whygpu check; code=$$?; \
	if [ $$code -eq 1 ] || [ $$code -eq 4 ]; then exit 0; else exit $$code; fi

test: lint targets test-fast test-slow ## Style, types, and the tests, real frameworks included
	$(BIN)/python -m pytest $(REAL) -m "not full" tests/lab tests/real

test-full: lint targets test-fast test-slow ## The same, and what few changes can break
	$(BIN)/python -m pytest $(REAL) tests/lab tests/real

test-lab-full: targets-cuda ## The fault lab with NVIDIA's real wheels as well
	$(BIN)/python -m pytest $(REAL) tests/lab

fuzz: $(VENV)/dev ## 10,000 hostile inputs for every verb (some 5 minutes on two cores)
	$(BIN)/python -m tools.fuzz --inputs 10000

test-fast: $(VENV)/dev ## The everyday suite: no frameworks, a minute of processor time
	$(BIN)/python -m pytest $(UNITS) -m "not slow"

test-slow: $(VENV)/dev $(VENV)/docs $(VENV)/pages ## What takes longer and needs no framework
	$(BIN)/python -m pytest $(UNITS) -m slow
	$(BIN)/python -m pytest $(REAL) $(WHOLE)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.portability
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	@if command -v actionlint > /dev/null; then actionlint; else \
		echo "actionlint is not installed: the workflows were compared with their schema only"; fi

fix: $(VENV)/dev ## Repair style where that can be done by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/dev ## Generate docs/causes, the ledger, schemas, reference, completions, manual page, and output on pages
	$(BIN)/python -m tools.docs
	$(BIN)/python -m tools.message_index
	$(BIN)/python -m tools.schemas
	$(BIN)/python -m tools.phrase_words
	$(BIN)/python -m tools.package_graph
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.completions
	$(BIN)/python -m tools.man_page
	$(BIN)/python -m tools.docs_commands

site: $(VENV)/docs ## The documentation as a site, in site
	@test -x $(BIN)/zensical || { echo "make site needs Python 3.11 or newer: make clean, then PYTHON=python3.11 make site"; exit 1; }
	$(BIN)/zensical build --strict

new-cause: $(VENV)/dev ## make new-cause FAMILY=libraries SLUG=some-defect, with SEEN_IN="log" for that detector only
	@$(BIN)/python -m tools.new_cause "$(FAMILY)" "$(SLUG)" "$(SEEN_IN)"

targets: $(VENV)/dev ## Build the framework environments that tests examine
	$(BIN)/python -m tests.targets

targets-cuda: $(VENV)/dev ## The ones with all CUDA wheels too (about 10 GB)
	$(BIN)/python -m tests.targets tensorflow-2.21-cuda jax-cuda12

benchmark: $(VENV)/dev targets ## Time whygpu beside its peers
	$(BIN)/python -m benchmarks.check_speed
	$(BIN)/python -m benchmarks.explain_speed

package: $(VENV)/dev ## The source distribution and the wheel of the last commit, in dist
	$(BIN)/python -m pip install -q build check-wheel-contents twine
	$(BIN)/python -m tools.build_package

clean:
	rm -rf $(VENV) .targets build dist site .cache src/*.egg-info

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "whygpu needs Python 3.10 or newer; set PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q -e '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $@ $(VENV)/ready

$(VENV)/pages: $(VENV)/dev
	$(BIN)/python -m pip install -q -e '.[pages]'
	@touch $@

$(VENV)/docs: $(VENV)/dev
	$(BIN)/python -m pip install -q -e '.[docs]'
	@touch $@
