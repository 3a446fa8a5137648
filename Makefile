# Needs Python >= 3.11 and make. `make` alone lists the targets.
PYTHON ?= python3
PORT ?= 8000
STORE ?= sqlite:///.demo/laudo.db
BIN := .venv/bin

# One stamp for each set of dependencies, so that pip runs only after pyproject.toml has changed.
RUN_STAMP := .venv/.installed
DEV_STAMP := .venv/.installed-dev

# Some images set this. The hundreds of processes that tests start would then compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test oldest check format bench screenshots clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 18

demo: $(RUN_STAMP)  ## serve 10,000 invented reports; PORT=, STORE= and ARGS=--live may be given
	@mkdir -p .demo
	@exec $(BIN)/laudo demo --port $(PORT) --store '$(STORE)' --key-file .demo/laudo.key $(ARGS)

test: $(DEV_STAMP)  ## run every test; those of the console need a Chromium, which is installed where that is allowed
	@tests/console/install-browser || true
	@$(BIN)/pytest -q -n auto --dist loadgroup $(ARGS)

# test_architecture.py needs the linters, which do not work with packages this old.
oldest:  ## run the tests with the oldest versions of the packages that laudo may stand beside
	@$(PYTHON) -m venv --clear .venv-oldest
	@.venv-oldest/bin/python tests/oldest.py >.venv-oldest/oldest.txt
	@.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]' \
		--constraint .venv-oldest/oldest.txt
	@.venv-oldest/bin/pytest -q -n auto --dist loadgroup --ignore tests/test_architecture.py $(ARGS)

check: $(DEV_STAMP)  ## lint, format, types, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(DEV_STAMP)  ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(DEV_STAMP)  ## requests per second and CPU per request, against a constant body
	@$(BIN)/python bench/requests.py $(ARGS)

screenshots: $(DEV_STAMP)  ## draw docs/screenshots anew
	@tests/console/install-browser
	@$(BIN)/python tests/console/screenshots.py

clean:  ## remove the environment, the demo's data and caches
	@rm -rf .venv .venv-oldest .demo .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "laudo needs Python 3.11 or newer; try make PYTHON=python3.13")'
	@echo "making .venv"
	@$(PYTHON) -m venv .venv

$(RUN_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing laudo"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[server]'
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing laudo and what its tests and checks need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,dev]'
	@touch $@ $(RUN_STAMP)
