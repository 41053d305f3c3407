# Each target creates what it needs: .venv is rebuilt when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo
DOCS := .venv/.docs
ENGINES := .venv/.engines
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint fuzz cluster faults sdist wheel walk bench browser docs site clean

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) -e ".[test]"
	touch $(READY)

# What the demo needs: the package and its report, not the test tools.
$(DEMO): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) -e ".[report]"
	touch $(DEMO)

# The tables of one story are in a package whose own dependencies nothing here needs.
$(DOCS): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) -e ".[docs]"
	$(PIP) --no-deps "icu-sepsis==2.0.1"
	touch $(DOCS)

demo: $(DEMO)
	$(BIN)/drmdp warm-up l2-2
	$(BIN)/python examples/demo.py

test: $(READY) browser
	$(BIN)/python -m pytest -q -n auto

# The site, in docs/_build/site: every code cell is executed, every docstring example run, every internal link followed.
docs: $(DOCS)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/site
	$(BIN)/sphinx-build -q -b doctest -D nb_execution_mode=off -D suppress_warnings=myst-nb.lexer,docutils docs docs/_build/doctest
	$(BIN)/python docs/check_links.py docs/_build/site

# Every page of the site in a browser, light and dark, on a screen and on a phone.
site: docs $(READY) browser
	$(BIN)/python -m pytest -q -n auto -m site tests/test_site.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: $(READY)
	$(BIN)/python -m pytest -q -n auto -m fuzz

# Ray and MPI, which no other target needs.
$(ENGINES): $(READY)
	$(PIP) -e ".[test,ray,mpi]"
	touch $(ENGINES)

# The engines against one process, and a few deaths.
cluster: $(ENGINES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q -n 0 -m cluster tests/cluster

# Many models on every engine; workers and drivers are killed, stopped and cut short of disk, many times.
faults: $(ENGINES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q -n 0 -m faults tests/cluster tests/estimate

# Source and a wheel without kernels, in dist, checked as an index checks them.
sdist: $(READY)
	$(PIP) "twine>=6"
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

# A wheel with kernels for this Python, in dist; SETS names some, such as "l2-2 kl".
wheel: $(READY)
	$(BIN)/python release/wheel.py $(SETS)

# Downloads: a wheel goes into an empty environment, and the README is followed as written.
walk: $(READY) browser
	$(BIN)/python -m pytest -q -m walk tests/test_walk.py tests/test_typed.py

# Reports are tested in a real browser: where there is none, and apt-get may bring it, it does; elsewhere those tests are skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && apt-get update -qq \
			&& apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } \
		|| echo "no browser: tests that need one are skipped, unless CI=true"

bench: $(READY)
	$(BIN)/drmdp bench

clean:
	rm -rf docs/_build .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
