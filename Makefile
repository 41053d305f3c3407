# Each target creates what it needs: .venv is rebuilt when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint fuzz bench browser clean clean-cache

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $(READY)

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY) browser
	$(BIN)/python -m pytest -q -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: $(READY)
	$(BIN)/python -m pytest -q -n auto -m fuzz

# Reports are tested in a real browser: where there is none, and apt-get may bring it, it does; elsewhere those tests are skipped.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] \
		|| (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null) \
		|| echo "no browser: tests that need one are skipped, unless CI=true"

bench: $(READY)
	$(BIN)/python benchmarks/run.py

clean-cache:
	find src -name '*.nb[ic]' -delete

clean: clean-cache
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
