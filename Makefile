# The README's two commands are `make demo` and `make test`; both set up what they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-slow lint coverage fuzz mutants bench clean system-extras
.DEFAULT_GOAL := demo

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

setup: .venv/installed

demo: setup  ## ASGAT, GCN and MLP side by side on the embedded heterophilic graph
	$(BIN)/python -m asgat compare csbm --models asgat-cheb,gcn,mlp --splits 0-2 --out runs/demo
	$(BIN)/python -m asgat report runs/demo/csbm-asgat-cheb-seed0-runs0-2

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## everything but the slow real-data trainings
	$(BIN)/python -m pytest -m "not slow"

test-slow: setup  ## trains on the benchmark files in ASGAT_DATA_DIR
	$(BIN)/python -m pytest -m slow

coverage: setup  ## share of src the tests run; kernels a second time uncompiled, where coverage can see them
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest -m "not slow" --cov --cov-report= --cov-fail-under=0
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "not slow" --cov --cov-append --cov-report= --cov-fail-under=0 -W ignore::RuntimeWarning tests/kernels tests/tables/test_exact_builder.py
	$(BIN)/python -m coverage report --skip-covered

fuzz: setup  ## spoiled files by the thousand for every reader
	$(BIN)/python -m tests.fuzz.run --count 24000

mutants: setup  ## seeded faults in the numerics; goes on where it was
	$(BIN)/python -m tests.mutation.run --seconds 100000

bench: setup  ## time of one epoch against PyG's GAT, and growth with the graph
	$(BIN)/python -m asgat bench epoch
	$(BIN)/python -m asgat bench scale

system-extras:  ## optional system packages that some tests use where they are found
	@set -e; packages="chromium postgresql"; missing=""; \
	for package in $$packages; do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q "install ok installed" || missing="$$missing $$package"; \
	done; \
	if ! command -v apt-get >/dev/null; then echo "no apt-get here: install $$packages by hand, or let their tests skip"; \
	elif [ -z "$$missing" ]; then echo "all there: $$packages"; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing; \
	elif sudo -n true 2>/dev/null; then sudo -n apt-get update -q && sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing; \
	else echo "installing$$missing takes root: run \`sudo make system-extras\`, or let their tests skip"; fi

clean:
	rm -rf .venv dist build runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
