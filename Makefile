# `make demo` and `make test` are the README's two commands; both create the virtual environment they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo docs test test-slow lint coverage fuzz mutants bench clean system-extras
.DEFAULT_GOAL := demo

.venv/installed: pyproject.toml constraints.txt src/asgat/__init__.py
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

setup: .venv/installed

demo: setup  ## compare ASGAT, GCN and MLP on the built-in heterophilic graph
	$(BIN)/python -m asgat compare csbm --models asgat-cheb,gcn,mlp --splits 0-2 --out runs/demo
	$(BIN)/python -m asgat report runs/demo/csbm-asgat-cheb-seed0-runs0-2

docs: setup  ## the site, in build/docs/index.html; a warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Two processes whose idle threads sleep, so that they do not take the other's core; and bytecode, for the many processes that tests start.
test: export OMP_WAIT_POLICY = passive
test: export PYTHONDONTWRITEBYTECODE =
test: lint  ## all tests except slow trainings on real data
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

test-slow: setup  ## train on the benchmark files in ASGAT_DATA_DIR
	$(BIN)/python -m pytest -m slow

coverage: setup  ## line coverage; kernels run a second time without compilation, because coverage does not see compiled code
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest -m "not slow" --cov --cov-report= --cov-fail-under=0
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "not slow" --cov --cov-append --cov-report= --cov-fail-under=0 -W ignore::RuntimeWarning tests/kernels tests/tables/test_exact_builder.py
	$(BIN)/python -m coverage report --skip-covered

fuzz: setup  ## read thousands of damaged files with every reader
	$(BIN)/python -m tests.fuzz.run --count 24000

mutants: setup  ## mutation tests of the numerics; resumes where it stopped
	$(BIN)/python -m tests.mutation.run --seconds 100000

bench: setup  ## time of one epoch against PyG's GAT, and growth with graph size
	$(BIN)/python -m reproduce bench epoch
	$(BIN)/python -m reproduce bench scale

system-extras:  ## Chromium; tests that need it skip without it
	@if dpkg-query -W -f '$${Status}' chromium 2>/dev/null | grep -q "install ok installed"; then echo "already installed: chromium"; \
	elif ! command -v apt-get >/dev/null; then echo "apt-get not found: install chromium by hand; otherwise its tests are skipped"; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium; \
	elif sudo -n true 2>/dev/null; then sudo -n apt-get update -q && sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium; \
	else echo "installing chromium needs root: run \`sudo make system-extras\`; otherwise its tests are skipped"; fi

clean:
	rm -rf .venv dist build runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
