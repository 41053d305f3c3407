# Each target creates what it needs: .venv is rebuilt when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint fuzz bench clean clean-cache

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $(READY)

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -q -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: $(READY)
	$(BIN)/python -m pytest -q -n auto -m fuzz

bench: $(READY)
	$(BIN)/python benchmarks/run.py

clean-cache:
	find src -name '*.nb[ic]' -delete

clean: clean-cache
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
