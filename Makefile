# Two commands do everything: `make demo` and `make test`. Both make the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo docs test quick test-all lint types mutate fuzz bench clean

demo: $(READY)
	$(BIN)/rankone inspect builtin
	$(BIN)/rankone memorize builtin --out runs/demo
	$(BIN)/rankone certify runs/demo builtin
	$(BIN)/rankone inspect story --task next
	$(BIN)/rankone memorize story --task next --window 16 --out runs/story
	$(BIN)/rankone certify runs/story story
	$(BIN)/rankone recite runs/story --prompt "THE LAMP AT NETTLE POINT" --tokens 200
	$(BIN)/rankone recite runs/story --verify story
	$(BIN)/rankone explain toy --out runs/explain
	$(BIN)/rankone compare toy --out runs/compared
	$(BIN)/rankone train builtin --epochs 12 --out runs/trained --resume
	$(BIN)/rankone approximate nearest --grid 16 --out runs/nearest
	$(BIN)/rankone export runs/demo --hf runs/demo-hf --onnx runs/demo.onnx

# Types are checked while the tests run. Each is done to its end, and one that fails is a failure.
test: $(READY)
	$(MAKE) --jobs 2 --keep-going lint types quick

# Tests share the cores already: threads of their own, waiting busily, took most of the time.
quick test-all: export OPENBLAS_NUM_THREADS = 1

quick: $(READY)
	$(BIN)/pytest -q -rs -m "not slow" --numprocesses auto --dist worksteal

test-all: $(READY) lint types
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -q

# How many small changes of the code do the tests notice? docs/testing.md has the scores.
ROOMS ?= certification verification kernels files corpus
SAMPLE ?= 120
SEED ?= 1
mutate: $(READY)
	for room in $(ROOMS); do $(BIN)/python tools/mutate.py $$room --sample $(SAMPLE) --seed $(SEED); done

# Made-up bytes for everything that reads files, so many seconds for each kind of file.
TARGETS ?= corpus vectors model gated recite exact hub certificate checkpoint approximation rows baseline probabilities
SECONDS ?= 60
fuzz: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt atheris
	for target in $(TARGETS); do $(BIN)/python tools/fuzz.py $$target --seconds $(SECONDS) || exit 1; done

# Everything shown is run: tutorials when the pages are built. Warnings are errors.
docs: export OPENBLAS_NUM_THREADS = 1
docs: $(VENV)/docs-ready
	$(BIN)/sphinx-build -W --keep-going -n -b html -d build/doctrees docs build/docs

$(VENV)/docs-ready: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/memorize.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/parts.py
	$(BIN)/python benchmarks/gates.py
	$(BIN)/python benchmarks/separation.py
	$(BIN)/python benchmarks/certify.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/approximation.py
	$(BIN)/python benchmarks/interop.py
	$(BIN)/python benchmarks/suspects.py
	$(BIN)/python benchmarks/ceilings_text.py
	$(BIN)/python benchmarks/texts.py
	$(BIN)/python benchmarks/recite.py
	$(BIN)/python benchmarks/constructions.py

# Installed once; again only when what is installed changes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) runs build dist docs/api docs/tutorials docs/sg_execution_times.rst src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
