# Two commands: `make demo` and `make test`. Each makes its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Torch's threads spin while they wait; with several processes on few cores that is all they do.
export OMP_WAIT_POLICY := PASSIVE

.PHONY: help install demo test test-slow lint format clean

help:
	@echo "make demo       learn on the embedded digits, forget a domain, compare (runs/demo)"
	@echo "make test       all tests that need only Python"
	@echo "make test-slow  tests with real processes"
	@echo "make lint       ruff and mypy"
	@echo "make format     reformat the code"

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,flower,tensorboard]'
	@touch $@

demo: $(STAMP)
	rm -rf runs/demo
	$(BIN)/foul run digits --forget domain:inverted --out runs/demo

# Tests are small: two processes with one thread each. A file's tests stay together, for its fixtures.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

test-slow: $(STAMP)
	$(BIN)/pytest -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) runs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
