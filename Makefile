# Each target creates what it needs: .venv is rebuilt when pyproject.toml changes, the module in C++ when its sources do.
PYTHON ?= python3
BIN := .venv/bin
BUILT := .venv/.built
READY := .venv/.ready
DEMO := .venv/.demo
DOCS := .venv/.docs
ENGINES := .venv/.engines
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
EDITABLE := $(PIP) --no-build-isolation -e
SOURCES := CMakeLists.txt $(wildcard native/*.[ch]pp native/*/*.[ch]pp native/*/*/*.[ch]pp)
BROWSER := { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
SKIPPED := no browser: tests that need one are skipped, unless CI=true; make browser says how to get one

.PHONY: demo ready test lint bits sanitize fuzz cluster faults sdist wheel walk bench browser compiler docs site clean

# The package, and src/drmdp/_native, compiled; what is in build/ is not compiled again.
$(BUILT): pyproject.toml $(SOURCES) | compiler
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.21" "ninja>=1.11"
	$(EDITABLE) . --no-deps
	touch $(BUILT)

$(READY): pyproject.toml | $(BUILT)
	$(PIP) "setuptools>=70.1"  # builds pymdptoolbox, which has no wheel
	$(EDITABLE) ".[test]"
	touch $(READY)

# What the tests need, without running any.
ready: $(READY) $(BUILT)

# What the demo needs: the package and its report, not the test tools.
$(DEMO): pyproject.toml | $(BUILT)
	$(EDITABLE) ".[report]"
	touch $(DEMO)

# The tables of one story are in a package whose own dependencies nothing here needs.
$(DOCS): pyproject.toml | $(BUILT)
	$(EDITABLE) ".[docs]"
	$(PIP) --no-deps "icu-sepsis==2.0.1"
	touch $(DOCS)

demo: $(DEMO) $(BUILT)
	$(BIN)/python examples/demo.py

test: $(READY) $(BUILT)
	@$(BROWSER) || echo "$(SKIPPED)"
	$(BIN)/python -m pytest -q -n auto

# The site, in docs/_build/site: every code cell is executed, every docstring example run, every internal link followed.
docs: $(DOCS) $(BUILT)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/site
	$(BIN)/sphinx-build -q -b doctest -D nb_execution_mode=off -D suppress_warnings=myst-nb.lexer,docutils docs docs/_build/doctest
	$(BIN)/python docs/check_links.py docs/_build/site

# Every page of the site in a browser, light and dark, on a screen and on a phone.
site: docs $(READY) browser
	$(BIN)/python -m pytest -q -n auto -m site tests/test_site.py

lint: $(READY) $(BUILT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The same bits by g++ and clang++ (left out where it is not there), -O1 and -O3, x86-64-v2 and v3; false bounds without margins.
bits: $(READY) $(BUILT)
	$(BIN)/python -m pytest -q -n 0 -m builds -k "bits or margins" tests/native

# AddressSanitizer, UndefinedBehaviourSanitizer and checked indices: 0 reports.
sanitize: $(READY) $(BUILT)
	$(BIN)/python -m pytest -q -n 0 -m builds -k sanitizers tests/native

fuzz: $(READY) $(BUILT)
	$(BIN)/python -m pytest -q -n auto -m fuzz

# Ray and MPI, which no other target needs.
$(ENGINES): $(READY)
	$(EDITABLE) ".[test,ray,mpi]"
	touch $(ENGINES)

# The engines against one process, and a few deaths.
cluster: $(ENGINES) $(BUILT)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q -n 0 -m cluster tests/cluster

# Many models on every engine; workers and drivers are killed, stopped and cut short of disk, many times.
faults: $(ENGINES) $(BUILT)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q -n 0 -m faults tests/cluster tests/estimation

# Source in dist, checked as an index checks it.
sdist: $(READY)
	$(PIP) "twine>=6"
	rm -f dist/*.tar.gz
	$(BIN)/python -m build --sdist --no-isolation --outdir dist
	$(BIN)/python -m twine check --strict dist/*.tar.gz

# A wheel for this Python and kind of machine in dist, on x86-64 with modules for two levels of processors.
wheel: $(READY)
	rm -f dist/*.whl
	DRMDP_LEVEL=all $(BIN)/python -m build --wheel --no-isolation --outdir dist

# Downloads: a wheel goes into an empty environment, and the README is followed as written.
walk: $(READY) $(BUILT)
	@$(BROWSER) || echo "$(SKIPPED)"
	$(BIN)/python -m pytest -q -m walk tests/test_walk.py tests/test_typed.py

# Chromium, in which reports and the site are tested; `make test` and `make walk` do without where there is none.
browser:
	@$(BROWSER) || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && echo "no browser: apt-get install chromium" \
			&& apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } \
		|| { echo "no browser: install Chromium or Chrome" >&2; exit 1; }

# The package is compiled: where there is no C++ compiler, and apt-get may bring it, it does.
compiler:
	@command -v "$${CXX:-c++}" >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null \
		|| { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && echo "no C++ compiler: apt-get install g++" \
			&& apt-get update -qq && apt-get install -y -qq --no-install-recommends g++ >/dev/null; } \
		|| { echo "drmdp is built from C++ and finds no compiler. Debian, Ubuntu: sudo apt-get install g++;" \
			"Fedora: sudo dnf install gcc-c++; macOS: xcode-select --install. Then make again." >&2; exit 1; }

bench: $(READY) $(BUILT)
	$(BIN)/drmdp bench

clean:
	rm -rf build docs/_build src/drmdp/_native*.so .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
